"""Plays the disruption controller: what each budget allows now."""

import math

from local.kubernetes.facts import is_active, is_ready, owner_of
from local.kubernetes.resources import BUDGETS, PODS, REPLICA_SETS, Object
from local.kubernetes.selectors import selector_test
from local.kubernetes.store import Store


def update_budgets(store: Store) -> None:
    """Write the status of every budget."""
    for budget in store.list(BUDGETS):
        metadata = budget["metadata"]
        accepts = selector_test(budget["spec"].get("selector"))
        pods = [
            pod
            for pod in store.list(PODS, metadata["namespace"])
            if is_active(pod) and accepts(pod["metadata"].get("labels") or {})
        ]
        status = _status(budget, pods, _expected(store, pods))
        store.patch(BUDGETS, metadata["name"], {"status": status}, metadata["namespace"])


def _status(budget: Object, pods: list[Object], scale: int) -> Object:
    spec = budget["spec"]
    expected = len(pods) if isinstance(spec.get("minAvailable"), int) else scale
    desired = desired_healthy(spec, expected)
    healthy = sum(map(is_ready, pods))
    return {
        "observedGeneration": budget["metadata"]["generation"],
        "expectedPods": expected,
        "desiredHealthy": desired,
        "currentHealthy": healthy,
        "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
        # Evicted pods are seen to terminate at once here: none is still on its way.
        "disruptedPods": None,
    }


def desired_healthy(spec: Object, expected: int) -> int:
    """How many pods must stay; percentages are rounded up, as the controller does."""
    if "maxUnavailable" in spec:
        return max(0, expected - _share(spec["maxUnavailable"], expected))
    return _share(spec.get("minAvailable", 1), expected)


def _share(amount: int | str, whole: int) -> int:
    if isinstance(amount, int):
        return amount
    return math.ceil(int(amount.removesuffix("%")) * whole / 100)


def _expected(store: Store, pods: list[Object]) -> int:
    """The replicas that the controllers of these pods want, each controller once."""
    owners = {owner_of(pod).get("uid") for pod in pods}
    sets = store.list(REPLICA_SETS)
    return sum(each["spec"]["replicas"] for each in sets if each["metadata"]["uid"] in owners)
