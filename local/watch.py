"""What stands in the cluster at one moment, as sightings of nodes and pods."""

from collections.abc import Iterator
from typing import Any

from local.kubernetes import Store
from local.kubernetes.resources import NODES, PODS, Object
from local.recording import Role, Sighting, State

POOL_LABEL = "karpenter.sh/nodepool"
CAPACITY_LABEL = "karpenter.sh/capacity-type"
TYPE_LABEL = "node.kubernetes.io/instance-type"
# On the pods of the scene: the workload, and which half of its pair.
WORKLOAD_LABEL = "app"
HALF_LABEL = "capacity"
_ROLES = {"spot": Role.SPOT, "on-demand": Role.ON_DEMAND}


def sightings(store: Store) -> tuple[Sighting, ...]:
    """Every node and pod, read as one."""
    with store.lock:
        return (*_nodes(store), *_pods(store))


def is_ready(body: Object) -> bool:
    """Whether a node or pod has the condition Ready."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def owner_kind(pod: Object) -> str:
    """The kind of what controls a pod."""
    owners: list[dict[str, Any]] = pod["metadata"].get("ownerReferences") or []
    return next((str(owner["kind"]) for owner in owners if owner.get("controller")), "")


def instance_id(node: Object) -> str:
    """The EC2 instance behind a node."""
    return str(node["spec"].get("providerID", "")).rpartition("/")[2]


def _nodes(store: Store) -> Iterator[Sighting]:
    for node in store.list(NODES):
        labels = node["metadata"].get("labels") or {}
        yield Sighting(
            kind="node",
            name=node["metadata"]["name"],
            role=_ROLES.get(labels.get(CAPACITY_LABEL, ""), Role.OTHER),
            state=_node_state(node),
            place=labels.get(POOL_LABEL, "no pool"),
            instance=" · ".join(filter(None, (instance_id(node), labels.get(TYPE_LABEL)))),
        )


def _node_state(node: Object) -> State:
    if node["spec"].get("unschedulable"):
        return State.CORDONED
    return State.READY if is_ready(node) else State.STARTING


def _pods(store: Store) -> Iterator[Sighting]:
    for pod in store.list(PODS):
        labels = pod["metadata"].get("labels") or {}
        half = _ROLES.get(labels.get(HALF_LABEL, ""), Role.OTHER)
        yield Sighting(
            kind="pod",
            name=pod["metadata"]["name"],
            role=Role.DAEMON if owner_kind(pod) == "DaemonSet" else half,
            state=_pod_state(pod),
            place=pod["spec"].get("nodeName", ""),
            workload="" if half is Role.OTHER else labels.get(WORKLOAD_LABEL, ""),
        )


def _pod_state(pod: Object) -> State:
    if "deletionTimestamp" in pod["metadata"]:
        return State.TERMINATING
    if not pod["spec"].get("nodeName"):
        return State.PENDING
    if pod["status"].get("phase") in ("Succeeded", "Failed"):
        return State.DONE
    return State.READY if is_ready(pod) else State.STARTING
