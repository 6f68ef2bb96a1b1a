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

    Other nodes that are leaving are read with them: their pods cannot be counted on either.
    One list of nodes and one of NodeClaims, however many instances; then one list of pods a
    node, and one of Deployments a namespace.
    """
    deleted = kube.nodes_of_deleted_claims()
    nodes = tuple(
        node
        for node in (_with_claim(node, deleted) for node in kube.nodes())
        if node.instance_id in instance_ids or node.is_leaving(now)
    )
    with ThreadPoolExecutor(max_workers=PARALLEL_CALLS) as pool:
        pods = [pod for page in pool.map(kube.pods, (node.name for node in nodes)) for pod in page]
        namespaces = _namespaces(pods, cluster)
        deployments = [one for page in pool.map(kube.deployments, namespaces) for one in page]
    return Snapshot(nodes=nodes, pods=tuple(pods), deployments=tuple(deployments))


def _with_claim(node: Node, deleted: frozenset[str]) -> Node:
    return msgspec.structs.replace(node, disrupted=True) if node.name in deleted else node


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
