"""The simulated cluster, step by step: what happened, and at which second."""

import datetime as dt
import threading
from typing import Any

import pytest

from local.kubernetes import Delays, Happening, Simulation, Store
from local.kubernetes.disruption import desired_healthy
from local.kubernetes.facts import is_ready, tolerates
from local.kubernetes.happenings import Kind
from local.kubernetes.resources import (
    BUDGETS,
    DEPLOYMENTS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    Object,
)

START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
GPU_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


class Cluster:
    """A store and a simulation, with a clock that moves when told."""

    def __init__(self, *, daemons: tuple[str, ...] = ()) -> None:
        self.now = START
        self.happenings: list[Happening] = []
        self.store = Store(lambda: self.now)
        self.simulation = Simulation(
            self.store,
            lambda: self.now,
            delays=Delays(node_start_seconds=40, pod_start_seconds=10, pod_stop_seconds=5),
            tell=self.happenings.append,
            daemons=daemons,
        )

    def run(self, seconds: int) -> None:
        """Step every five seconds, now included."""
        for _ in range(0, seconds, 5):
            self.simulation.step()
            self.now += dt.timedelta(seconds=5)

    def told(self) -> list[tuple[int, Kind]]:
        """Since when we last asked: the second, and the kind of what happened."""
        told = [(int((each.at - START).total_seconds()), each.kind) for each in self.happenings]
        self.happenings.clear()
        return told

    def pool(self, name: str, *, weight: int = 10, gpus: int = 1, **spec: Any) -> None:
        instance_type = {0: "m7i.large", 1: "g5.xlarge", 4: "g5.12xlarge"}[gpus]
        capacity = "spot" if "spot" in name else "on-demand"
        requirements = [
            {"key": key, "operator": "In", "values": values}
            for key, values in (
                ("karpenter.sh/capacity-type", [capacity]),
                ("node.kubernetes.io/instance-type", [instance_type]),
                ("topology.kubernetes.io/zone", ["eu-west-1a", "eu-west-1b"]),
            )
        ]
        self.create(
            "karpenter.sh/v1",
            "NodePool",
            name,
            {"weight": weight, "template": {"spec": {"requirements": requirements, **spec}}},
        )

    def deployment(self, name: str, replicas: int, *, gpus: int = 1, pool: str = "") -> None:
        limits = {"nvidia.com/gpu": gpus} if gpus else {}
        container = {"name": "model", "image": "model", "resources": {"limits": limits}}
        selector = {"karpenter.sh/nodepool": pool} if pool else {}
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [container], "nodeSelector": selector},
        }
        match = {"matchLabels": {"app": name}}
        spec = {"replicas": replicas, "selector": match, "template": template}
        self.create("apps/v1", "Deployment", name, spec)

    def budget(self, name: str, app: str, **spec: Any) -> None:
        selector = {"matchLabels": {"app": app}}
        self.create("policy/v1", "PodDisruptionBudget", name, {"selector": selector, **spec})

    def create(self, api_version: str, kind: str, name: str, spec: Object) -> None:
        self.store.create(
            {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        )

    def scale(self, name: str, replicas: int) -> None:
        self.store.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, "default")

    def pods(self, app: str) -> tuple[Object, ...]:
        return self.store.list(PODS, labels=f"app={app}")

    def deployment_status(self, name: str) -> Object:
        status: Object = self.store.get(DEPLOYMENTS, name, "default")["status"]
        return status


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_pods_get_a_node_and_become_ready(cluster: Cluster) -> None:
    cluster.pool("gpu-spot", gpus=4)
    cluster.deployment("web", 2)
    cluster.run(60)
    assert cluster.told() == [
        (0, "launched"),  # one node of four GPUs for both
        (40, "joined"),
        (40, "scheduled"),
        (40, "scheduled"),
        (50, "ready"),
        (50, "ready"),
    ]
    status = cluster.deployment_status("web")
    assert (status["replicas"], status["readyReplicas"]) == (2, 2)
    assert "unavailableReplicas" not in status


def test_a_node_says_where_it_comes_from(cluster: Cluster) -> None:
    cluster.pool("gpu-spot")
    node = cluster.simulation.add_node("gpu-spot", instance_id="i-0abc")
    assert node["spec"]["providerID"] == "aws:///eu-west-1a/i-0abc"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    assert is_ready(node)
    labels = node["metadata"]["labels"]
    assert labels["karpenter.sh/nodepool"] == "gpu-spot"
    assert labels["karpenter.sh/capacity-type"] == "spot"
    assert labels["node.kubernetes.io/instance-type"] == "g5.xlarge"
    assert labels["topology.kubernetes.io/zone"] == "eu-west-1a"
    (claim,) = cluster.store.list(NODE_CLAIMS)
    assert claim["status"]["nodeName"] == node["metadata"]["name"]


def test_the_nodes_of_a_pool_spread_over_its_zones(cluster: Cluster) -> None:
    cluster.pool("gpu-spot")
    zones = {
        cluster.simulation.add_node("gpu-spot")["spec"]["providerID"].split("/")[3]
        for _ in range(2)
    }
    assert zones == {"eu-west-1a", "eu-west-1b"}


def test_pods_belong_to_a_replica_set_of_the_deployment(cluster: Cluster) -> None:
    cluster.deployment("web", 1)
    cluster.run(5)
    (pod,) = cluster.pods("web")
    (owner,) = pod["metadata"]["ownerReferences"]
    digest = pod["metadata"]["labels"]["pod-template-hash"]
    assert (owner["kind"], owner["name"], owner["controller"]) == (
        "ReplicaSet",
        f"web-{digest}",
        True,
    )


def test_a_surge_lands_on_the_other_pool(cluster: Cluster) -> None:
    cluster.pool("on-demand", gpus=4)
    cluster.deployment("web", 1, pool="on-demand")
    cluster.simulation.add_node("on-demand")
    cluster.run(20)
    cluster.told()
    cluster.scale("web", 3)
    cluster.run(20)
    assert cluster.told() == [
        (20, "scaled"),
        (20, "scheduled"),
        (20, "scheduled"),
        (30, "ready"),
        (30, "ready"),
    ]


def test_a_scale_down_takes_what_is_not_ready(cluster: Cluster) -> None:
    cluster.pool("gpu-spot")
    cluster.simulation.add_node("gpu-spot")
    cluster.deployment("web", 1)
    cluster.run(20)
    cluster.scale("web", 2)
    cluster.run(5)
    cluster.scale("web", 1)
    cluster.run(5)
    (pod,) = cluster.pods("web")
    assert is_ready(pod)


@pytest.mark.parametrize(("stop_grace", "gone_after"), [(30, 5), (2, 5), (0, 0)])
def test_a_terminating_pod_ends(cluster: Cluster, stop_grace: int, gone_after: int) -> None:
    cluster.pool("gpu-spot")
    cluster.simulation.add_node("gpu-spot")
    cluster.deployment("web", 1)
    cluster.run(20)
    cluster.scale("web", 0)
    (pod,) = cluster.pods("web")
    cluster.store.delete(PODS, pod["metadata"]["name"], "default", grace_seconds=stop_grace)
    cluster.told()
    cluster.run(20)
    expected = [(20, "scaled")] + ([(20 + gone_after, "gone")] if gone_after else [])
    assert cluster.told() == expected


def test_a_cordoned_node_gets_no_pods(cluster: Cluster) -> None:
    cluster.pool("gpu-spot")
    name = cluster.simulation.add_node("gpu-spot")["metadata"]["name"]
    cluster.store.patch(NODES, name, {"spec": {"unschedulable": True}})
    cluster.deployment("web", 1)
    cluster.run(5)
    assert [kind for _, kind in cluster.told()] == ["launched"]


def test_a_pod_waits_for_gpus_that_another_one_holds(cluster: Cluster) -> None:
    cluster.pool("gpu-spot")
    cluster.simulation.add_node("gpu-spot")
    cluster.simulation.exhaust("gpu-spot", START + dt.timedelta(hours=1))
    cluster.deployment("web", 2)
    cluster.run(10)
    placed = [pod["spec"].get("nodeName") for pod in cluster.pods("web")]
    assert placed.count(None) == 1


def test_the_heaviest_pool_is_taken_first(cluster: Cluster) -> None:
    cluster.pool("on-demand", weight=10)
    cluster.pool("spot", weight=50)
    cluster.deployment("web", 1)
    cluster.run(5)
    assert cluster.happenings[0].detail.endswith("(g5.xlarge, spot) for spot")


def test_without_capacity_the_next_pool_is_taken(cluster: Cluster) -> None:
    cluster.pool("on-demand", weight=10)
    cluster.pool("spot", weight=50)
    cluster.simulation.exhaust("spot", START + dt.timedelta(seconds=60))
    cluster.deployment("web", 1)
    cluster.run(5)
    assert [each.kind for each in cluster.happenings] == ["no-capacity", "launched"]
    assert cluster.happenings[1].detail.endswith("for on-demand")


def test_capacity_comes_back(cluster: Cluster) -> None:
    cluster.pool("spot")
    cluster.simulation.exhaust("spot", START + dt.timedelta(seconds=60))
    cluster.deployment("web", 1)
    cluster.run(70)
    assert cluster.told() == [(0, "no-capacity"), (60, "launched")]


def test_a_pool_that_cannot_fit_a_pod_starts_nothing(cluster: Cluster) -> None:
    cluster.pool("spot", gpus=1)
    cluster.pool("plain", gpus=0)
    cluster.deployment("web", 1, gpus=2)
    cluster.run(10)
    assert cluster.told() == []


def test_a_tainted_pool_is_not_for_everyone(cluster: Cluster) -> None:
    cluster.pool("spot", taints=[GPU_TAINT])
    cluster.deployment("web", 1)
    cluster.run(10)
    assert cluster.told() == []


def test_one_node_on_its_way_is_enough(cluster: Cluster) -> None:
    cluster.pool("spot", gpus=4)
    cluster.deployment("web", 3)
    cluster.run(30)
    assert cluster.told() == [(0, "launched")]


def test_a_reclaim_loses_the_pods_that_nobody_moved(cluster: Cluster) -> None:
    cluster.pool("spot")
    cluster.simulation.add_node("spot", instance_id="i-0abc")
    cluster.deployment("web", 1)
    cluster.run(20)
    cluster.told()
    cluster.simulation.interrupt("i-0abc", START + dt.timedelta(seconds=140))
    cluster.run(125)
    assert cluster.told() == [
        (20, "notice"),
        (140, "lost"),
        (140, "reclaimed"),
        (140, "launched"),
    ]
    (node,) = cluster.store.list(NODES)
    assert not is_ready(node)


def test_an_evicted_pod_is_not_lost(cluster: Cluster) -> None:
    cluster.pool("spot")
    cluster.simulation.add_node("spot", instance_id="i-0abc")
    cluster.deployment("web", 1)
    cluster.run(20)
    cluster.simulation.interrupt("i-0abc", START + dt.timedelta(seconds=40))
    (pod,) = cluster.pods("web")
    cluster.scale("web", 0)
    cluster.store.delete(PODS, pod["metadata"]["name"], "default")
    cluster.told()
    cluster.run(30)
    assert cluster.told() == [(20, "scaled"), (25, "gone"), (40, "reclaimed")]


def test_a_pod_that_is_still_ending_is_not_lost(cluster: Cluster) -> None:
    cluster.pool("spot")
    cluster.simulation.add_node("spot", instance_id="i-0abc")
    cluster.deployment("web", 1)
    cluster.run(20)
    cluster.simulation.interrupt("i-0abc", START + dt.timedelta(seconds=20))
    (pod,) = cluster.pods("web")
    cluster.store.delete(PODS, pod["metadata"]["name"], "default")
    cluster.told()
    cluster.run(5)
    assert [kind for _, kind in cluster.told()][:2] == ["gone", "reclaimed"]


def test_daemons_run_on_every_node_and_are_not_lost() -> None:
    cluster = Cluster(daemons=("device-plugin", "exporter"))
    cluster.pool("spot")
    cluster.simulation.add_node("spot", instance_id="i-0abc")
    cluster.run(20)
    names = [pod["metadata"]["ownerReferences"][0]["name"] for pod in cluster.store.list(PODS)]
    assert sorted(names) == ["device-plugin", "exporter"]
    cluster.told()
    cluster.simulation.interrupt("i-0abc", START)
    cluster.run(5)
    assert cluster.told() == [(20, "notice"), (20, "reclaimed")]
    assert cluster.store.list(PODS) == ()


def test_an_unknown_instance(cluster: Cluster) -> None:
    with pytest.raises(LookupError, match="no node in the cluster runs on instance i-none"):
        cluster.simulation.interrupt("i-none", START)


def test_what_a_deleted_deployment_leaves_is_collected(cluster: Cluster) -> None:
    cluster.deployment("web", 2)
    cluster.run(5)
    cluster.store.delete(DEPLOYMENTS, "web", "default")
    cluster.run(5)
    assert cluster.pods("web") == ()


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        # expected, desired, healthy, allowed
        ({"minAvailable": 2}, (4, 2, 3, 1)),
        ({"minAvailable": "50%"}, (4, 2, 3, 1)),
        ({"minAvailable": "60%"}, (4, 3, 3, 0)),
        ({"maxUnavailable": 1}, (4, 3, 3, 0)),
        ({"maxUnavailable": 2}, (4, 2, 3, 1)),
        ({"maxUnavailable": "30%"}, (4, 2, 3, 1)),
    ],
)
def test_budgets(cluster: Cluster, spec: Object, counts: tuple[int, int, int, int]) -> None:
    cluster.pool("spot", gpus=4)
    cluster.simulation.add_node("spot")
    cluster.deployment("web", 4)
    cluster.budget("web", "web", **spec)
    cluster.run(20)
    cluster.store.delete(PODS, cluster.pods("web")[0]["metadata"]["name"], "default")
    cluster.run(5)  # the replacement is there, and not ready
    status = cluster.store.get(BUDGETS, "web", "default")["status"]
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    assert tuple(status[key] for key in keys) == counts
    assert status["observedGeneration"] == 1


@pytest.mark.parametrize(
    ("spec", "expected", "desired"),
    [
        ({"minAvailable": "10%"}, 3, 1),
        ({"minAvailable": "0%"}, 3, 0),
        ({"maxUnavailable": "10%"}, 3, 2),
        ({"maxUnavailable": 5}, 3, 0),
        ({}, 3, 1),
    ],
)
def test_shares_are_rounded_up(spec: Object, expected: int, desired: int) -> None:
    assert desired_healthy(spec, expected) == desired


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu"}, True),
        ({"key": "nvidia.com/gpu", "value": "present"}, False),
        ({"key": "nvidia.com/gpu", "effect": "NoExecute", "operator": "Exists"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: Object, tolerated: bool) -> None:
    assert tolerates({"spec": {"tolerations": [toleration]}}, [GPU_TAINT]) is tolerated


def test_the_same_scene_gives_the_same_story() -> None:
    stories = []
    for _ in range(2):
        cluster = Cluster(daemons=("exporter",))
        cluster.pool("spot", gpus=4)
        cluster.deployment("web", 5)
        cluster.run(60)
        stories.append(cluster.happenings)
    assert stories[0] == stories[1]


def test_a_quiet_step_writes_nothing(cluster: Cluster) -> None:
    cluster.pool("spot", gpus=4)
    cluster.deployment("web", 2)
    cluster.budget("web", "web", minAvailable=1)
    cluster.run(70)
    before = cluster.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
    cluster.store.remove(NODES, "a")
    cluster.run(10)
    after = cluster.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
    versions = [int(body["metadata"]["resourceVersion"]) for body in (before, after)]
    assert versions[1] - versions[0] == 2
    assert len(cluster.store.list(NODE_POOLS)) == 1


def test_it_runs_in_a_thread_until_it_is_stopped(cluster: Cluster) -> None:
    cluster.pool("spot")
    cluster.deployment("web", 1)
    launched = threading.Event()
    simulation = Simulation(
        cluster.store, lambda: START, delays=Delays(), tell=lambda _: launched.set()
    )
    simulation.start(0.001)
    assert launched.wait(5)
    simulation.stop()
    assert not any(thread.name == "simulation" for thread in threading.enumerate())
