"""One reading of a cluster, in as few calls as the decision can do with."""

import datetime as dt
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import msgspec

from lambdas.adapters.kube import Kube
from lambdas.core.policy import Cluster
from lambdas.core.snapshot import Node, Pod, Snapshot

# Calls at once to one API server; its own default is to serve 600 at a time.
PARALLEL_CALLS = 8


def gather(
    kube: Kube, instance_ids: Collection[str], cluster: Cluster, now: dt.datetime
) -> Snapshot:
    """Read what is on the nodes of these instances, and the Deployments that it concerns.

    Nodes that carry an earlier notice are read with them: their pods are leaving as well.
    One list of nodes and one of NodeClaims, however many instances; then one list of pods a
    node, and one of Deployments a namespace.
    """
    listed = [
        node for node in kube.nodes() if node.instance_id in instance_ids or node.is_leaving(now)
    ]
    if not listed:
        return Snapshot()
    nodes = _with_claims(listed, kube.nodes_of_deleted_claims())
    with ThreadPoolExecutor(max_workers=PARALLEL_CALLS) as pool:
        pods = [pod for page in pool.map(kube.pods, (node.name for node in nodes)) for pod in page]
        namespaces = _namespaces(pods, cluster)
        deployments = [one for page in pool.map(kube.deployments, namespaces) for one in page]
    return Snapshot(nodes=nodes, pods=tuple(pods), deployments=tuple(deployments))


def _with_claims(nodes: list[Node], deleted: frozenset[str]) -> tuple[Node, ...]:
    return tuple(
        msgspec.structs.replace(node, drained_by="Karpenter")
        if node.name in deleted and not node.drained_by
        else node
        for node in nodes
    )


def _namespaces(pods: list[Pod], cluster: Cluster) -> list[str]:
    """Namespaces of the workloads that have a spot replica among these pods."""
    present = {(pod.namespace, pod.deployment) for pod in pods}
    return sorted(
        {
            workload.namespace
            for workload in cluster.workloads.values()
            if (workload.namespace, workload.spot) in present
        }
    )
