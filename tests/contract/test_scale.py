"""The scale of a Deployment."""

import pytest

from tests.contract.client import Client
from tests.contract.objects import deployment, deployments


@pytest.fixture
def web(admin: Client, namespace: str) -> str:
    """The path of a Deployment of two replicas."""
    assert admin.create(deployments(namespace), deployment("web", 2)).status == 201
    return f"{deployments(namespace)}/web"


def test_reading(admin: Client, web: str) -> None:
    body = admin.get(f"{web}/scale").body
    assert (body["kind"], body["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert body["spec"] == {"replicas": 2}
    assert body["status"] == {"replicas": 0, "selector": "app=web"}


def test_scaling_with_the_version_seen(product: Client, admin: Client, web: str) -> None:
    version = admin.get(web).body["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "spec": {"replicas": 5}}
    answer = product.merge(f"{web}/scale?fieldManager=shiftwright", patch)
    assert (answer.status, answer.body["spec"]["replicas"]) == (200, 5)
    assert admin.get(web).body["spec"]["replicas"] == 5


def test_a_stale_version_is_a_conflict(product: Client, admin: Client, web: str) -> None:
    stale = admin.get(web).body["metadata"]["resourceVersion"]
    admin.merge(web, {"metadata": {"labels": {"touched": "yes"}}})
    patch = {"metadata": {"resourceVersion": stale}, "spec": {"replicas": 5}}
    answer = product.merge(f"{web}/scale", patch)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["details"]["name"] == "web"
    assert admin.get(web).body["spec"]["replicas"] == 2


def test_down_to_nothing(admin: Client, web: str) -> None:
    assert admin.merge(f"{web}/scale", {"spec": {"replicas": 0}}).body["spec"] == {}
    assert admin.get(web).body["spec"]["replicas"] == 0


def test_scaling_is_a_new_generation(admin: Client, web: str) -> None:
    admin.merge(f"{web}/scale", {"spec": {"replicas": 3}})
    assert admin.get(web).body["metadata"]["generation"] == 2


def test_a_negative_count(admin: Client, web: str) -> None:
    answer = admin.merge(f"{web}/scale", {"spec": {"replicas": -1}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    details = answer.body["details"]
    assert (details["group"], details["kind"], details["name"]) == ("autoscaling", "Scale", "web")


def test_a_count_that_is_none(admin: Client, web: str) -> None:
    specs: list[object] = [{"replicas": "many"}, {"replicas": 1.5}, {"replicas": 2**31}, []]
    for spec in specs:
        answer = admin.merge(f"{web}/scale", {"spec": spec})
        assert (answer.status, answer.body["details"].keys()) == (422, {"causes"})


def test_no_spec_is_nothing(admin: Client, web: str) -> None:
    assert admin.merge(f"{web}/scale", {"spec": None}).status == 200
    assert admin.get(web).body["spec"]["replicas"] == 0


def test_another_uid_is_a_conflict(admin: Client, web: str) -> None:
    answer = admin.merge(f"{web}/scale", {"metadata": {"uid": "another"}, "spec": {"replicas": 5}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["details"]["kind"] == "deployments/scale"
    assert admin.get(web).body["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("patch", "status"), [({"metadata": {"name": "other"}}, 400), ({"kind": "Other"}, 422)]
)
def test_a_patch_that_makes_another_object(
    admin: Client, web: str, patch: dict[str, object], status: int
) -> None:
    assert admin.merge(f"{web}/scale", patch).status == status


def test_no_such_deployment(product: Client, namespace: str) -> None:
    answer = product.merge(f"{deployments(namespace)}/none/scale", {"spec": {"replicas": 1}})
    assert answer.status == 404
