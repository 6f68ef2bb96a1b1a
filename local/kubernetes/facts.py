"""What the controllers read out of nodes and pods."""

from collections.abc import Iterable, Mapping
from typing import Any

from local.kubernetes.resources import Object

GPU = "nvidia.com/gpu"
_FINISHED = ("Succeeded", "Failed")
_BLOCKING = ("NoSchedule", "NoExecute")


def path_of(body: Object) -> str:
    """`<namespace>/<name>`, or the name alone."""
    metadata = body["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def is_ready(body: Object) -> bool:
    """Whether a node or a pod has the condition Ready."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def is_terminating(body: Object) -> bool:
    return "deletionTimestamp" in body["metadata"]


def is_finished(pod: Object) -> bool:
    return pod["status"].get("phase") in _FINISHED


def is_active(pod: Object) -> bool:
    """Whether the pod counts as one of its controller's replicas."""
    return not is_finished(pod) and not is_terminating(pod)


def owner_of(body: Object) -> Mapping[str, Any]:
    """The owner reference of the controller, or {}."""
    owners = body["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def owner_reference(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def gpus_requested(pod: Object) -> int:
    """GPUs of all containers together. A limit is a request too, as Kubernetes has it."""
    total = 0
    for container in pod["spec"].get("containers") or ():
        resources = container.get("resources") or {}
        amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        total += _count(amounts.get(GPU, 0))
    return total


def gpus_allocatable(node: Object) -> int:
    return _count(((node.get("status") or {}).get("allocatable") or {}).get(GPU, 0))


def _count(amount: object) -> int:
    text = str(amount)
    return int(text) if text.isascii() and text.isdigit() else 0


def tolerates(pod: Object, taints: Iterable[Mapping[str, str]]) -> bool:
    """Whether the pod may be put on a node with these taints."""
    tolerations = pod["spec"].get("tolerations") or ()
    blocking = [taint for taint in taints if taint.get("effect") in _BLOCKING]
    return all(any(_tolerated(taint, each) for each in tolerations) for taint in blocking)


def _tolerated(taint: Mapping[str, str], toleration: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    key, value = toleration.get("key"), toleration.get("value") or ""
    return key == taint.get("key") and value == (taint.get("value") or "")
