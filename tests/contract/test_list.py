"""Lists: pages and selectors."""

from typing import Any

import pytest

from tests.contract.client import Client, Server
from tests.contract.objects import NODE_POOLS, NODES, READY, node, node_pool, pod, pods


def _names(body: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


@pytest.fixture
def five(admin: Client, namespace: str) -> str:
    """The path of five pods, model-0 to model-4; odd ones are on node `odd`."""
    for number in range(5):
        body = pod(f"model-{number}", node_name="odd" if number % 2 else "even", n=str(number))
        assert admin.create(pods(namespace), body).status == 201
    return pods(namespace)


def test_a_whole_list(admin: Client, five: str) -> None:
    body = admin.get(five).body
    assert (body["kind"], body["apiVersion"]) == ("PodList", "v1")
    assert _names(body) == [f"model-{number}" for number in range(5)]
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert "continue" not in body["metadata"]


def test_an_empty_list(admin: Client, namespace: str) -> None:
    assert admin.get(pods(namespace)).body["items"] == []


def test_items_of_a_built_in_kind_do_not_repeat_it(admin: Client, five: str) -> None:
    assert "kind" not in admin.get(five).body["items"][0]


def test_items_of_a_custom_kind_do(admin: Client, name: str) -> None:
    admin.create(NODE_POOLS, node_pool(name))
    assert admin.get(NODE_POOLS).body["items"][0]["kind"] == "NodePool"


def test_pages(admin: Client, five: str) -> None:
    first = admin.get(five, limit=2).body
    assert _names(first) == ["model-0", "model-1"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = admin.get(five, limit=2, **{"continue": first["metadata"]["continue"]}).body
    assert _names(second) == ["model-2", "model-3"]
    assert second["metadata"]["remainingItemCount"] == 1
    third = admin.get(five, limit=2, **{"continue": second["metadata"]["continue"]}).body
    assert _names(third) == ["model-4"]
    assert "continue" not in third["metadata"]
    assert third["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_all_pages_show_one_moment(admin: Client, five: str) -> None:
    first = admin.get(five, limit=3).body
    admin.create(five, pod("model-3a"))
    admin.delete(f"{five}/model-4", {"gracePeriodSeconds": 0})
    rest = admin.get(five, limit=3, **{"continue": first["metadata"]["continue"]}).body
    assert _names(rest) == ["model-3", "model-4"]


def test_a_page_through_a_selector(admin: Client, five: str) -> None:
    query = {"limit": 1, "fieldSelector": "spec.nodeName=odd"}
    first = admin.get(five, **query).body
    assert _names(first) == ["model-1"]
    assert "remainingItemCount" not in first["metadata"]
    rest = admin.get(five, **query, **{"continue": first["metadata"]["continue"]}).body
    assert _names(rest) == ["model-3"]


def test_an_expired_token(admin: Client, server: Server, five: str) -> None:
    token = admin.get(five, limit=2).body["metadata"]["continue"]
    server.expire_tokens()
    answer = admin.get(five, limit=2, **{"continue": token})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    fresh = answer.body["metadata"]["continue"]
    rest = admin.get(five, **{"continue": fresh}).body
    assert _names(rest) == ["model-2", "model-3", "model-4"]


@pytest.mark.parametrize("token", ["garbled", "!!", "e30", "bnVsbA"])
def test_a_token_that_is_none(admin: Client, five: str, token: str) -> None:
    answer = admin.get(five, limit=2, **{"continue": token})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("limit", ["many", "", "1.5"])
def test_a_limit_that_is_none(admin: Client, five: str, limit: str) -> None:
    assert admin.get(five, limit=limit).status == 400


@pytest.mark.parametrize("limit", [0, -1, 99_999_999_999])
def test_a_limit_beyond_the_list(admin: Client, five: str, limit: int) -> None:
    assert len(_names(admin.get(five, limit=limit).body)) == 5


def test_pods_of_a_node_in_all_namespaces(product: Client, admin: Client, namespace: str) -> None:
    for number in range(2):
        body = pod(f"model-{number}", node_name=f"{namespace}-{number}")
        admin.create(pods(namespace), body)
    body = product.get("/api/v1/pods", fieldSelector=f"spec.nodeName={namespace}-1", limit=500).body
    assert _names(body) == ["model-1"]


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [
        ("metadata.name=model-2", [2]),
        ("metadata.name!=model-2", [0, 1, 3, 4]),
        ("spec.nodeName==odd", [1, 3]),
        ("spec.nodeName=odd,metadata.name!=model-1", [3]),
        ("status.phase=Running", [4]),
        ("status.phase=Pending", [0, 1, 2, 3]),
        ("spec.nodeName=", []),
    ],
)
def test_field_selectors(admin: Client, five: str, selector: str, numbers: list[int]) -> None:
    admin.merge(f"{five}/model-4/status", {"status": READY})
    names = _names(admin.get(five, fieldSelector=selector).body)
    assert names == [f"model-{number}" for number in numbers]


@pytest.mark.parametrize("selector", ["spec.priority=1", "nonsense"])
def test_a_field_that_cannot_be_selected(admin: Client, five: str, selector: str) -> None:
    assert admin.get(five, fieldSelector=selector).status == 400


def test_a_field_of_a_custom_resource_cannot_be_selected(admin: Client) -> None:
    answer = admin.get(NODE_POOLS, fieldSelector="spec.weight=1")
    assert answer.status == 400
    assert answer.body["message"] == "field label not supported: spec.weight"


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [
        ("n=1", [1]),
        ("n==1", [1]),
        ("n!=1", [0, 2, 3, 4]),
        ("n in (1,3)", [1, 3]),
        ("n in (1, 3),n!=3", [1]),
        ("n notin (1,3)", [0, 2, 4]),
        ("n", [0, 1, 2, 3, 4]),
        ("!n", []),
        ("other!=1", [0, 1, 2, 3, 4]),
        ("other notin (1)", [0, 1, 2, 3, 4]),
        ("n>2", [3, 4]),
        ("n<2", [0, 1]),
    ],
)
def test_label_selectors(admin: Client, five: str, selector: str, numbers: list[int]) -> None:
    names = _names(admin.get(five, labelSelector=selector).body)
    assert names == [f"model-{number}" for number in numbers]


@pytest.mark.parametrize(
    "selector", ["n in 1", "n=(1)", "=1", "n=1=2", "n=" + "1" * 64, "n in (1,-)", "Team/n=1", "n>x"]
)
def test_a_label_selector_that_is_none(admin: Client, five: str, selector: str) -> None:
    assert admin.get(five, labelSelector=selector).status == 400


def test_cordoned_nodes(admin: Client, name: str) -> None:
    admin.create(NODES, node(name))
    admin.merge(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
    cordoned = _names(admin.get(NODES, fieldSelector="spec.unschedulable=true").body)
    assert name in cordoned
