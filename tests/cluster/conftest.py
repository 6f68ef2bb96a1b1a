"""One real control plane with a real Karpenter for all tests here, and what they measured."""

import datetime as dt
import itertools
from collections.abc import Callable, Iterator

import boto3
import pytest

from control_plane.api import Api
from control_plane.instance_types import gpu_instance_types
from control_plane.run import ControlPlane, Karpenter
from lambdas.core.policy import Cluster
from tests.cluster.observer import Observer
from tests.cluster.product import ClusterProduct
from tests.cluster.scene import NODE_CLASS, NODE_CLASSES, Scene
from tests.contract.client import Server
from tests.product import running_slack

_FIGURES = pytest.StashKey[list[str]]()
_numbers = itertools.count(1)

Figures = Callable[[str], None]
MakeProduct = Callable[[Cluster], ClusterProduct]


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    karpenter = Karpenter(gpu_instance_types(), feature_gates={"NodeOverlay": True})
    with ControlPlane(controllers=True, karpenter=karpenter) as plane:
        yield plane


@pytest.fixture(scope="session")
def cluster(plane: ControlPlane) -> Server:
    return Server(
        url=plane.url,
        ca_pem=plane.ca_pem,
        admin_token=plane.admin_token,
        product_token=plane.product_token,
        stranger_token=plane.stranger_token,
        expire_tokens=lambda: None,
    )


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Api:
    api = plane.api
    node_class = {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": NODE_CLASS},
    }
    api.create(NODE_CLASSES, node_class)
    return api


@pytest.fixture(scope="session")
def observer(plane: ControlPlane) -> Iterator[Observer]:
    observer = Observer(plane.url, plane.ca_pem, plane.admin_token)
    observer.start()
    yield observer
    observer.stop()


@pytest.fixture
def scene(api: Api, observer: Observer) -> Iterator[Scene]:
    """A namespace of this test alone."""
    scene = Scene(api, observer, f"scene-{next(_numbers)}")
    scene.make_namespace()
    yield scene
    scene.clear()


@pytest.fixture
def make_product(aws: boto3.Session, cluster: Server) -> Iterator[MakeProduct]:
    """The product with a policy, on this cluster."""
    with running_slack(dt.datetime.now(dt.UTC)) as slack:
        yield lambda policy: ClusterProduct(aws, slack, cluster, policy)


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Figures:
    """Keeps a line for the end of the run."""
    figures = request.config.stash.setdefault(_FIGURES, [])
    return lambda line: figures.append(f"{request.node.name}: {line}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures = terminalreporter.config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section("measured on the real control plane")
    for line in figures:
        terminalreporter.write_line(line)
