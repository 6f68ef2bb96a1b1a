"""The servers that the contract is held against, each without controllers behind it.

A variant gives a Server; everything a test needs it makes through the API itself.
"""

import datetime as dt
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from control_plane.run import ControlPlane
from local.kubernetes import MASTERS, StandIn, User, read_cluster_roles
from tests.contract.client import Client, Server

MANIFEST = Path(__file__).parents[2] / "manifests" / "shiftwright-rbac.yaml"
# Which servers to hold it against, by name: `make test` needs no control plane.
SERVERS = os.environ.get("CONTRACT_SERVERS", "stand-in").split(",")
_PROPERTY = "contract server"
_numbers = itertools.count(1)


def _stand_in() -> Iterator[Server]:
    users = {
        "admin-token": User("admin", (MASTERS,)),
        "product-token": User("function", ("shiftwright",)),
        "stranger-token": User("stranger"),
    }
    stand_in = StandIn(
        authenticate=users.get,
        cluster_roles=read_cluster_roles(MANIFEST.read_text()),
        clock=lambda: dt.datetime.now(dt.UTC),
    )
    stand_in.start()
    try:
        yield Server(
            stand_in.url,
            stand_in.ca_pem,
            "admin-token",
            "product-token",
            "stranger-token",
            stand_in.store.snapshots.forget,
        )
    finally:
        stand_in.stop()


def _real() -> Iterator[Server]:
    with ControlPlane(controllers=False, karpenter=None) as plane:
        yield Server(
            plane.url,
            plane.ca_pem,
            plane.admin_token,
            plane.product_token,
            plane.stranger_token,
            plane.compact,
        )


_VARIANTS: dict[str, Callable[[], Iterator[Server]]] = {"stand-in": _stand_in, "real": _real}


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from _VARIANTS[request.param]()


@pytest.fixture(autouse=True)
def _counted(
    server: Server,  # noqa: ARG001 - so that every check runs against every server
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    record_property(_PROPERTY, request.node.callspec.params["server"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many checks each server passed."""
    passed = terminalreporter.getreports("passed")
    counts = Counter(dict(report.user_properties).get(_PROPERTY) for report in passed)
    for name in SERVERS:
        if counts[name]:
            terminalreporter.write_line(f"contract: {counts[name]} checks passed on the {name}")


def _client(server: Server, token: str | None) -> Iterator[Client]:
    client = Client(server, token)
    yield client
    client.close()


@pytest.fixture
def admin(server: Server) -> Iterator[Client]:
    yield from _client(server, server.admin_token)


@pytest.fixture
def product(server: Server) -> Iterator[Client]:
    yield from _client(server, server.product_token)


@pytest.fixture
def stranger(server: Server) -> Iterator[Client]:
    yield from _client(server, server.stranger_token)


@pytest.fixture
def impostor(server: Server) -> Iterator[Client]:
    yield from _client(server, "no-such-token")


@pytest.fixture
def nobody(server: Server) -> Iterator[Client]:
    yield from _client(server, None)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"contract-{next(_numbers)}"


@pytest.fixture
def namespace(admin: Client, name: str) -> str:
    """A namespace of this test alone."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert admin.create("/api/v1/namespaces", body).status == 201
    return name
