"""The eviction of a pod, within its disruption budgets."""

from local.kubernetes.facts import is_ready
from local.kubernetes.options import DeleteOptions, delete_options
from local.kubernetes.resources import BUDGETS, PODS, Object, rfc3339
from local.kubernetes.selectors import selector_test
from local.kubernetes.status import ApiError, bad_request, success, too_many_requests
from local.kubernetes.store import Store

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, "
    "which the eviction subresource does not support."
)
_EVICTIONS = (("policy/v1", "Eviction"), ("policy/v1beta1", "Eviction"))
# A pod in one of these does not serve: its budget is not asked.
_UNGUARDED_PHASES = ("Succeeded", "Failed", "Pending")


def evict(store: Store, namespace: str, name: str, body: Object) -> Object:
    """Evict the pod; the Status of success, or ApiError as the real server has it."""
    options = _options(namespace, name, body)
    with store.lock:
        pod = store.get(PODS, name, namespace)
        # Another pod of the name spends the budget too: the preconditions are the deletion's.
        if budget := _guard(store, pod):
            _spend(store, budget, pod)
        store.delete(
            PODS,
            name,
            namespace,
            expected=options.expected,
            grace_seconds=options.grace_seconds,
        )
    return success(201)


def _options(namespace: str, name: str, body: Object) -> DeleteOptions:
    if (body.get("apiVersion"), body.get("kind")) not in _EVICTIONS:
        raise bad_request("the object provided is unrecognized (must be of type Eviction)")
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    if metadata.get("namespace") not in (None, "", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    options = body.get("deleteOptions")
    if options is None:
        return DeleteOptions()
    if not isinstance(options, dict):
        raise bad_request("cannot decode the object: deleteOptions must be an object")
    return delete_options(options, {})


def _guard(store: Store, pod: Object) -> Object | None:
    """The budget that must agree, or None; two of them are an error of the server."""
    metadata, status = pod["metadata"], pod["status"]
    if status.get("phase") in _UNGUARDED_PHASES or "deletionTimestamp" in metadata:
        return None
    labels = metadata.get("labels") or {}
    budgets = [
        budget
        for budget in store.list(BUDGETS, metadata["namespace"])
        if selector_test(budget["spec"].get("selector"))(labels)
    ]
    if len(budgets) > 1:
        raise ApiError(500, "", _TWO_BUDGETS)
    if not budgets or _is_spare(budgets[0], pod):
        return None
    return budgets[0]


def _is_spare(budget: Object, pod: Object) -> bool:
    """Whether the pod is not ready and the budget is met without it."""
    status = budget.get("status") or {}
    if is_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = int(status.get("desiredHealthy", 0))
    return 0 < desired <= int(status.get("currentHealthy", 0))


def _spend(store: Store, budget: Object, pod: Object) -> None:
    metadata, status = budget["metadata"], budget.get("status") or {}
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata["generation"]:
        cause = f"The disruption budget {name} is still being processed by the server."
        raise too_many_requests(_REFUSED, cause, retry_after_seconds=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        needed, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"The disruption budget {name} needs {needed} healthy pods and has {healthy}"
        raise too_many_requests(_REFUSED, f"{cause} currently")
    spent = {
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {pod["metadata"]["name"]: rfc3339(store.clock())},
    }
    store.patch(BUDGETS, name, {"status": spent}, metadata["namespace"], part="status")
