"""What to do when spot instances are about to be taken away."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lambdas.core.plan import Action, Cordon, Evict, Leave, Surge
from lambdas.core.policy import Cluster, Workload
from lambdas.core.snapshot import Deployment, Node, Pod, Snapshot


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of a cluster, and when it is taken away."""

    instance_id: str
    taken_at: dt.datetime


def decide(
    interruptions: tuple[Interruption, ...], snapshot: Snapshot, cluster: Cluster, now: dt.datetime
) -> tuple[Action, ...]:
    """Surges first, then what drains each node; every action with its reason.

    The numbers are absolute and read from the cluster as it is: deciding again after a
    crash, a second delivery or another function's work gives what is still missing.
    """
    nodes = {node.instance_id: node for node in snapshot.nodes}
    going = {
        nodes[interruption.instance_id].name
        for interruption in interruptions
        if interruption.instance_id in nodes
    }
    actions: list[Action] = list(_surges(going, snapshot, cluster))
    for interruption in interruptions:
        node = nodes.get(interruption.instance_id)
        actions += _drain(interruption, node, snapshot.pods, now)
    return tuple(actions)


def on_demand_target(share: int, on_demand: Deployment, spot: Deployment, leaving: int) -> int:
    """Replicas that the on-demand Deployment needs.

    Its share in calm times, and one for every spot replica that is wished for but not
    ready, or ready on a node that is taken away (`leaving`). Never less than it has: giving
    back is not this decision's.
    """
    missing = max(0, spot.replicas - (spot.ready - leaving))
    return max(on_demand.replicas, share + missing)


def _surges(going: set[str], snapshot: Snapshot, cluster: Cluster) -> Iterator[Action]:
    deployments = {(each.namespace, each.name): each for each in snapshot.deployments}
    for name, workload in cluster.workloads.items():
        pods = [pod for pod in snapshot.pods if _is_spot_replica(pod, workload)]
        hit = tuple(sorted({pod.node for pod in pods if pod.node in going}))
        if hit:
            yield _surge(name, workload, pods, hit, deployments)


def _is_spot_replica(pod: Pod, workload: Workload) -> bool:
    return (pod.namespace, pod.deployment) == (workload.namespace, workload.spot)


def _surge(
    name: str,
    workload: Workload,
    pods: list[Pod],
    hit: tuple[str, ...],
    deployments: Mapping[tuple[str, str], Deployment],
) -> Action:
    spot = deployments.get((workload.namespace, workload.spot))
    on_demand = deployments.get((workload.namespace, workload.on_demand))
    if spot is None or on_demand is None:
        lost = workload.spot if spot is None else workload.on_demand
        reason = f"Deployment {workload.namespace}/{lost} is not in the cluster; check the policy"
        return Leave(subject=name, nodes=hit, reason=reason)
    # Terminating pods have left the Deployment's ready count already.
    leaving = sum(pod.ready and pod.stays is None for pod in pods)
    target = on_demand_target(workload.on_demand_share, on_demand, spot, leaving)
    staying = max(0, spot.ready - leaving)
    why = f"{staying} of {spot.replicas} spot replicas are ready on nodes that stay"
    if target == on_demand.replicas:
        reason = f"{why}; {target} on-demand replicas already make up for it"
        return Leave(subject=name, nodes=hit, reason=reason)
    return Surge(
        workload=name,
        namespace=workload.namespace,
        deployment=workload.on_demand,
        spot_deployment=workload.spot,
        before=on_demand.replicas,
        after=target,
        resource_version=on_demand.resource_version,
        nodes=hit,
        reason=why,
    )


def _drain(
    interruption: Interruption, node: Node | None, pods: Iterable[Pod], now: dt.datetime
) -> Iterator[Action]:
    instance = interruption.instance_id
    if node is None:
        reason = "no node of the cluster runs on this instance: it never joined, or is gone"
        yield Leave(subject=instance, nodes=(), reason=reason)
        return
    if node.drained_by:
        yield Leave(subject=node.name, nodes=(node.name,), reason=f"{node.drained_by} drains it")
        return
    left = max(0, round((interruption.taken_at - now).total_seconds()))
    if not (node.unschedulable and node.is_leaving(now)):
        yield Cordon(
            node=node.name,
            interrupted_at=interruption.taken_at.isoformat(),
            reason=f"{instance} is taken away in {left} s",
        )
    yield from _evictions(node, pods)


def _evictions(node: Node, pods: Iterable[Pod]) -> Iterator[Evict]:
    """Every pod that can move; those that asked not to be disrupted come last."""
    moving = [pod for pod in pods if pod.node == node.name and pod.stays is None]
    for pod in sorted(moving, key=lambda pod: pod.do_not_disrupt):
        reason = "its node is taken away"
        if pod.do_not_disrupt:
            reason += "; it asked not to be disrupted, but would be killed without its grace period"
        yield Evict(
            node=node.name,
            namespace=pod.namespace,
            pod=pod.name,
            uid=pod.uid,
            deployment=pod.deployment,
            reason=reason,
        )
