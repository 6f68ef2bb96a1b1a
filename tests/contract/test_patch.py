"""Merge patches: what they change, what they may not, and who was first."""

import pytest

from tests.contract.client import MERGE, STRATEGIC, Client
from tests.contract.objects import NODE_POOLS, NODES, READY, node, node_pool, pod, pods


@pytest.fixture
def pool(admin: Client, name: str) -> str:
    assert admin.create(NODE_POOLS, node_pool(name, weight=10)).status == 201
    return f"{NODE_POOLS}/{name}"


@pytest.fixture
def worker(admin: Client, name: str) -> str:
    assert admin.create(NODES, node(name)).status == 201
    return f"{NODES}/{name}"


def test_a_merge_patch_changes_only_what_it_names(admin: Client, pool: str) -> None:
    answer = admin.merge(pool, {"spec": {"weight": 20}})
    assert answer.status == 200
    assert answer.body["spec"]["weight"] == 20
    assert len(answer.body["spec"]["template"]["spec"]["requirements"]) == 1


def test_null_takes_a_field_away(admin: Client, pool: str) -> None:
    assert "weight" not in admin.merge(pool, {"spec": {"weight": None}}).body["spec"]


def test_a_list_replaces_a_list(admin: Client, pool: str) -> None:
    arch = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
    patch = {"spec": {"template": {"spec": {"requirements": [arch]}}}}
    answer = admin.merge(pool, patch)
    assert answer.body["spec"]["template"]["spec"]["requirements"] == [arch]


def test_a_list_of_taints_replaces_the_taints(admin: Client, worker: str) -> None:
    taints = [{"key": key, "value": "x", "effect": "NoSchedule"} for key in ("a", "b")]
    admin.merge(worker, {"spec": {"taints": taints}})
    answer = admin.merge(worker, {"spec": {"taints": taints[1:]}})
    assert answer.body["spec"]["taints"] == taints[1:]


def test_cordon_and_annotate_in_one_patch(product: Client, worker: str) -> None:
    annotations = {"shiftwright.dev/interrupted-at": "2026-01-01T00:00:00Z"}
    patch = {"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}}
    answer = product.merge(f"{worker}?fieldManager=shiftwright", patch)
    assert answer.status == 200
    assert answer.body["spec"]["unschedulable"] is True
    assert answer.body["metadata"]["annotations"] == annotations


def test_uncordoned_is_not_said(admin: Client, worker: str) -> None:
    admin.merge(worker, {"spec": {"unschedulable": True}})
    answer = admin.merge(worker, {"spec": {"unschedulable": False}})
    assert "unschedulable" not in answer.body["spec"]


def test_no_strategic_merge_on_a_custom_resource(admin: Client, pool: str) -> None:
    answer = admin.call("PATCH", pool, {"spec": {"weight": 20}}, STRATEGIC)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")
    types = (
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert answer.body["message"].endswith(f"accepted media types include: {types}")


def test_plain_json_is_no_patch(admin: Client, worker: str) -> None:
    answer = admin.call("PATCH", worker, {"spec": {}}, "application/json")
    assert answer.status == 415
    assert answer.body["message"] == "415: Unsupported Media Type"


def test_a_malformed_patch(admin: Client, worker: str) -> None:
    assert admin.call("PATCH", worker, b"{", MERGE).status == 400


def test_nothing_to_patch(admin: Client, name: str) -> None:
    assert admin.merge(f"{NODES}/{name}", {"spec": {}}).status == 404


def test_an_invalid_result_is_refused(admin: Client, pool: str) -> None:
    assert admin.merge(pool, {"spec": {"weight": 101}}).status == 422


def test_a_stale_version_is_a_conflict(admin: Client, pool: str, name: str) -> None:
    stale = admin.get(pool).body["metadata"]["resourceVersion"]
    admin.merge(pool, {"spec": {"weight": 20}})
    patch = {"metadata": {"resourceVersion": stale}, "spec": {"weight": 30}}
    answer = admin.merge(pool, patch)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["details"]["name"] == name
    assert admin.get(pool).body["spec"]["weight"] == 20


@pytest.mark.parametrize("version", ["", "0"])
def test_a_version_that_means_any(admin: Client, worker: str, pool: str, version: str) -> None:
    patch = {"metadata": {"resourceVersion": version, "labels": {"team": "ml"}}}
    assert admin.merge(worker, patch).status == 200
    # Custom resources are stricter.
    assert admin.merge(pool, patch).status == 422


def test_a_version_that_is_no_number_is_the_servers_fault(admin: Client, pool: str) -> None:
    assert admin.merge(pool, {"metadata": {"resourceVersion": "junk"}}).status == 500


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"name": "other"}, 400),
        ({"name": None}, 400),
        (None, 400),
        ({"uid": "another"}, 422),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, 422),
        # What the object does not have anyway.
        ({"namespace": "default"}, 200),
    ],
)
def test_who_an_object_is_cannot_be_patched(
    admin: Client, worker: str, metadata: object, status: int
) -> None:
    assert admin.merge(worker, {"metadata": metadata}).status == status


def test_an_object_stays_in_its_namespace(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model"))
    patch = {"metadata": {"namespace": "default"}}
    assert admin.merge(f"{pods(namespace)}/model", patch).status == 400


def test_the_current_version_is_none(admin: Client, pool: str) -> None:
    version = admin.get(pool).body["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "spec": {"weight": 30}}
    answer = admin.merge(pool, patch)
    assert answer.status == 200
    assert answer.body["metadata"]["resourceVersion"] != version


def test_a_patch_of_nothing_is_no_new_version(admin: Client, pool: str) -> None:
    before = admin.get(pool).body
    assert admin.merge(pool, {"spec": {"weight": 10}}).body == before


def test_the_generation_counts_specs_only(admin: Client, pool: str) -> None:
    labelled = admin.merge(pool, {"metadata": {"labels": {"team": "ml"}}})
    assert labelled.body["metadata"]["generation"] == 1
    changed = admin.merge(pool, {"spec": {"weight": 11}})
    assert changed.body["metadata"]["generation"] == 2


def test_the_server_keeps_the_creation_time(admin: Client, worker: str) -> None:
    created = admin.get(worker).body["metadata"]["creationTimestamp"]
    answer = admin.merge(worker, {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})
    assert answer.status == 200
    assert answer.body["metadata"]["creationTimestamp"] == created


def test_a_result_that_is_no_node(admin: Client, worker: str) -> None:
    answer = admin.merge(worker, {"spec": {"taints": "none"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"].keys() == {"causes"}
    assert answer.body["details"]["causes"][0]["field"] == "patch"


def test_the_status_has_an_endpoint_of_its_own(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model"))
    path = f"{pods(namespace)}/model"
    assert admin.merge(path, {"status": READY}).body["status"]["phase"] == "Pending"
    assert admin.merge(f"{path}/status", {"status": READY}).body["status"]["phase"] == "Running"


def test_the_status_endpoint_changes_no_spec(admin: Client, pool: str) -> None:
    patch = {"spec": {"weight": 50}, "status": {"resources": {"nodes": "1"}}}
    answer = admin.merge(f"{pool}/status", patch)
    assert answer.body["spec"]["weight"] == 10
    assert answer.body["status"]["resources"] == {"nodes": "1"}


def test_the_spec_of_a_pod_is_fixed(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model"))
    answer = admin.merge(f"{pods(namespace)}/model", {"spec": {"nodeName": "elsewhere"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_the_spec_of_a_pod_may_be_patched_with_itself(admin: Client, namespace: str) -> None:
    admin.create(pods(namespace), pod("model"))
    patch = {"spec": {"terminationGracePeriodSeconds": 30}}
    assert admin.merge(f"{pods(namespace)}/model", patch).status == 200
