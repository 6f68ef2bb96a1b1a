"""The cluster of the demo on a real control plane: the scene in it, and EC2 that takes back."""

import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from control_plane.api import RefusalError
from control_plane.build import BuildError
from control_plane.instance_types import gpu_instance_types
from control_plane.processes import ProcessError
from control_plane.run import ControlPlane, Karpenter
from local import scene
from local.cluster import ClusterError
from local.kubernetes.facts import is_active, is_ready, owner_of, path_of
from local.kubernetes.happenings import Happening
from local.kubernetes.offers import POOL_LABEL
from local.kubernetes.resources import (
    BUDGETS,
    DEPLOYMENTS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    Clock,
    Object,
    resource_of,
)
from local.kubernetes.server import Authenticate, Front
from local.real.fleet import Fleet
from local.real.mirror import Mirror
from local.real.objects import Objects, path_of_all
from local.real.relay import Relay
from local.real.reporter import Reporter
from local.scene import CHAT, EMBED, Scene

_T = TypeVar("_T")

_SETTLE_SECONDS = 90
_LOOK_SECONDS = 0.05
# What an instance takes to become a node, from the moment the scene is set.
_START_UP = "30s"
_NODE_CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
_NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "gpu"}
_WATCHED = (NODES, PODS, DEPLOYMENTS, BUDGETS, NODE_POOLS, NODE_CLAIMS)


class RealCluster:
    """etcd, API server, controllers, scheduler, Karpenter and kwok, behind a relay like EKS's."""

    keeps_real_time = True

    def __init__(
        self, authenticate: Authenticate, clock: Clock, tell: Callable[[Happening], None]
    ) -> None:
        self._clock = clock
        self._fleet = Fleet()
        self._reporter = Reporter(self._fleet, clock, tell)
        self._authenticate = authenticate
        self._plane = ControlPlane(
            controllers=True, karpenter=Karpenter(instance_types=gpu_instance_types())
        )
        self._stack = contextlib.ExitStack()
        self._stopping = threading.Event()
        # Made by `start`.
        self.kubernetes: Front
        self.store: Objects
        self._mirror: Mirror

    @property
    def machines(self) -> "RealCluster":
        """The instances are seen to here too."""
        return self

    def start(self) -> None:
        """Build it if need be, and start everything. Raises ClusterError or OSError."""
        with _told():
            plane = self._stack.enter_context(self._plane)
        self._mirror = Mirror(
            plane.url,
            plane.ca_pem,
            plane.admin_token,
            map(path_of_all, _WATCHED),
            self._reporter.changed,
        )
        self._mirror.start()
        self._stack.callback(self._mirror.stop)
        self.store = Objects(self._mirror, self._fleet)
        relay = Relay(plane, self._fleet)
        self.kubernetes = Front(
            authenticate=self._authenticate, handle=relay.handle, clock=self._clock
        )
        self.kubernetes.start()
        self._stack.callback(self.kubernetes.stop)
        self._stack.callback(self._stopping.set)

    def stop(self) -> None:
        """End everything."""
        self._stack.close()

    def fill(self, ec2: Any) -> Scene:
        """Set the scene. Raises ClusterError or OSError."""
        with _told():
            return self._fill(ec2)

    def _fill(self, ec2: Any) -> Scene:
        """Karpenter makes the nodes, and each gets an instance of EC2.

        The order puts two replicas of chat and a pod of another team on one spot node: the
        node below embed has one GPU left, which one replica of chat takes.
        """
        self._plane.api.create(_NODE_CLASSES, _node_class())
        self._create(_real(one) for one in scene.surroundings())
        self._create([_daemon_set(name) for name in scene.DAEMONS])
        self._create([*scene.halves(EMBED), scene.deployment(CHAT, "on-demand")])
        self._settle("the nodes of embed", EMBED.replicas + CHAT.base)
        self._create([scene.deployment(CHAT, "spot")])
        self._settle("the nodes of chat", EMBED.replicas + CHAT.replicas)
        self._create([_without_owner(scene.bystander())])
        self._settle("the pod of another team", EMBED.replicas + CHAT.replicas + 1)
        self._create([scene.budget(EMBED), scene.budget(CHAT)])
        self._until(self._are_budgets_known, "the disruption budgets")
        delay = {"spec": {"nodeRegistrationDelay": _START_UP}}
        self._plane.api.merge(f"{_NODE_CLASSES}/{_NODE_CLASS['name']}", delay)
        for node in self.store.list(NODES):
            pool = node["metadata"]["labels"][POOL_LABEL]
            self._fleet.assign(node["metadata"]["name"], scene.run_instance(ec2, pool))
        (bystander,) = self.store.list(PODS, scene.bystander()["metadata"]["namespace"])
        name = bystander["spec"]["nodeName"]
        return Scene(node=name, instance=self._fleet.instance_of(name))

    def interrupt(self, instance_id: str, at: dt.datetime) -> None:
        """EC2 takes the instance back at that time. LookupError if no node runs on it."""
        node = self._fleet.node_of(instance_id)
        if node is None:
            raise LookupError(f"no node in the cluster runs on instance {instance_id}")
        self._reporter.say("notice", node, f"{instance_id} is taken away")
        thread = threading.Thread(target=self._reclaim, args=(node, at), name="reclaim")
        self._stack.callback(thread.join)
        # The last to be called back is the first: the thread must know that it is over.
        self._stack.callback(self._stopping.set)
        thread.start()

    def add_node(self, pool: str, *, instance_id: str) -> Object:
        """A node of the NodePool on this instance; Karpenter makes it from a claim."""
        (found,) = (one for one in self.store.list(NODE_POOLS) if one["metadata"]["name"] == pool)
        template = found["spec"]["template"]
        claim = {
            "apiVersion": NODE_CLAIMS.api_version,
            "kind": NODE_CLAIMS.kind,
            "metadata": {"generateName": f"{pool}-", "labels": {POOL_LABEL: pool}},
            "spec": template["spec"],
        }
        created = self._plane.api.create(path_of_all(NODE_CLAIMS), claim)
        name = created["metadata"]["name"]
        node_name = self._until(lambda: self._node_of_claim(name), f"the node of {name}")
        self._fleet.assign(node_name, instance_id)
        return self.store.get(NODES, node_name)

    def _node_of_claim(self, name: str) -> str:
        claim = self.store.find(NODE_CLAIMS, name) or {}
        node: str = (claim.get("status") or {}).get("nodeName", "")
        return node if self.store.find(NODES, node) else ""

    def _create(self, bodies: Iterable[Object]) -> None:
        for body in bodies:
            self._plane.api.create(_path_to(body), body)

    def _settle(self, what: str, pods: int) -> None:
        """Wait until so many pods, daemons not counted, are there and ready."""

        def settled() -> bool:
            there = [
                pod
                for pod in self.store.list(PODS)
                if is_active(pod) and owner_of(pod).get("kind") != "DaemonSet"
            ]
            return len(there) == pods and all(map(is_ready, there))

        self._until(settled, what)

    def _are_budgets_known(self) -> bool:
        """Whether each budget counts as many healthy pods as its workload has."""
        healthy = {
            budget["metadata"]["name"]: (budget.get("status") or {}).get("currentHealthy")
            for budget in self.store.list(BUDGETS)
        }
        return healthy == {pair.name: pair.replicas for pair in (CHAT, EMBED)}

    def _until(self, found: Callable[[], _T], what: str) -> _T:
        result = self._mirror.wait(found, _SETTLE_SECONDS)
        if not result:
            raise TimeoutError(f"waited {_SETTLE_SECONDS} s for {what}")
        return result

    def _reclaim(self, node: str, at: dt.datetime) -> None:
        """Wait for the time, and let the node and what is on it be gone."""
        while self._clock() < at:
            if self._stopping.wait(_LOOK_SECONDS):
                return
        pods = self.store.list(PODS, fields=f"spec.nodeName={node}")
        # The node first: what takes the place of its pods must find another one.
        for claim in self.store.list(NODE_CLAIMS):
            if (claim.get("status") or {}).get("nodeName") == node:
                self._remove(f"{path_of_all(NODE_CLAIMS)}/{claim['metadata']['name']}")
        self._remove(f"{path_of_all(NODES)}/{node}")
        for pod in pods:
            if is_active(pod) and owner_of(pod).get("kind") != "DaemonSet":
                self._reporter.say("lost", path_of(pod), f"died with {node}, not evicted")
            self._plane.api.delete(
                f"{_path_to(pod)}/{pod['metadata']['name']}?gracePeriodSeconds=0"
            )
        self._reporter.say("reclaimed", node, self._fleet.instance_of(node))

    def _remove(self, path: str) -> None:
        """Take an object away at once: Karpenter's finalizer would drain what is not there."""
        self._plane.api.merge(path, {"metadata": {"finalizers": []}})
        self._plane.api.delete(path)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What a control plane can fail with, as the run knows it."""
    try:
        yield
    except (BuildError, ProcessError, RefusalError) as error:
        raise ClusterError(str(error)) from error


def _path_to(body: Object) -> str:
    """Where objects of this kind are created."""
    if body["kind"] == "DaemonSet":
        plural, root = "daemonsets", "/apis/apps/v1"
    else:
        resource = resource_of(body)
        plural = resource.plural
        root = path_of_all(resource).removesuffix(f"/{plural}")
    namespace = body["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def _node_class() -> Object:
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": _NODE_CLASS["kind"],
        "metadata": {"name": _NODE_CLASS["name"]},
    }


def _real(body: Object) -> Object:
    """A NodePool of kwok's nodes, which stay however empty they are; anything else as it is."""
    if body["kind"] != NODE_POOLS.kind:
        return body
    template = body["spec"]["template"]
    inner = {**template["spec"], "nodeClassRef": _NODE_CLASS}
    stays = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    spec = {**body["spec"], "template": {**template, "spec": inner}, "disruption": stays}
    return {**body, "spec": spec}


def _without_owner(pod: Object) -> Object:
    """The garbage collector would take a pod whose owner is not there."""
    kept = {key: value for key, value in pod["metadata"].items() if key != "ownerReferences"}
    return {**pod, "metadata": kept}


def _daemon_set(name: str) -> Object:
    labels = {"app.kubernetes.io/name": name}
    pod = {
        "containers": [{"name": name, "image": f"registry.example.com/{name}:1"}],
        "tolerations": [{"operator": "Exists"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
