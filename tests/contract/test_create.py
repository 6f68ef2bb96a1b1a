"""What creating answers: the stored object, or what is wrong with it."""

from typing import Any

import pytest

from tests.contract.client import Client
from tests.contract.objects import (
    NODE_POOLS,
    NODES,
    budget,
    budgets,
    deployment,
    deployments,
    node,
    node_pool,
    pods,
)
from tests.contract.objects import pod as pod_body


def test_the_server_completes_the_metadata(admin: Client, name: str) -> None:
    answer = admin.create(NODES, node(name))
    assert answer.status == 201
    assert {"uid", "resourceVersion", "creationTimestamp"} <= answer.body["metadata"].keys()


def test_what_was_created_can_be_read(admin: Client, name: str) -> None:
    created = admin.create(NODES, node(name)).body
    assert admin.get(f"{NODES}/{name}").body == created


def test_a_name_is_made_from_a_prefix(admin: Client, namespace: str) -> None:
    body = pod_body("")
    body["metadata"] = {"generateName": "model-"}
    answers = [admin.create(pods(namespace), body) for _ in range(2)]
    names = {answer.body["metadata"]["name"] for answer in answers}
    assert len(names) == 2
    assert all(each.startswith("model-") for each in names)


def test_a_second_one_of_the_name_is_a_conflict(admin: Client, name: str) -> None:
    admin.create(NODES, node(name))
    answer = admin.create(NODES, node(name))
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.body["details"] == {"name": name, "kind": "nodes"}


def test_an_error_is_a_status(admin: Client, name: str) -> None:
    answer = admin.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'deployments.apps "{name}" not found',
        "reason": "NotFound",
        "details": {"name": name, "group": "apps", "kind": "deployments"},
        "code": 404,
    }


def test_a_namespace_must_exist(admin: Client, name: str) -> None:
    answer = admin.create(pods(name), pod_body("model"))
    assert (answer.status, answer.body["details"]["kind"]) == (404, "namespaces")


def test_the_namespace_of_path_and_object_must_agree(admin: Client, namespace: str) -> None:
    body = pod_body("model")
    body["metadata"]["namespace"] = "default"
    assert admin.create(pods(namespace), body).status == 400


def test_a_status_is_not_created_with_a_pod(admin: Client, namespace: str) -> None:
    body = pod_body("model") | {"status": {"phase": "Running"}}
    assert admin.create(pods(namespace), body).body["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("content", "content_type", "status", "reason"),
    [
        (b"{", "application/json", 400, "BadRequest"),
        (b'{"kind": "Pod", "apiVersion": "v1"}', "application/json", 400, "BadRequest"),
        (b'{"kind": "Node", "apiVersion": "v1", "spec": 1}', "application/json", 400, "BadRequest"),
        (b"name=x", "text/plain", 415, "UnsupportedMediaType"),
        (b" " * (3 * 1024 * 1024 + 1), "application/json", 413, "RequestEntityTooLarge"),
    ],
)
def test_a_body_that_is_no_node(
    admin: Client, content: bytes, content_type: str, status: int, reason: str
) -> None:
    answer = admin.call("POST", NODES, content, content_type)
    assert (answer.status, answer.body["reason"]) == (status, reason)


@pytest.mark.parametrize("wrong", ["Upper", "under_score", "-dash", "a" * 254])
def test_a_name_must_be_a_dns_name(admin: Client, wrong: str) -> None:
    answer = admin.create(NODES, node(wrong))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


def test_a_name_is_needed(admin: Client) -> None:
    answer = admin.create(NODES, node(""))
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["reason"] == "FieldValueRequired"


def _without_containers() -> dict[str, Any]:
    body = pod_body("model")
    body["spec"]["containers"] = []
    return body


def test_a_pod_needs_containers(admin: Client, namespace: str) -> None:
    answer = admin.create(pods(namespace), _without_containers())
    assert answer.status == 422
    assert "spec.containers" in {each["field"] for each in answer.body["details"]["causes"]}


def test_replicas_are_not_negative(admin: Client, namespace: str) -> None:
    answer = admin.create(deployments(namespace), deployment("web", -1))
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == "spec.replicas"


def test_a_selector_must_match_its_template(admin: Client, namespace: str) -> None:
    body = deployment("web", 1)
    body["spec"]["selector"]["matchLabels"]["app"] = "other"
    assert admin.create(deployments(namespace), body).status == 422


@pytest.mark.parametrize("weight", [0, 101])
def test_a_pool_weight_out_of_bounds(admin: Client, name: str, weight: int) -> None:
    answer = admin.create(NODE_POOLS, node_pool(name, weight=weight))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    details = answer.body["details"]
    assert (details["group"], details["kind"]) == ("karpenter.sh", "NodePool")
    assert details["causes"][0]["field"] == "spec.weight"


@pytest.mark.parametrize("weight", [1, 100])
def test_a_pool_weight_at_its_bounds(admin: Client, name: str, weight: int) -> None:
    assert admin.create(NODE_POOLS, node_pool(name, weight=weight)).status == 201


@pytest.mark.parametrize(
    ("taints", "field", "reason"),
    [
        ([{"key": "a"}], "metadata.taints[0].effect", "FieldValueRequired"),
        ([{"key": "a", "effect": "Never"}], "metadata.taints[0].effect", "FieldValueNotSupported"),
        ([{"key": "a", "effect": "NoExecute"}] * 2, "metadata.taints[1]", "FieldValueDuplicate"),
    ],
)
def test_a_taint_that_is_none(
    admin: Client, name: str, taints: list[dict[str, str]], field: str, reason: str
) -> None:
    answer = admin.create(NODES, node(name) | {"spec": {"taints": taints}})
    cause = answer.body["details"]["causes"][0]
    assert (answer.status, cause["field"], cause["reason"]) == (422, field, reason)


@pytest.mark.parametrize("value", [-1, "101%", "many"])
def test_a_budget_that_no_pods_can_meet(admin: Client, namespace: str, value: object) -> None:
    body = budget("budget", app="model")
    body["spec"]["minAvailable"] = value
    answer = admin.create(budgets(namespace), body)
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == "spec.minAvailable"
