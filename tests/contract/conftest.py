"""The servers that the contract is held against, each without controllers behind it.

A variant gives a Server; everything a test needs it makes through the API itself.
"""

import datetime as dt
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.kubernetes import MASTERS, StandIn, User, read_cluster_roles
from tests.contract.client import Client, Server

MANIFEST = Path(__file__).parents[2] / "manifests" / "shiftwright-rbac.yaml"
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


_VARIANTS: dict[str, Callable[[], Iterator[Server]]] = {"stand-in": _stand_in}


@pytest.fixture(scope="session", params=_VARIANTS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from _VARIANTS[request.param]()


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
