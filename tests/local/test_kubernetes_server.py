"""The stand-in as a server: connections, the journal, and bodies that mean harm."""

import contextlib
import copy
import datetime as dt
import http.client
import json
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.kubernetes import MASTERS, Delays, Request, Simulation, StandIn, Store, User
from local.kubernetes.api import Api, Call
from local.kubernetes.resources import RESOURCES, Object, Resource
from local.kubernetes.status import ApiError

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
ADMIN = User("admin", (MASTERS,))


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    server = StandIn(authenticate={"admin": ADMIN}.get, cluster_roles=(), clock=lambda: NOW)
    server.start()
    yield server
    server.stop()


def _connect(stand_in: StandIn) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cadata=stand_in.ca_pem)
    host = urllib.parse.urlsplit(stand_in.url).netloc
    return http.client.HTTPSConnection(host, context=context, timeout=5)


@pytest.fixture
def connection(stand_in: StandIn) -> Iterator[http.client.HTTPSConnection]:
    with contextlib.closing(_connect(stand_in)) as connection:
        yield connection


def _status(connection: http.client.HTTPSConnection, method: str, path: str, **headers: str) -> int:
    all_headers = {"Authorization": "Bearer admin"} | headers
    connection.request(method, path, headers=all_headers)
    response = connection.getresponse()
    response.read()
    return response.status


def test_a_connection_is_kept(connection: http.client.HTTPSConnection) -> None:
    _status(connection, "GET", "/api/v1/nodes")
    first = connection.sock
    _status(connection, "GET", "/api/v1/nodes")
    assert first is not None
    assert connection.sock is first


def test_the_journal(stand_in: StandIn, connection: http.client.HTTPSConnection) -> None:
    _status(connection, "GET", "/api/v1/nodes?limit=1")
    _status(connection, "GET", "/api/v1/nodes/none", Authorization="Bearer wrong")
    assert stand_in.journal == (
        Request(NOW, "admin", "GET", "/api/v1/nodes?limit=1", 200),
        Request(NOW, "", "GET", "/api/v1/nodes/none", 401),
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": "many"}, 400),
        ({"Content-Length": "9" * 50}, 413),
        ({"Transfer-Encoding": "chunked"}, 400),
        ({"Authorization": "Basic admin"}, 403),
    ],
)
def test_headers_that_mean_harm(
    connection: http.client.HTTPSConnection, headers: dict[str, str], status: int
) -> None:
    connection.putrequest("POST", "/api/v1/nodes")
    for key, value in headers.items():
        connection.putheader(key, value)
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == status
    assert json.loads(response.read())["kind"] == "Status"


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "TRACE"])
def test_methods_that_nobody_needs(connection: http.client.HTTPSConnection, method: str) -> None:
    assert _status(connection, method, "/api/v1/nodes") in (405, 501)


def test_who_never_speaks_keeps_nobody_waiting(
    stand_in: StandIn, connection: http.client.HTTPSConnection
) -> None:
    port = urllib.parse.urlsplit(stand_in.url).port
    with socket.create_connection(("127.0.0.1", port or 0)):
        assert _status(connection, "GET", "/readyz") == 200


def test_a_client_that_does_not_trust_us_is_not_served(
    stand_in: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    host = urllib.parse.urlsplit(stand_in.url).netloc
    stranger = http.client.HTTPSConnection(host, context=ssl.create_default_context(), timeout=5)
    with pytest.raises(ssl.SSLCertVerificationError):
        stranger.request("GET", "/readyz")
    stranger.close()
    stand_in.stop()
    assert capsys.readouterr().err == ""


def test_stopping_ends_open_connections() -> None:
    before = set(threading.enumerate())
    stand_in = StandIn(authenticate=lambda _: ADMIN, cluster_roles=(), clock=lambda: NOW)
    stand_in.start()
    with contextlib.closing(_connect(stand_in)) as connection:
        assert _status(connection, "GET", "/readyz") == 200
        stand_in.stop()
    assert set(threading.enumerate()) <= before
    stand_in.stop()
    with pytest.raises(RuntimeError, match="call start"):
        _ = stand_in.url


def test_a_port_in_use(stand_in: StandIn) -> None:
    port = urllib.parse.urlsplit(stand_in.url).port
    second = StandIn(authenticate=lambda _: None, cluster_roles=(), clock=lambda: NOW)
    with pytest.raises(OSError, match="in use"):
        second.start(port or 0)


_CONTAINERS = [{"name": "a", "image": "b", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
_LABELS = {"app": "a"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": _CONTAINERS}}
_CONDITIONS = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"}]
_SPECS: dict[str, Object] = {
    "Namespace": {},
    "Node": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "providerID": "x"},
    "Pod": {
        "containers": _CONTAINERS,
        "nodeName": "a",
        "nodeSelector": _LABELS,
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b"}],
        "terminationGracePeriodSeconds": 5,
    },
    "Deployment": {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": _TEMPLATE},
    "ReplicaSet": {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": _TEMPLATE},
    "PodDisruptionBudget": {
        "minAvailable": "50%",
        "selector": {
            "matchLabels": _LABELS,
            "matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}],
        },
    },
    "NodePool": {
        "weight": 5,
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {
                "taints": [{"key": "a", "effect": "NoSchedule"}],
                "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
            },
        },
    },
    "NodeClaim": {"requirements": []},
}
_VALUES = st.sampled_from(
    [None, True, 0, -1, 2**70, 1.5, "", "x", "\u0000", [], [None], [1], ["x"], {}, {"x": None}]
)


def _valid(resource: Resource) -> Object:
    owner = {"kind": "ReplicaSet", "name": "a", "uid": "u", "controller": True}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "a", "labels": _LABELS, "ownerReferences": [owner]},
        "spec": _SPECS[resource.kind],
        "status": {"phase": "Running", "startTime": "2026-03-01T12:00:00Z"}
        | {"conditions": _CONDITIONS, "allocatable": {"nvidia.com/gpu": "1"}},
    }


def _spoil(data: st.DataObject, body: Object) -> Object:
    """The object with one value, anywhere in it, replaced by something else or taken away."""
    spoiled = copy.deepcopy(body)
    at: Any = spoiled
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not at[key] or not isinstance(at[key], dict | list) or data.draw(st.booleans()):
            if isinstance(at, dict) and data.draw(st.booleans()):
                del at[key]
            else:
                at[key] = data.draw(_VALUES)
            return spoiled
        at = at[key]


def _send(api: Api, method: str, path: str, body: Object) -> None:
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    try:
        api.handle(Call(method, path, ADMIN, media, json.dumps(body).encode()))
    except ApiError as error:
        assert error.code in (400, 404, 405, 409, 422, 429)  # noqa: PT017


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_no_object_breaks_the_server_or_its_loop(data: st.DataObject) -> None:
    store = Store(lambda: NOW)
    api = Api(store, ())
    simulation = Simulation(store, lambda: NOW, delays=Delays(), tell=lambda _: None)
    # One pod waits for a node, one runs on a node that may come to be.
    for name, spec in (("waiting", {}), ("running", {"nodeName": "a"})):
        pod_spec = {"containers": _CONTAINERS, "tolerations": [{"operator": "Exists"}], **spec}
        metadata = {"name": name, "labels": _LABELS}
        store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec})
    resource = data.draw(st.sampled_from(RESOURCES))
    prefix = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    scope = "/namespaces/default" if resource.namespaced else ""
    path = f"{prefix}{scope}/{resource.plural}"
    valid = _valid(resource)
    _send(api, "POST", path, _spoil(data, valid))
    _send(api, "POST", path, valid)
    _send(api, "PATCH", f"{path}/a", _spoil(data, valid))
    _send(api, "PATCH", f"{path}/a/status", _spoil(data, valid))
    simulation.step()
    for subresource in resource.subresources:
        _send(api, "POST", f"{path}/a/{subresource}", _spoil(data, {"metadata": {"name": "a"}}))
        _send(api, "PATCH", f"{path}/a/{subresource}", _spoil(data, {"spec": {"replicas": 1}}))
    _send(api, "DELETE", f"{path}/a", _spoil(data, {"preconditions": {"uid": "x"}}))
    simulation.step()
