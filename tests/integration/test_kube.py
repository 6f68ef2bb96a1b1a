"""The Kubernetes adapter against the stand-in, with the function's own permissions."""

import datetime as dt
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lambdas.adapters.kube import PAGE_SIZE, Kube
from lambdas.core.errors import (
    BudgetError,
    ConflictError,
    NotFoundError,
    PassingError,
    PermanentError,
)
from lambdas.core.snapshot import Node
from local.kubernetes.resources import NODE_CLAIMS, NODES, PODS
from tests.integration.cluster import TOKEN, ClusterUnderTest, running_cluster


@pytest.fixture
def cluster() -> Iterator[ClusterUnderTest]:
    with running_cluster() as one:
        yield one


def test_nodes(cluster: ClusterUnderTest) -> None:
    cluster.node("plain", "i-1")
    cluster.node(
        "disrupted", "i-2", taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
    )
    cluster.node("auto", "i-3", labels={"eks.amazonaws.com/compute-type": "auto"})
    cluster.create("v1", "Node", "joining", spec={})
    assert list(cluster.kube().nodes()) == [
        Node(name="auto", instance_id="i-3", auto_mode=True),
        Node(name="disrupted", instance_id="i-2", disrupted=True),
        Node(name="plain", instance_id="i-1"),
    ]


def test_lists_are_read_page_by_page(cluster: ClusterUnderTest) -> None:
    for number in range(PAGE_SIZE + 1):
        cluster.node(f"node-{number:04}", f"i-{number}")
    assert len(list(cluster.kube().nodes())) == PAGE_SIZE + 1
    assert len(cluster.requests()) == 2


def test_a_cordoned_node_remembers_its_notice(cluster: ClusterUnderTest) -> None:
    cluster.node("node-a", "i-1")
    cluster.kube().cordon("node-a", "2026-03-01T12:02:00+00:00")
    (node,) = cluster.kube().nodes()
    assert node.unschedulable
    assert node.interrupted_at == dt.datetime(2026, 3, 1, 12, 2, tzinfo=dt.UTC)


@pytest.mark.parametrize("text", ["", "soon", "2026-03-01T12:02:00", "9" * 1000])
def test_a_notice_that_somebody_else_wrote_may_be_anything(
    cluster: ClusterUnderTest, text: str
) -> None:
    cluster.node("node-a", "i-1")
    mark = {"metadata": {"annotations": {"shiftwright.dev/interrupted-at": text}}}
    cluster.stand_in.store.patch(NODES, "node-a", mark)
    (node,) = cluster.kube().nodes()
    assert node.interrupted_at is None


def test_pods_of_a_node(cluster: ClusterUnderTest) -> None:
    cluster.pod("chat-1", "node-a", "chat-spot")
    cluster.pod("plugin", "node-a", "DaemonSet/plugin")
    cluster.pod("job", "node-a", "Job/job", phase="Succeeded")
    cluster.pod("mirror", "node-a", annotations={"kubernetes.io/config.mirror": "x"})
    cluster.pod("trainer", "node-a", annotations={"karpenter.sh/do-not-disrupt": "true"})
    cluster.pod("going", "node-a")
    cluster.stand_in.store.delete(PODS, "going", "inference", grace_seconds=30)
    cluster.pod("elsewhere", "node-b")
    pods = {pod.name: pod for pod in cluster.kube().pods("node-a")}
    assert {name: pod.exempt for name, pod in pods.items()} == {
        "chat-1": None,
        "plugin": "daemon",
        "job": "finished",
        "mirror": "mirror",
        "trainer": None,
        "going": "terminating",
    }
    assert pods["chat-1"].deployment == "chat-spot"
    assert pods["chat-1"].ready
    assert pods["trainer"].deployment is None
    assert [name for name, pod in pods.items() if pod.do_not_disrupt] == ["trainer"]


def test_deployments_and_their_scale(cluster: ClusterUnderTest) -> None:
    cluster.deployment("chat-spot", 3, 2)
    cluster.deployment("other", 1, 1, namespace="team-b")
    (found,) = cluster.kube().deployments("inference")
    assert (found.name, found.replicas, found.ready) == ("chat-spot", 3, 2)
    cluster.kube().scale("inference", "chat-spot", 5, found.resource_version)
    assert cluster.kube().deployments("inference")[0].replicas == 5
    with pytest.raises(ConflictError, match="chat-spot"):
        cluster.kube().scale("inference", "chat-spot", 6, found.resource_version)


def test_claims_being_deleted(cluster: ClusterUnderTest) -> None:
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    for name in ("going", "staying"):
        cluster.create(
            "karpenter.sh/v1",
            "NodeClaim",
            name,
            metadata={"finalizers": ["karpenter.sh/termination"]},
            spec={
                "nodeClassRef": node_class,
                "requirements": [],
            },
            status={"nodeName": f"node-{name}"},
        )
    cluster.stand_in.store.delete(NODE_CLAIMS, "going")
    assert cluster.kube().nodes_of_deleted_claims() == {"node-going"}


def test_evictions(cluster: ClusterUnderTest) -> None:
    cluster.pod("free", "node-a", "chat-spot")
    cluster.pod("held", "node-a", "held-spot")
    cluster.pod("twice", "node-a", "twice-spot")
    cluster.budget("held", "held-spot", allowed=0)
    cluster.budget("twice-1", "twice-spot", allowed=1)
    cluster.budget("twice-2", "twice-spot", allowed=1)
    kube = cluster.kube()
    pods = {pod.name: pod for pod in kube.pods("node-a")}
    kube.evict("inference", "free", pods["free"].uid)
    assert {pod.name: pod.exempt for pod in kube.pods("node-a")}["free"] == "terminating"
    with pytest.raises(BudgetError, match="disruption budget"):
        kube.evict("inference", "held", pods["held"].uid)
    with pytest.raises(PermanentError, match="Leave the pod one budget"):
        kube.evict("inference", "twice", pods["twice"].uid)
    with pytest.raises(ConflictError):
        kube.evict("inference", "free", "another-uid")
    with pytest.raises(NotFoundError):
        kube.evict("inference", "gone", "uid")


def test_without_the_manifest_the_hint_names_it(cluster: ClusterUnderTest) -> None:
    with pytest.raises(PermanentError, match=r"403.*shiftwright-rbac\.yaml"):
        list(cluster.kube("stranger").nodes())


def test_without_an_access_entry_the_hint_names_it(cluster: ClusterUnderTest) -> None:
    with pytest.raises(PassingError, match=r"401.*access entry"):
        list(cluster.kube("nobody").nodes())


def test_a_token_that_is_refused_is_renewed_once(cluster: ClusterUnderTest) -> None:
    cluster.node("node-a", "i-1")
    asked: list[bool] = []

    def token(*, renew: bool = False) -> str:
        asked.append(renew)
        return TOKEN if renew else "ended"

    kube = Kube("gpu-prod", cluster.stand_in.url, cluster.stand_in.ca_pem, token)
    assert [node.name for node in kube.nodes()] == ["node-a"]
    assert asked == [False, True]


def test_a_server_that_is_not_there_is_a_passing_error(cluster: ClusterUnderTest) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{unused.getsockname()[1]}"
        kube = Kube("gpu-prod", url, cluster.stand_in.ca_pem, lambda **_: "token")
        with pytest.raises(PassingError, match=r"cluster gpu-prod: GET /api/v1/nodes"):
            list(kube.nodes())


def test_a_server_that_is_not_the_cluster_is_not_trusted(cluster: ClusterUnderTest) -> None:
    with running_cluster() as other:
        kube = Kube("gpu-prod", other.stand_in.url, cluster.stand_in.ca_pem, lambda **_: "token")
        with pytest.raises(PassingError, match="certificate"):
            list(kube.nodes())
        assert other.stand_in.journal == ()


ANSWERS = {
    "throttled": (429, '{"message": "too many requests"}', PassingError),
    "broken": (500, '{"message": "etcd is down"}', PassingError),
    "a proxy's page": (503, "<html>no healthy upstream</html>", PassingError),
    "expired": (410, '{"message": "continue token expired"}', PassingError),
    "invalid": (422, '{"message": "spec is invalid"}', PermanentError),
    "not JSON": (200, "<html>sign in</html>", PassingError),
    "not a list": (200, '{"items": 7}', PassingError),
    "items that are no objects": (200, '{"items": [{"metadata": 1}]}', PassingError),
    "an empty list": (200, '{"items": null, "metadata": {}}', None),
    "another body in the error": (400, "[]", PermanentError),
    "nothing": (200, "", PassingError),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_whatever_the_server_answers(name: str) -> None:
    status, body, kind = ANSWERS[name]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        kube = Kube("gpu-prod", f"http://127.0.0.1:{server.server_port}", "", lambda **_: "token")
        if kind is None:
            assert list(kube.nodes()) == []
        else:
            with pytest.raises(kind, match="cluster gpu-prod"):
                list(kube.nodes())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
