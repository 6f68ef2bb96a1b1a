"""The pair of Deployments that interruption tests begin with, and what became of it."""

import datetime as dt

from tests.cluster.conftest import Figures, MakeProduct
from tests.cluster.observer import Life
from tests.cluster.product import ClusterProduct
from tests.cluster.scene import APP, FOUR_GPUS, HALVES, Scene

# Two replicas a node; the on-demand node is full, so that a surge needs another one.
SPOT, ON_DEMAND = 4, 2
REPLICAS = SPOT + ON_DEMAND
FLOOR = REPLICAS - 1


def set_up(scene: Scene, make_product: MakeProduct, floor: int = FLOOR) -> ClusterProduct:
    """The pair on three nodes, calm, behind a budget; and the product that looks after it."""
    scene.make_pool("spot", FOUR_GPUS, 50)
    scene.make_pool("on-demand", FOUR_GPUS, 10)
    scene.make_budget(floor)
    scene.make_pair(spot=SPOT, on_demand=ON_DEMAND, gpus=2)
    scene.until_ready(REPLICAS)
    scene.until_settled(allowed=REPLICAS - floor)
    assert sorted(scene.spread().values()) == [2, 2]
    return make_product(scene.policy(replicas=REPLICAS, base=ON_DEMAND))


def until_whole(scene: Scene, on_demand: int) -> None:
    """The surge is there, and the spot replicas are back on other nodes."""
    scene.until_ready(SPOT, deployment=f"{APP}-spot")
    scene.until_ready(on_demand, deployment=f"{APP}-on-demand")


def surge_of(scene: Scene, since: dt.datetime) -> list[Life]:
    return scene.observer.lives(scene.name, since, deployment=f"{APP}-on-demand")


def report(scene: Scene, noticed: dt.datetime, measured: Figures) -> None:
    """Seconds from the notice, as the cluster's own events have it."""
    scheduled = max(life.scheduled or noticed for life in surge_of(scene, noticed))
    lives = scene.observer.lives(scene.name, noticed, app=APP)
    ready = max(life.ready or noticed for life in lives if not life.gone)
    measured(
        f"notice to surge scheduled {(scheduled - noticed).total_seconds():.1f} s, "
        f"to the last pod ready {(ready - noticed).total_seconds():.1f} s"
    )


def claim_of(scene: Scene, node: str) -> str:
    return next(
        str(claim["metadata"]["name"])
        for half in HALVES
        for claim in scene.observer.claims(scene.pool(half))
        if (claim.get("status") or {}).get("nodeName") == node
    )
