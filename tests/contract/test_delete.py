"""Deletion: preconditions, grace and finalizers."""

from tests.contract.client import Client
from tests.contract.objects import NODE_CLAIMS, NODES, node, node_claim, pod, pods

_FINALIZER = "karpenter.sh/termination"


def test_a_node_is_gone_at_once(admin: Client, name: str) -> None:
    admin.create(NODES, node(name))
    answer = admin.delete(f"{NODES}/{name}")
    assert (answer.status, answer.body["status"]) == (200, "Success")
    assert answer.body["details"]["name"] == name
    assert admin.get(f"{NODES}/{name}").status == 404


def test_nothing_to_delete(admin: Client, name: str) -> None:
    assert admin.delete(f"{NODES}/{name}").status == 404


def test_another_uid_is_a_conflict(admin: Client, name: str) -> None:
    admin.create(NODES, node(name))
    answer = admin.delete(f"{NODES}/{name}", {"preconditions": {"uid": "another"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert admin.get(f"{NODES}/{name}").status == 200


def test_the_right_uid_is_not(admin: Client, name: str) -> None:
    uid = admin.create(NODES, node(name)).body["metadata"]["uid"]
    assert admin.delete(f"{NODES}/{name}", {"preconditions": {"uid": uid}}).status == 200


def test_a_pod_without_a_node_is_gone_at_once(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model"))
    admin.delete(f"{pods(namespace)}/model")
    assert admin.get(f"{pods(namespace)}/model").status == 404


def test_a_pod_on_a_node_has_its_grace(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model", node_name="worker"))
    metadata = admin.delete(f"{pods(namespace)}/model").body["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert "deletionTimestamp" in metadata
    assert admin.get(f"{pods(namespace)}/model").status == 200


def test_grace_can_be_shortened(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model", node_name="worker"))
    path = f"{pods(namespace)}/model"
    admin.delete(path)
    for asked, left in ((60, 30), (5, 5)):
        metadata = admin.delete(path, {"gracePeriodSeconds": asked}).body["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == left


def test_no_grace_at_all(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model", node_name="worker"))
    admin.delete(f"{pods(namespace)}/model", {"gracePeriodSeconds": 0})
    assert admin.get(f"{pods(namespace)}/model").status == 404


def test_a_finalizer_holds_an_object(admin: Client, name: str) -> None:
    path = f"{NODE_CLAIMS}/{name}"
    admin.create(NODE_CLAIMS, node_claim(name, [_FINALIZER]))
    assert "deletionTimestamp" in admin.delete(path).body["metadata"]
    assert admin.get(path).status == 200
    admin.merge(path, {"metadata": {"finalizers": None}})
    assert admin.get(path).status == 404


def test_another_version_is_a_conflict(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model", node_name="worker"))
    path = f"{pods(namespace)}/model"
    answer = admin.delete(path, {"preconditions": {"resourceVersion": "1"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "deletionTimestamp" not in admin.get(path).body["metadata"]


def test_the_conflict_names_the_kind(admin: Client, name: str) -> None:
    admin.create(NODES, node(name))
    answer = admin.delete(f"{NODES}/{name}", {"preconditions": {"uid": "another"}})
    assert answer.body["details"] == {"name": name, "kind": "Node"}
    assert answer.body["message"].startswith(f'Operation cannot be fulfilled on Node "{name}": ')
    assert answer.body["message"].endswith("might have been deleted and then recreated")


def test_waiting_to_go_is_a_new_generation(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model", node_name="worker"))
    path = f"{pods(namespace)}/model"
    for _ in range(2):
        assert admin.delete(path).body["metadata"]["generation"] == 2
