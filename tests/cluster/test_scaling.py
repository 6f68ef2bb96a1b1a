"""Nodes follow replicas, and the weights of their pools."""

from tests.cluster.conftest import Figures
from tests.cluster.observer import CAPACITY_LABEL, POOL_LABEL, Observer
from tests.cluster.scene import APP, HALVES, ONE_GPU, Scene

# All empty nodes together; Karpenter's own default is a tenth of a pool at a time.
GONE_AT_ONCE = {
    "consolidationPolicy": "WhenEmpty",
    "consolidateAfter": "0s",
    "budgets": [{"nodes": "100%"}],
}


def test_nodes_follow_a_pair_from_none_to_two_and_back(
    scene: Scene, observer: Observer, measured: Figures
) -> None:
    scene.make_pool("spot", ONE_GPU, 50, disruption=GONE_AT_ONCE)
    scene.make_pool("on-demand", ONE_GPU, 10, disruption=GONE_AT_ONCE)
    scene.make_entrance()
    scene.make_pair(spot=0, on_demand=0, gpus=1)
    for replicas in (1, 2):
        began = observer.now()
        for half in HALVES:
            scene.scale(f"{APP}-{half}", replicas)
        scene.until_ready(2 * replicas)
        measured(f"{2 * replicas} replicas ready after {observer.since(began):.1f} s")
        for half in HALVES:
            assert _pools_and_capacity(scene, half) == {(scene.pool(half), half)}
            assert len(observer.nodes(pool=scene.pool(half))) == replicas
        scene.until_reachable(2 * replicas)
    began = observer.now()
    for half in HALVES:
        scene.scale(f"{APP}-{half}", 0)
    observer.until(lambda: not any(map(scene.machines, HALVES)), "every node to be gone", 120)
    measured(f"every node gone after {observer.since(began):.1f} s")
    scene.until_reachable(0)


def test_new_nodes_follow_the_weights(scene: Scene, observer: Observer) -> None:
    scene.make_pool("spot", ONE_GPU, 50)
    scene.make_pool("on-demand", ONE_GPU, 10)
    scene.make_deployment("any", 0, gpus=1)
    seen: list[str] = []
    for replicas, (spot, on_demand) in enumerate([(50, 10), (10, 50), (50, 10)], start=1):
        scene.weigh(spot=spot, on_demand=on_demand)
        scene.scale("any", replicas)
        scene.until_ready(replicas)
        nodes = [node for half in HALVES for node in observer.nodes(pool=scene.pool(half))]
        newest = max(nodes, key=lambda node: node["metadata"]["creationTimestamp"])
        assert len(nodes) == replicas
        seen.append(newest["metadata"]["labels"][CAPACITY_LABEL])
    assert seen == ["spot", "on-demand", "spot"]


def _pools_and_capacity(scene: Scene, half: str) -> set[tuple[str, str]]:
    """Where the replicas of a half are."""
    found = set()
    for pod in scene.observer.pods(scene.name, deployment=f"{APP}-{half}"):
        node = scene.observer.node(pod["spec"]["nodeName"])
        assert node is not None
        labels = node["metadata"]["labels"]
        found.add((labels[POOL_LABEL], labels[CAPACITY_LABEL]))
    return found
