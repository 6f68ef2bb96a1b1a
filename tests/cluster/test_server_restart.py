"""The API server goes away while a node is being drained."""

import threading

from control_plane.run import ControlPlane
from tests.cluster.conftest import Figures, MakeProduct
from tests.cluster.observer import Observer
from tests.cluster.pair import FLOOR, ON_DEMAND, report, set_up, until_whole
from tests.cluster.scene import Scene


def test_the_api_server_restarts_in_the_middle_of_a_drain(
    scene: Scene,
    observer: Observer,
    make_product: MakeProduct,
    measured: Figures,
    plane: ControlPlane,
) -> None:
    product = set_up(scene, make_product)
    node = min(scene.spread())
    first = threading.Lock()

    def restart(_method: str, path: str) -> None:
        if path.partition("?")[0].endswith("/eviction") and first.acquire(blocking=False):
            plane.restart_api_server()

    product.journal.before = restart
    noticed = product.notify(node)
    product.deliver_until_finished(node)
    assert first.locked()
    until_whole(scene, ON_DEMAND + 2)
    assert scene.replicas("on-demand") == ON_DEMAND + 2
    assert node not in scene.spread()
    taken = observer.node(node)
    assert taken is not None
    assert taken["spec"]["unschedulable"]
    assert [call.error for call in product.journal.writes("POST", "/eviction")].count("") == 2
    assert scene.fewest_ready(noticed) >= FLOOR
    report(scene, noticed, measured)
