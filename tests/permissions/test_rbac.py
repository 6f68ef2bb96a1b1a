"""The product's ClusterRole on a real API server: what it grants is needed, and it is enough."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from control_plane.api import Api
from control_plane.run import MANIFEST, ControlPlane
from lambdas.adapters.kube import Kube
from lambdas.core.errors import NotFoundError, PermanentError
from tests.contract.client import Client, Server
from tests.contract.objects import NODES, READY, deployment, deployments, node, pod, pods

_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/shiftwright"
# An API server hears of a changed role by its own watch.
_HEARD_SECONDS = 10
_NAMESPACE = "default"


class Grant(NamedTuple):
    """One verb on one resource."""

    group: str
    resource: str
    verb: str


def _rules() -> list[dict[str, Any]]:
    documents = yaml.safe_load_all(MANIFEST.read_text())
    (role,) = (each for each in documents if each["kind"] == "ClusterRole")
    return list(role["rules"])


def _grants(rule: dict[str, Any]) -> list[Grant]:
    return [
        Grant(group, resource, verb)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


RULES = _rules()
GRANTS = [grant for rule in RULES for grant in _grants(rule)]
# Each call of the adapter, on objects that are not there: allowed, it finds nothing.
CALLS: dict[Grant, Callable[[Kube], object]] = {
    Grant("", "nodes", "list"): lambda kube: list(kube.nodes()),
    Grant("", "nodes", "patch"): lambda kube: kube.cordon("none", "2026-03-01T12:02:00+00:00"),
    Grant("", "pods", "list"): lambda kube: kube.pods("none"),
    Grant("", "pods/eviction", "create"): lambda kube: kube.evict(_NAMESPACE, "none", "uid"),
    Grant("apps", "deployments", "list"): lambda kube: kube.deployments(_NAMESPACE),
    Grant("apps", "deployments/scale", "patch"): lambda kube: kube.scale(
        _NAMESPACE, "none", 1, "1"
    ),
    Grant("karpenter.sh", "nodeclaims", "list"): lambda kube: kube.nodes_of_deleted_claims(),
}
# What Kubernetes grants to everybody whom it knows: to ask about themselves.
EVERYBODY = {
    Grant("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
    Grant("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
    Grant("authentication.k8s.io", "selfsubjectreviews", "create"),
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(controllers=False, karpenter=None) as plane:
        yield plane


@pytest.fixture(scope="module")
def server(plane: ControlPlane) -> Server:
    return Server(
        plane.url,
        plane.ca_pem,
        plane.admin_token,
        plane.product_token,
        plane.stranger_token,
        plane.compact,
    )


@pytest.fixture
def kube(plane: ControlPlane) -> Kube:
    return Kube("gpu-prod", plane.url, plane.ca_pem, lambda **_: plane.product_token)


@pytest.fixture
def product(server: Server) -> Iterator[Client]:
    client = Client(server, server.product_token)
    yield client
    client.close()


@pytest.fixture
def role(plane: ControlPlane, kube: Kube) -> Iterator[Callable[[list[dict[str, Any]]], None]]:
    """Gives the role other rules for one test."""

    def change(rules: list[dict[str, Any]]) -> None:
        plane.api.merge(_ROLE, {"rules": rules})
        granted = {grant for rule in rules for grant in _grants(rule)}
        _wait_until(lambda: _allowed(kube) == granted)

    yield change
    change(RULES)


def _allowed(kube: Kube) -> set[Grant]:
    return {grant for grant, call in CALLS.items() if _is_allowed(kube, call)}


def _is_allowed(kube: Kube, call: Callable[[Kube], object]) -> bool:
    try:
        call(kube)
    except NotFoundError:
        return True
    except PermanentError as error:
        if ": 403 " not in str(error):
            raise
        return False
    return True


def _wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + _HEARD_SECONDS
    while not is_so():
        assert time.monotonic() < until, "the API server did not hear of the changed role"


def _without(grant: Grant) -> list[dict[str, Any]]:
    """The rules without this verb on this resource."""
    rules = []
    for rule in RULES:
        verbs = [verb for verb in rule["verbs"] if grant not in _grants(rule) or verb != grant.verb]
        rules += [{**rule, "verbs": verbs}] if verbs else []
    return rules


def test_every_grant_is_for_a_call_and_every_call_has_one() -> None:
    assert sorted(GRANTS) == sorted(CALLS)


def test_the_manifest_is_enough(plane: ControlPlane, kube: Kube) -> None:
    api = plane.api
    _make_workload(api)
    (worker,) = (each for each in kube.nodes() if each.name == "worker")
    (model,) = kube.pods(worker.name)
    (web,) = kube.deployments(_NAMESPACE)
    kube.cordon(worker.name, "2026-03-01T12:02:00+00:00")
    kube.scale(_NAMESPACE, web.name, 4, web.resource_version)
    kube.evict(_NAMESPACE, model.name, model.uid)
    assert kube.nodes_of_deleted_claims() == frozenset()
    assert api.get(f"{NODES}/worker")["spec"]["unschedulable"]
    assert api.get(f"{deployments(_NAMESPACE)}/web")["spec"]["replicas"] == 4
    assert "deletionTimestamp" in api.get(f"{pods(_NAMESPACE)}/model")["metadata"]


def _make_workload(api: Api) -> None:
    worker = node("worker")
    worker["spec"] = {"providerID": "aws:///eu-west-1a/i-1"}
    api.create(NODES, worker)
    api.create(deployments(_NAMESPACE), deployment("web", 2))
    api.create(pods(_NAMESPACE), pod("model", node_name="worker"))
    api.merge(f"{pods(_NAMESPACE)}/model/status", {"status": READY})


@pytest.mark.parametrize("grant", GRANTS, ids=" ".join)
def test_without_a_verb_its_call_is_refused(
    role: Callable[[list[dict[str, Any]]], None], kube: Kube, grant: Grant
) -> None:
    role(_without(grant))
    with pytest.raises(PermanentError, match=r"403 .* is forbidden"):
        CALLS[grant](kube)
    assert _allowed(kube) == set(GRANTS) - {grant}


@pytest.mark.parametrize("index", range(len(RULES)), ids=lambda index: str(RULES[index]))
def test_without_a_rule_its_calls_are_refused(
    role: Callable[[list[dict[str, Any]]], None], kube: Kube, index: int
) -> None:
    role([*RULES[:index], *RULES[index + 1 :]])
    assert _allowed(kube) == set(GRANTS) - set(_grants(RULES[index]))


def test_everything_else_is_refused(plane: ControlPlane, product: Client) -> None:
    attempts = list(_attempts(plane.api))
    assert len(attempts) > 300
    allowed = {grant for grant, path in attempts if _status(product, grant.verb, path) != 403}
    assert allowed == set(GRANTS) | EVERYBODY


def _attempts(api: Api) -> Iterator[tuple[Grant, str]]:
    """Every verb on every resource that the server says it has."""
    groups = api.get("/apis")["groups"]
    versions = [version["groupVersion"] for group in groups for version in group["versions"]]
    for prefix in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        for resource in api.get(prefix)["resources"]:
            for verb in resource["verbs"]:
                group = prefix.split("/")[2] if prefix.startswith("/apis/") else ""
                yield Grant(group, resource["name"], verb), _path(prefix, resource, verb)


def _path(prefix: str, resource: dict[str, Any], verb: str) -> str:
    plural, _, subresource = resource["name"].partition("/")
    place = f"{prefix}/namespaces/{_NAMESPACE}" if resource["namespaced"] else prefix
    if subresource:
        return f"{place}/{plural}/none/{subresource}"
    is_collection = verb in ("list", "watch", "create", "deletecollection")
    return f"{place}/{plural}" if is_collection else f"{place}/{plural}/none"


def _status(product: Client, verb: str, path: str) -> int:
    if verb in ("get", "list"):
        return product.get(path).status
    if verb == "watch":
        return product.get(path, watch=1, timeoutSeconds=1).status
    if verb in ("delete", "deletecollection"):
        return product.delete(path).status
    if verb == "patch":
        return product.merge(path, {"spec": {}}).status
    return product.call("PUT" if verb == "update" else "POST", path, {}).status
