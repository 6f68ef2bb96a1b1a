"""Time slices of a GPU and the capacity that Karpenter plans with: together, or not at all."""

import pytest

from local.kubernetes.facts import GPU
from tests.cluster.device_plugin import CONFIG_LABEL, DevicePlugin
from tests.cluster.observer import OVERLAYS, Observer
from tests.cluster.scene import ONE_GPU, Scene

PODS = 4
CONFIG = "slices"


@pytest.mark.parametrize(
    ("planned", "advertised", "nodes"),
    [
        pytest.param(4, 4, 1, id="in-step"),
        pytest.param(4, 1, 4, id="planned-but-not-advertised"),
        pytest.param(1, 4, 4, id="advertised-but-not-planned"),
    ],
)
def test_four_pods_on_one_gpu_each(
    scene: Scene, observer: Observer, planned: int, advertised: int, nodes: int
) -> None:
    scene.make_pool("spot", ONE_GPU, 50, labels={CONFIG_LABEL: CONFIG})
    scene.make_deployment("sliced", 0, gpus=1)
    if planned > 1:
        make_overlay(scene, planned)
    with DevicePlugin(scene.api, observer, {CONFIG: advertised}):
        scene.scale("sliced", PODS)
        scene.until_ready(PODS)
        assert len(observer.claims(scene.pool("spot"))) == nodes
    if planned > 1:
        scene.api.delete(f"{OVERLAYS}/{scene.name}")


def make_overlay(scene: Scene, gpus: int) -> None:
    """Let Karpenter plan with so many GPUs on the scene's nodes."""
    scene.api.create(
        OVERLAYS,
        {
            "apiVersion": "karpenter.sh/v1alpha1",
            "kind": "NodeOverlay",
            "metadata": {"name": scene.name},
            "spec": {
                "requirements": [
                    {
                        "key": "karpenter.sh/nodepool",
                        "operator": "In",
                        "values": [scene.pool("spot")],
                    }
                ],
                "capacity": {GPU: str(gpus)},
            },
        },
    )
    scene.observer.until(lambda: is_valid(scene), "Karpenter to take the NodeOverlay")


def is_valid(scene: Scene) -> bool:
    overlay = scene.observer.named(OVERLAYS, scene.name) or {}
    conditions = (overlay.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
