"""Evictions, with and without disruption budgets."""

import pytest

from tests.contract.client import Answer, Client
from tests.contract.objects import READY, budget, budget_status, budgets, eviction, pod, pods


@pytest.fixture
def model(admin: Client, namespace: str) -> str:
    """The path of a pod that runs, is ready, and has the label app=model."""
    return _run(admin, namespace, "model")


def _run(admin: Client, namespace: str, name: str) -> str:
    path = f"{pods(namespace)}/{name}"
    admin.create(pods(namespace), pod(name, node_name="worker", app="model"))
    assert admin.merge(f"{path}/status", {"status": READY}).status == 200
    return path


def _guard(admin: Client, namespace: str, name: str, allowed: int) -> str:
    path = f"{budgets(namespace)}/{name}"
    admin.create(budgets(namespace), budget(name, app="model"))
    assert admin.merge(f"{path}/status", budget_status(allowed)).status == 200
    return path


def _evict(client: Client, path: str, uid: str = "") -> Answer:
    return client.create(f"{path}/eviction", eviction(path.rsplit("/", maxsplit=1)[-1], uid=uid))


def _is_terminating(admin: Client, path: str) -> bool:
    return "deletionTimestamp" in admin.get(path).body["metadata"]


def test_an_eviction(product: Client, admin: Client, model: str) -> None:
    uid = admin.get(model).body["metadata"]["uid"]
    answer = _evict(product, model, uid)
    assert (answer.status, answer.body["status"]) == (201, "Success")
    assert _is_terminating(admin, model)


def test_no_such_pod(product: Client, namespace: str) -> None:
    answer = _evict(product, f"{pods(namespace)}/none")
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["details"] == {"name": "none", "kind": "pods"}


def test_another_pod_of_the_name(product: Client, admin: Client, model: str) -> None:
    answer = _evict(product, model, "another")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["details"] == {"name": "model", "kind": "Pod"}
    assert not _is_terminating(admin, model)


def test_another_pod_of_the_name_spends_the_budget_all_the_same(
    product: Client, admin: Client, model: str, namespace: str
) -> None:
    path = _guard(admin, namespace, "budget", allowed=1)
    assert _evict(product, model, "another").status == 409
    assert admin.get(path).body["status"]["disruptionsAllowed"] == 0
    assert _evict(product, model, "another").status == 429


def test_the_name_in_the_body_must_agree(product: Client, model: str) -> None:
    assert product.create(f"{model}/eviction", eviction("other")).status == 400


def test_the_namespace_in_the_body_must_agree(product: Client, model: str) -> None:
    body = eviction("model")
    body["metadata"]["namespace"] = "other"
    assert product.create(f"{model}/eviction", body).status == 400


@pytest.mark.parametrize("change", [{"kind": "Pod", "apiVersion": "v1"}, {"deleteOptions": []}])
def test_a_body_that_is_no_eviction(
    product: Client, admin: Client, model: str, change: dict[str, object]
) -> None:
    answer = product.create(f"{model}/eviction", eviction("model") | change)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert not _is_terminating(admin, model)


def test_a_budget_that_allows_it_is_spent(
    product: Client, admin: Client, model: str, namespace: str
) -> None:
    path = _guard(admin, namespace, "budget", allowed=1)
    assert _evict(product, model).status == 201
    status = admin.get(path).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["model"]
    assert _evict(product, _run(admin, namespace, "second")).status == 429


def test_a_budget_that_refuses(product: Client, admin: Client, model: str, namespace: str) -> None:
    _guard(admin, namespace, "budget", allowed=0)
    answer = _evict(product, model)
    assert (answer.status, answer.body["reason"]) == (429, "TooManyRequests")
    cause = answer.body["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert "budget needs 2 healthy pods and has 2 currently" in cause["message"]
    assert "retry-after" not in answer.headers
    assert not _is_terminating(admin, model)


def test_a_budget_without_a_status(
    product: Client, admin: Client, model: str, namespace: str
) -> None:
    admin.create(budgets(namespace), budget("budget", app="model"))
    answer = _evict(product, model)
    assert (answer.status, answer.body["reason"]) == (429, "TooManyRequests")
    cause = answer.body["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert "still being processed" in cause["message"]


def test_two_budgets_on_one_pod(product: Client, admin: Client, model: str, namespace: str) -> None:
    for name in ("one", "two"):
        _guard(admin, namespace, name, allowed=1)
    answer = _evict(product, model)
    assert (answer.status, answer.body["status"]) == (500, "Failure")
    assert "more than one PodDisruptionBudget" in answer.body["message"]


def test_a_budget_of_other_pods(product: Client, admin: Client, model: str, namespace: str) -> None:
    admin.create(budgets(namespace), budget("budget", app="other"))
    assert _evict(product, model).status == 201


def test_a_terminating_pod_is_evicted_again(
    product: Client, admin: Client, model: str, namespace: str
) -> None:
    admin.delete(model)
    _guard(admin, namespace, "budget", allowed=0)
    assert _evict(product, model).status == 201


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_needs_no_budget(
    product: Client, admin: Client, model: str, namespace: str, phase: str
) -> None:
    admin.merge(f"{model}/status", {"status": {"phase": phase}})
    _guard(admin, namespace, "budget", allowed=0)
    assert _evict(product, model).status == 201
    assert admin.get(model).status == 404


def test_a_pending_pod_needs_no_budget(product: Client, admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model", app="model"))
    _guard(admin, namespace, "budget", allowed=0)
    assert _evict(product, f"{pods(namespace)}/model").status == 201


def test_a_pod_that_is_not_ready_spends_nothing_of_a_healthy_budget(
    product: Client, admin: Client, model: str, namespace: str
) -> None:
    conditions = [{"type": "Ready", "status": "False"}]
    admin.merge(f"{model}/status", {"status": {"conditions": conditions}})
    path = _guard(admin, namespace, "budget", allowed=0)
    assert _evict(product, model).status == 201
    assert "disruptedPods" not in admin.get(path).body["status"]
