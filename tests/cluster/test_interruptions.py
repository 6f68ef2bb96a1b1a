"""The interruption pass where Karpenter makes the nodes and the API server refuses evictions."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.cluster.conftest import Figures, MakeProduct
from tests.cluster.observer import CAPACITY_LABEL, Observer
from tests.cluster.pair import (
    FLOOR,
    ON_DEMAND,
    REPLICAS,
    SPOT,
    claim_of,
    report,
    set_up,
    surge_of,
    until_whole,
)
from tests.cluster.product import instance_of
from tests.cluster.scene import CLAIMS, Scene
from tests.product import letter


def test_a_notice_moves_replicas_to_a_new_on_demand_node(
    scene: Scene, observer: Observer, make_product: MakeProduct, measured: Figures
) -> None:
    product = set_up(scene, make_product)
    node, other = sorted(scene.spread())
    calm = {one["metadata"]["name"] for one in observer.nodes(pool=scene.pool("on-demand"))}
    noticed = product.notify(node)
    product.deliver_until_finished(node)
    until_whole(scene, ON_DEMAND + 2)

    surge = surge_of(scene, noticed)
    assert len(surge) == 2
    for life in surge:
        home = observer.node(life.node)
        assert home is not None
        assert home["metadata"]["labels"][CAPACITY_LABEL] == "on-demand"
        assert life.node not in calm
    evictions = product.journal.writes("POST", "/eviction")
    assert [call.error for call in evictions].count("") == 2
    assert "BudgetError" in {call.error for call in evictions}
    assert scene.fewest_ready(noticed) >= FLOOR
    assert node not in scene.spread()
    assert scene.spread()[other] == 2
    assert product.waiting() == 0
    report(scene, noticed, measured)

    # The instance goes, and takes nothing with it.
    scene.api.delete(f"{CLAIMS}/{claim_of(scene, node)}")
    observer.until(lambda: observer.node(node) is None, "the node to be gone")
    assert scene.fewest_ready(noticed) >= FLOOR
    assert len(observer.ready_pods(scene.name)) == REPLICAS + 2


def test_karpenter_came_first(
    scene: Scene, observer: Observer, make_product: MakeProduct, measured: Figures
) -> None:
    # The budget allows nothing: Karpenter cannot drain before the surge is ready.
    product = set_up(scene, make_product, floor=REPLICAS)
    node = min(scene.spread())
    claim = claim_of(scene, node)
    scene.api.delete(f"{CLAIMS}/{claim}")
    noticed = product.notify(node)
    product.deliver_until_finished(node)
    assert {call.method for call in product.journal.writes()} == {"PATCH"}
    assert all(call.object.endswith("/scale") for call in product.journal.writes())
    assert scene.replicas("on-demand") == ON_DEMAND + 2
    assert "Karpenter drains it" in json.dumps([one.blocks for one in product.slack.messages])

    observer.until(lambda: observer.node(node) is None, "Karpenter to take its node down", 90)
    until_whole(scene, ON_DEMAND + 2)
    assert scene.fewest_ready(noticed) >= REPLICAS
    report(scene, noticed, measured)


def test_two_notices_in_one_batch(
    scene: Scene, make_product: MakeProduct, measured: Figures
) -> None:
    product = set_up(scene, make_product)
    nodes = sorted(scene.spread())
    noticed = product.notify(*nodes)
    assert product.deliver() == 2
    assert scene.replicas("on-demand") == ON_DEMAND + SPOT
    assert len(product.journal.writes("PATCH", "/scale")) == 1
    product.deliver_until_finished(*nodes)
    until_whole(scene, ON_DEMAND + SPOT)
    assert not scene.spread().keys() & set(nodes)
    assert scene.fewest_ready(noticed) >= FLOOR
    assert len({product.incident(instance_of(node)).thread for node in nodes}) == 1
    report(scene, noticed, measured)


def test_two_notices_in_two_passes_at_once(
    scene: Scene, make_product: MakeProduct, measured: Figures
) -> None:
    product = set_up(scene, make_product)
    nodes = sorted(scene.spread())
    # Both have read the cluster before either writes to it.
    both = threading.Barrier(2)
    meeting = threading.local()

    def meet(_method: str, path: str) -> None:
        if path.partition("?")[0].endswith("/scale") and not hasattr(meeting, "past"):
            meeting.past = True
            both.wait(timeout=20)

    product.journal.before = meet
    noticed = product.clock()
    letters = [letter(instance_of(node), noticed, message_id=node) for node in nodes]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(product.run, letters)) == [(), ()]
    product.deliver_until_finished(*nodes)
    errors = [call.error for call in product.journal.writes("PATCH", "/scale")]
    assert errors.count("") == 2
    assert "ConflictError" in errors
    assert scene.replicas("on-demand") == ON_DEMAND + SPOT
    until_whole(scene, ON_DEMAND + SPOT)
    assert not scene.spread().keys() & set(nodes)
    assert scene.fewest_ready(noticed) >= FLOOR
    report(scene, noticed, measured)
