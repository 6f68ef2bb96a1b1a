"""Who gets in, and what our ClusterRole lets the product do: its own calls and nothing else."""

import pytest

from tests.contract.client import Client

_NS = "/namespaces/default"
_ALLOWED = [
    ("GET", "/api/v1/nodes", 200),
    ("GET", "/api/v1/pods", 200),
    ("GET", f"/api/v1{_NS}/pods", 200),
    ("GET", f"/apis/apps/v1{_NS}/deployments", 200),
    ("GET", "/apis/karpenter.sh/v1/nodeclaims", 200),
    # Allowed, but there is no such object.
    ("PATCH", "/api/v1/nodes/none", 404),
    ("POST", f"/api/v1{_NS}/pods/none/eviction", 404),
    ("PATCH", f"/apis/apps/v1{_NS}/deployments/none/scale", 404),
]
_FORBIDDEN = [
    ("GET", "/api/v1/nodes/none"),
    ("POST", "/api/v1/nodes"),
    ("DELETE", "/api/v1/nodes/none"),
    ("PATCH", "/api/v1/nodes/none/status"),
    ("GET", f"/api/v1{_NS}/pods/none"),
    ("POST", f"/api/v1{_NS}/pods"),
    ("PATCH", f"/api/v1{_NS}/pods/none"),
    ("PATCH", f"/api/v1{_NS}/pods/none/status"),
    ("DELETE", f"/api/v1{_NS}/pods/none"),
    ("DELETE", f"/api/v1{_NS}/pods"),
    ("GET", f"/apis/apps/v1{_NS}/deployments/none"),
    ("POST", f"/apis/apps/v1{_NS}/deployments"),
    ("PATCH", f"/apis/apps/v1{_NS}/deployments/none"),
    ("DELETE", f"/apis/apps/v1{_NS}/deployments/none"),
    ("GET", f"/apis/apps/v1{_NS}/deployments/none/scale"),
    ("GET", f"/apis/apps/v1{_NS}/replicasets"),
    ("GET", f"/apis/policy/v1{_NS}/poddisruptionbudgets"),
    ("PATCH", f"/apis/policy/v1{_NS}/poddisruptionbudgets/none/status"),
    ("GET", "/apis/karpenter.sh/v1/nodepools"),
    ("PATCH", "/apis/karpenter.sh/v1/nodepools/none"),
    ("GET", "/apis/karpenter.sh/v1/nodeclaims/none"),
    ("DELETE", "/apis/karpenter.sh/v1/nodeclaims/none"),
    ("GET", "/api/v1/namespaces"),
    ("GET", "/api/v1/secrets"),
    ("GET", f"/api/v1{_NS}/configmaps"),
    ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("GET", "/metrics"),
]


def _call(client: Client, method: str, path: str) -> tuple[int, str]:
    if method == "PATCH":
        answer = client.merge(path, {"spec": {}})
    elif method == "POST":
        metadata = {"name": "none"}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        answer = client.create(path, body)
    else:
        answer = client.call(method, path)
    return answer.status, answer.body.get("reason", "")


@pytest.mark.parametrize(("method", "path", "status"), _ALLOWED)
def test_the_product_may(product: Client, method: str, path: str, status: int) -> None:
    assert _call(product, method, path)[0] == status


@pytest.mark.parametrize(("method", "path"), _FORBIDDEN)
def test_the_product_may_not(product: Client, method: str, path: str) -> None:
    assert _call(product, method, path) == (403, "Forbidden")


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in _ALLOWED])
def test_a_stranger_may_nothing(stranger: Client, method: str, path: str) -> None:
    assert _call(stranger, method, path) == (403, "Forbidden")


def test_what_a_refusal_says(product: Client) -> None:
    answer = product.delete("/apis/apps/v1/namespaces/default/deployments/web")
    assert answer.body["details"] == {"name": "web", "group": "apps", "kind": "deployments"}
    message = answer.body["message"]
    assert message.startswith('deployments.apps "web" is forbidden: User ')
    assert 'cannot delete resource "deployments" in API group "apps"' in message
    assert 'in the namespace "default"' in message


def test_a_wrong_token(impostor: Client) -> None:
    answer = impostor.get("/api/v1/nodes")
    assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")


def test_no_token(nobody: Client) -> None:
    assert nobody.get("/api/v1/nodes").status in (401, 403)


@pytest.mark.parametrize("path", ["/version", "/api", "/apis", "/apis/karpenter.sh/v1"])
def test_everyone_known_may_discover(stranger: Client, path: str) -> None:
    assert stranger.get(path).status == 200


def test_ready(admin: Client) -> None:
    assert admin.get("/readyz").body == "ok"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/apis/none.example/v1/things", 404),
        ("GET", "/api/v1/things", 404),
        ("GET", "/none", 404),
        ("POST", "/api/v1/nodes/none", 405),
        ("POST", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/namespaces/default/pods/none/eviction", 405),
    ],
)
def test_paths_that_lead_nowhere(admin: Client, method: str, path: str, status: int) -> None:
    assert admin.call(method, path).status == status


@pytest.mark.parametrize("path", ["/api/v1/things", "/apis/apps/v1/namespaces/default/things"])
def test_a_resource_that_a_group_does_not_have(admin: Client, path: str) -> None:
    answer = admin.get(path)
    assert (answer.status, answer.body["reason"], answer.body["details"]) == (404, "NotFound", {})


@pytest.mark.parametrize(
    "path", ["/apis/none.example/v1/things", "/apis/karpenter.sh/v1/things", "/none"]
)
def test_what_no_part_of_the_server_has_is_told_in_plain_words(admin: Client, path: str) -> None:
    answer = admin.get(path)
    assert (answer.status, answer.body) == (404, "404 page not found\n")
