"""What to do when spot instances are about to be taken away."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lambdas.core.plan import Action, Cordon, Evict, Leave, Surge
from lambdas.core.policy import Cluster, Workload
from lambdas.core.snapshot import NOTICE_LASTS, Deployment, Node, Pod, Snapshot


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of a cluster, when it is taken away, and until when its pods are evicted."""

    instance_id: str
    taken_at: dt.datetime
    evict_until: dt.datetime


def decide(
    interruptions: tuple[Interruption, ...], snapshot: Snapshot, cluster: Cluster, now: dt.datetime
) -> tuple[Action, ...]:
    """What makes up for the replicas, and what drains each node; every action with its reason.

    The numbers are absolute and read from the cluster as it is: deciding again after a
    crash, a second delivery or another function's work gives what is still missing.
    """
    nodes = {node.instance_id: node for node in snapshot.nodes}
    hit = {
        nodes[one.instance_id].name
        for one in interruptions
        if one.instance_id in nodes and not _is_stale(one, now)
    }
    actions: list[Action] = list(_surges(hit, snapshot, cluster))
    for interruption in interruptions:
        node = nodes.get(interruption.instance_id)
        actions += _drain(interruption, node, snapshot.pods, now)
    return tuple(actions)


def is_contended(actions: Iterable[Action], snapshot: Snapshot, cluster: Cluster) -> bool:
    """Whether to mark the nodes and read again before anything else.

    On-demand above its share means that somebody has surged. A node of theirs may have been
    marked after we read the nodes; whoever marks first and reads then sees every node whose
    surge is in the numbers.
    """
    if not any(isinstance(action, Cordon) for action in actions):
        return False
    replicas = {(each.namespace, each.name): each.replicas for each in snapshot.deployments}
    return any(
        replicas.get((workload.namespace, workload.on_demand), 0) > workload.on_demand_share
        for workload in cluster.workloads.values()
    )


def on_demand_target(
    share: int, on_demand: Deployment, spot: Deployment, *, leaving: int, gone: int
) -> int:
    """Replicas that the on-demand Deployment needs.

    Its share in calm times, and one for every spot replica that is missing: wished for but not
    ready, or ready on a node that is leaving (`leaving`). The ready count lags behind
    evictions, so it is at least the number of unfinished pods on leaving nodes, terminating
    ones included (`gone`). Never less than it has: giving back is not this decision's.
    """
    missing = max(0, spot.replicas - (spot.ready - leaving), gone)
    return max(on_demand.replicas, share + min(missing, spot.replicas))


def _surges(hit: set[str], snapshot: Snapshot, cluster: Cluster) -> Iterator[Action]:
    deployments = {(each.namespace, each.name): each for each in snapshot.deployments}
    for name, workload in cluster.workloads.items():
        pods = [pod for pod in snapshot.pods if _is_spot_replica(pod, workload)]
        nodes = tuple(sorted({pod.node for pod in pods if pod.node in hit}))
        if nodes:
            yield _surge(name, workload, pods, nodes, deployments)


def _is_spot_replica(pod: Pod, workload: Workload) -> bool:
    return (pod.namespace, pod.deployment) == (workload.namespace, workload.spot)


def _surge(
    name: str,
    workload: Workload,
    pods: list[Pod],
    nodes: tuple[str, ...],
    deployments: Mapping[tuple[str, str], Deployment],
) -> Action:
    spot = deployments.get((workload.namespace, workload.spot))
    on_demand = deployments.get((workload.namespace, workload.on_demand))
    if spot is None or on_demand is None:
        lost = workload.spot if spot is None else workload.on_demand
        reason = f"Deployment {workload.namespace}/{lost} is not in the cluster; check the policy"
        return Leave(subject=name, nodes=nodes, reason=reason)
    leaving = sum(pod.ready and pod.exempt is None for pod in pods)
    gone = sum(pod.exempt in (None, "terminating") for pod in pods)
    target = on_demand_target(workload.on_demand_share, on_demand, spot, leaving=leaving, gone=gone)
    staying = min(spot.ready - leaving, max(0, spot.replicas - gone))
    why = f"{staying} of {spot.replicas} spot replicas are ready on nodes that stay"
    if target == on_demand.replicas:
        reason = f"{why}; {target} on-demand replicas already make up for it"
        return Leave(subject=name, nodes=nodes, reason=reason)
    return Surge(
        workload=name,
        namespace=workload.namespace,
        deployment=workload.on_demand,
        spot_deployment=workload.spot,
        before=on_demand.replicas,
        after=target,
        resource_version=on_demand.resource_version,
        nodes=nodes,
        reason=why,
    )


def _is_stale(interruption: Interruption, now: dt.datetime) -> bool:
    """Whether the notice has outlived its instance: redelivered from the dead letters, say."""
    return now >= interruption.taken_at + NOTICE_LASTS


def _drain(
    interruption: Interruption, node: Node | None, pods: Iterable[Pod], now: dt.datetime
) -> Iterator[Action]:
    instance = interruption.instance_id
    if node is None:
        reason = "no node of the cluster runs on this instance: it never joined, or is gone"
        yield Leave(subject=instance, nodes=(), reason=reason)
        return
    if reason := _left_alone(interruption, node, now):
        yield Leave(subject=node.name, nodes=(node.name,), reason=reason)
        return
    left = max(0, round((interruption.taken_at - now).total_seconds()))
    if not (node.unschedulable and node.is_marked(now)):
        yield Cordon(
            node=node.name,
            interrupted_at=interruption.taken_at.isoformat(),
            reason=f"{instance} is taken away in {left} s",
        )
    moving = [pod for pod in pods if pod.node == node.name and pod.exempt is None]
    if now < interruption.evict_until:
        yield from map(_eviction, moving)
    elif moving:
        reason = f"the time is up with {len(moving)} pods still on it"
        yield Leave(subject=node.name, nodes=(node.name,), reason=reason)


def _left_alone(interruption: Interruption, node: Node, now: dt.datetime) -> str:
    if _is_stale(interruption, now):
        return f"the notice is too old: it was for {interruption.taken_at:%Y-%m-%d %H:%M} UTC"
    if node.disrupted:
        return "Karpenter drains it"
    if node.auto_mode:
        return "EKS Auto Mode drains it"
    return ""


def _eviction(pod: Pod) -> Evict:
    reason = "its node is taken away"
    if pod.do_not_disrupt:
        reason += "; it asked not to be disrupted, but would be killed without its grace period"
    return Evict(
        node=pod.node,
        namespace=pod.namespace,
        pod=pod.name,
        uid=pod.uid,
        deployment=pod.deployment,
        reason=reason,
    )
