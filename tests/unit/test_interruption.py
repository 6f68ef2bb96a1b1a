"""The decision about interruptions, as literal data."""

import datetime as dt

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.interruption import Interruption, decide, on_demand_target
from lambdas.core.plan import Action, Cordon, Evict, Leave, Surge
from lambdas.core.snapshot import Deployment, Node, Pod, Snapshot
from tests.policy import CLUSTER

NOW = dt.datetime(2026, 3, 1, 12, 0, 20, tzinfo=dt.UTC)
TAKEN = dt.datetime(2026, 3, 1, 12, 2, 0, tzinfo=dt.UTC)

A = Node(name="node-a", instance_id="i-a")
B = Node(name="node-b", instance_id="i-b")


def interruption(instance_id: str = "i-a") -> Interruption:
    return Interruption(
        instance_id=instance_id, taken_at=TAKEN, evict_until=TAKEN - dt.timedelta(seconds=15)
    )


def pod(name: str, node: str = "node-a", deployment: str | None = "chat-spot") -> Pod:
    return Pod(
        namespace="inference", name=name, uid=f"uid-{name}", node=node, deployment=deployment
    )


def pair(spot: int = 3, ready: int = 3, on_demand: int = 1) -> tuple[Deployment, Deployment]:
    return (
        Deployment(
            namespace="inference",
            name="chat-spot",
            replicas=spot,
            ready=ready,
            resource_version="5",
        ),
        Deployment(
            namespace="inference",
            name="chat-on-demand",
            replicas=on_demand,
            ready=on_demand,
            resource_version="7",
        ),
    )


def surge(after: int, reason: str, nodes: tuple[str, ...] = ("node-a",), before: int = 1) -> Surge:
    return Surge(
        workload="chat",
        namespace="inference",
        deployment="chat-on-demand",
        spot_deployment="chat-spot",
        before=before,
        after=after,
        resource_version="7",
        nodes=nodes,
        reason=reason,
    )


def cordon(node: str = "node-a", instance_id: str = "i-a") -> Cordon:
    return Cordon(
        node=node,
        interrupted_at="2026-03-01T12:02:00+00:00",
        reason=f"{instance_id} is taken away in 100 s",
    )


def evict(name: str, node: str = "node-a", deployment: str | None = "chat-spot") -> Evict:
    return Evict(
        node=node,
        namespace="inference",
        pod=name,
        uid=f"uid-{name}",
        deployment=deployment,
        reason="its node is taken away",
    )


CASES: dict[str, tuple[tuple[Interruption, ...], Snapshot, tuple[Action, ...]]] = {
    "two of three spot replicas are on the node": (
        (interruption(),),
        Snapshot(nodes=(A,), pods=(pod("chat-1"), pod("chat-2")), deployments=pair()),
        (
            surge(3, "1 of 3 spot replicas are ready on nodes that stay"),
            cordon(),
            evict("chat-1"),
            evict("chat-2"),
        ),
    ),
    "two nodes at once share one surge": (
        (interruption(), interruption("i-b")),
        Snapshot(
            nodes=(A, B), pods=(pod("chat-1"), pod("chat-2", node="node-b")), deployments=pair()
        ),
        (
            surge(
                3, "1 of 3 spot replicas are ready on nodes that stay", nodes=("node-a", "node-b")
            ),
            cordon(),
            evict("chat-1"),
            cordon("node-b", "i-b"),
            evict("chat-2", node="node-b"),
        ),
    ),
    "a second notice counts the replica that the first one took": (
        (interruption("i-b"),),
        Snapshot(
            nodes=(msgspec.structs.replace(A, interrupted_at=TAKEN), B),
            pods=(pod("chat-2", node="node-b"),),
            deployments=pair(ready=2, on_demand=2),
        ),
        (
            surge(3, "1 of 3 spot replicas are ready on nodes that stay", ("node-b",), before=2),
            cordon("node-b", "i-b"),
            evict("chat-2", node="node-b"),
        ),
    ),
    "pods still on an earlier interrupted node are leaving too": (
        (interruption("i-b"),),
        Snapshot(
            nodes=(msgspec.structs.replace(A, interrupted_at=TAKEN, unschedulable=True), B),
            pods=(pod("chat-1"), pod("chat-2", node="node-b")),
            deployments=pair(on_demand=2),
        ),
        (
            surge(3, "1 of 3 spot replicas are ready on nodes that stay", ("node-b",), before=2),
            cordon("node-b", "i-b"),
            evict("chat-2", node="node-b"),
        ),
    ),
    "evicted pods count although the ready count does not know it yet": (
        (interruption("i-b"),),
        Snapshot(
            nodes=(msgspec.structs.replace(A, interrupted_at=TAKEN, unschedulable=True), B),
            pods=(
                msgspec.structs.replace(pod("chat-1"), exempt="terminating"),
                pod("chat-2", node="node-b"),
            ),
            deployments=pair(ready=3, on_demand=2),
        ),
        (
            surge(3, "1 of 3 spot replicas are ready on nodes that stay", ("node-b",), before=2),
            cordon("node-b", "i-b"),
            evict("chat-2", node="node-b"),
        ),
    ),
    "pods on a node that Karpenter drains for an earlier notice are leaving too": (
        (interruption("i-b"),),
        Snapshot(
            nodes=(msgspec.structs.replace(A, disrupted=True), B),
            pods=(pod("chat-1"), pod("chat-2", node="node-b")),
            deployments=pair(on_demand=2),
        ),
        (
            surge(3, "1 of 3 spot replicas are ready on nodes that stay", ("node-b",), before=2),
            cordon("node-b", "i-b"),
            evict("chat-2", node="node-b"),
        ),
    ),
    "a node of EKS Auto Mode is not ours": (
        (interruption(),),
        Snapshot(nodes=(msgspec.structs.replace(A, auto_mode=True),)),
        (Leave(subject="node-a", nodes=("node-a",), reason="EKS Auto Mode drains it"),),
    ),
    "a second delivery finds everything done": (
        (interruption(),),
        Snapshot(
            nodes=(msgspec.structs.replace(A, interrupted_at=TAKEN, unschedulable=True),),
            pods=(msgspec.structs.replace(pod("chat-1"), exempt="terminating"),),
            deployments=pair(ready=2, on_demand=2),
        ),
        (
            Leave(
                subject="chat",
                nodes=("node-a",),
                reason="2 of 3 spot replicas are ready on nodes that stay; "
                "2 on-demand replicas already make up for it",
            ),
        ),
    ),
    "a surge that is there already is not made smaller": (
        (interruption(),),
        Snapshot(nodes=(A,), pods=(pod("chat-1"),), deployments=pair(on_demand=4)),
        (
            Leave(
                subject="chat",
                nodes=("node-a",),
                reason="2 of 3 spot replicas are ready on nodes that stay; "
                "4 on-demand replicas already make up for it",
            ),
            cordon(),
            evict("chat-1"),
        ),
    ),
    "Karpenter drains the node: only the surge is ours": (
        (interruption(),),
        Snapshot(
            nodes=(msgspec.structs.replace(A, disrupted=True),),
            pods=(pod("chat-1"),),
            deployments=pair(),
        ),
        (
            surge(2, "2 of 3 spot replicas are ready on nodes that stay"),
            Leave(subject="node-a", nodes=("node-a",), reason="Karpenter drains it"),
        ),
    ),
    "daemon, mirror, finished and terminating pods are exempt; strangers and the busy are not": (
        (interruption(),),
        Snapshot(
            nodes=(A,),
            pods=(
                msgspec.structs.replace(pod("trainer", deployment=None), do_not_disrupt=True),
                msgspec.structs.replace(pod("plugin", deployment=None), exempt="daemon"),
                msgspec.structs.replace(pod("done", deployment=None), exempt="finished"),
                msgspec.structs.replace(pod("old", deployment=None), exempt="terminating"),
                pod("stranger", deployment="someone-elses"),
            ),
        ),
        (
            cordon(),
            msgspec.structs.replace(
                evict("trainer", deployment=None),
                reason="its node is taken away; it asked not to be disrupted, "
                "but would be killed without its grace period",
            ),
            evict("stranger", deployment="someone-elses"),
        ),
    ),
    "a node that somebody cordoned by hand is still marked": (
        (interruption(),),
        Snapshot(nodes=(msgspec.structs.replace(A, unschedulable=True),)),
        (cordon(),),
    ),
    "a mark from an earlier life of the node is renewed": (
        (interruption(),),
        Snapshot(
            nodes=(
                msgspec.structs.replace(
                    A, unschedulable=True, interrupted_at=NOW - dt.timedelta(minutes=11)
                ),
            )
        ),
        (cordon(),),
    ),
    "no node runs on the instance": (
        (interruption("i-gone"),),
        Snapshot(nodes=(A,)),
        (
            Leave(
                subject="i-gone",
                nodes=(),
                reason="no node of the cluster runs on this instance: it never joined, or is gone",
            ),
        ),
    ),
    "a Deployment of the policy is missing": (
        (interruption(),),
        Snapshot(nodes=(A,), pods=(pod("chat-1"),), deployments=pair()[:1]),
        (
            Leave(
                subject="chat",
                nodes=("node-a",),
                reason="Deployment inference/chat-on-demand is not in the cluster; "
                "check the policy",
            ),
            cordon(),
            evict("chat-1"),
        ),
    ),
    "the same names in another namespace are not ours": (
        (interruption(),),
        Snapshot(
            nodes=(A,),
            pods=(msgspec.structs.replace(pod("chat-1"), namespace="elsewhere"),),
            deployments=pair(),
        ),
        (cordon(), msgspec.structs.replace(evict("chat-1"), namespace="elsewhere")),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_decide(name: str) -> None:
    interruptions, snapshot, expected = CASES[name]
    assert decide(interruptions, snapshot, CLUSTER, NOW) == expected


def test_the_time_that_is_left_is_never_negative() -> None:
    late = TAKEN + dt.timedelta(minutes=9)
    (action,) = decide((interruption(),), Snapshot(nodes=(A,)), CLUSTER, late)
    assert isinstance(action, Cordon)
    assert action.reason == "i-a is taken away in 0 s"


def test_after_the_deadline_nothing_is_evicted_any_more() -> None:
    snapshot = Snapshot(nodes=(A,), pods=(pod("chat-1"), pod("chat-2")), deployments=pair())
    late = TAKEN - dt.timedelta(seconds=15)
    moved, cordoned, left = decide((interruption(),), snapshot, CLUSTER, late)
    assert isinstance(moved, Surge)
    assert isinstance(cordoned, Cordon)
    reason = "the time is up with 2 pods still on it"
    assert left == Leave(subject="node-a", nodes=("node-a",), reason=reason)


def test_a_notice_that_outlived_its_instance_moves_nothing() -> None:
    late = TAKEN + dt.timedelta(minutes=10)
    snapshot = Snapshot(nodes=(A,), pods=(pod("chat-1"),), deployments=pair())
    assert decide((interruption(),), snapshot, CLUSTER, late) == (
        Leave(
            subject="node-a",
            nodes=("node-a",),
            reason="the notice is too old: it was for 2026-03-01 12:02 UTC",
        ),
    )


counts = st.integers(min_value=0, max_value=50)


@given(share=counts, on_demand=counts, spot=counts, ready=counts, leaving=counts, gone=counts)
def test_the_target_makes_up_for_what_is_missing_and_never_goes_down(
    *, share: int, on_demand: int, spot: int, ready: int, leaving: int, gone: int
) -> None:
    leaving = min(leaving, ready)
    spot_half, on_demand_half = pair(spot=spot, ready=ready, on_demand=on_demand)
    target = on_demand_target(share, on_demand_half, spot_half, leaving=leaving, gone=gone)
    assert target >= on_demand
    # With what stays ready on spot, the replicas that are wished for are there.
    assert target + (ready - leaving) >= share + spot
    assert target <= max(on_demand, share + spot)
    # Asked again after it was carried out, the answer stays.
    after = pair(spot=spot, ready=ready, on_demand=target)[1]
    assert on_demand_target(share, after, spot_half, leaving=leaving, gone=gone) == target
