"""What stands in the cluster at one moment, as sightings of nodes and pods."""

from collections.abc import Iterator

from local.kubernetes.facts import is_finished, is_ready, is_terminating, owner_of
from local.kubernetes.offers import CAPACITY_LABEL, POOL_LABEL, TYPE_LABEL
from local.kubernetes.resources import NODES, PODS, Object
from local.objects import Objects
from local.recording import Role, Sighting, State

# On the pods of the scene: the workload, and which half of its pair.
WORKLOAD_LABEL = "app"
HALF_LABEL = "capacity"
_ROLES = {"spot": Role.SPOT, "on-demand": Role.ON_DEMAND}


def sightings(store: Objects) -> tuple[Sighting, ...]:
    """Every node and pod, read at one moment."""
    with store.lock:
        return (*_nodes(store), *_pods(store))


def instance_id(node: Object) -> str:
    """The EC2 instance behind a node."""
    return str(node["spec"].get("providerID", "")).rpartition("/")[2]


def _nodes(store: Objects) -> Iterator[Sighting]:
    for node in store.list(NODES):
        labels = node["metadata"].get("labels") or {}
        yield Sighting(
            kind="node",
            name=node["metadata"]["name"],
            role=_ROLES.get(labels.get(CAPACITY_LABEL, ""), Role.OTHER),
            state=_node_state(node),
            place=labels.get(POOL_LABEL, "no pool"),
            instance=" · ".join(filter(None, (labels.get(TYPE_LABEL), instance_id(node)))),
        )


def _node_state(node: Object) -> State:
    if node["spec"].get("unschedulable"):
        return State.CORDONED
    return State.READY if is_ready(node) else State.STARTING


def _pods(store: Objects) -> Iterator[Sighting]:
    for pod in store.list(PODS):
        labels = pod["metadata"].get("labels") or {}
        role = _ROLES.get(labels.get(HALF_LABEL, ""), Role.OTHER)
        yield Sighting(
            kind="pod",
            name=pod["metadata"]["name"],
            role=Role.DAEMON if owner_of(pod).get("kind") == "DaemonSet" else role,
            state=_pod_state(pod),
            place=pod["spec"].get("nodeName", ""),
            workload="" if role is Role.OTHER else labels.get(WORKLOAD_LABEL, ""),
        )


def _pod_state(pod: Object) -> State:
    if is_terminating(pod):
        return State.TERMINATING
    if not pod["spec"].get("nodeName"):
        return State.PENDING
    if is_finished(pod):
        return State.DONE
    return State.READY if is_ready(pod) else State.STARTING
