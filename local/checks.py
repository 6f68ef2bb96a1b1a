"""What must hold at the end of a rehearsal, and the table of before and after."""

from collections.abc import Iterator

import msgspec

from lambdas.core.incident import Incident, Told
from lambdas.core.policy import Mode
from local.kubernetes import Happening, Request
from local.kubernetes.facts import is_active, is_ready, owner_of
from local.kubernetes.offers import POOL_LABEL
from local.kubernetes.resources import DEPLOYMENTS, NODES, PODS
from local.objects import Objects
from local.recording import Check, Row, State, Track, fewest_ready
from local.scene import CHAT, ON_DEMAND_POOL, SPOT_POOL, Pair, Scene
from local.slack.stand_in import Message, Refusal
from local.watch import WORKLOAD_LABEL


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """How much the function has done so far; a second delivery must add nothing."""

    writes: int
    posts: int
    ledger_version: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks judge by. `requests` are those of the function."""

    scene: Scene
    mode: Mode
    incident: Incident
    requests: tuple[Request, ...]
    happenings: tuple[Happening, ...]
    tracks: tuple[Track, ...]
    messages: tuple[Message, ...]
    refusals: tuple[Refusal, ...]
    first: Footprint
    second: Footprint
    waiting: int
    dead: int
    on_demand_before: int
    on_demand_after: int


def judge(evidence: Evidence) -> tuple[Check, ...]:
    """Every check of the mode."""
    own = _observed if evidence.mode is Mode.OBSERVE else _acted
    return (*own(evidence), *_always(evidence))


def writes(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """The requests that are meant to change something."""
    return tuple(request for request in requests if request.method != "GET")


def figures(store: Objects, node: str) -> dict[str, str]:
    """The table's figures as they stand now."""
    with store.lock:
        nodes = store.list(NODES)
        there = next((one for one in nodes if one["metadata"]["name"] == node), None)
        on_node = [
            pod
            for pod in store.list(PODS, fields=f"spec.nodeName={node}")
            if owner_of(pod).get("kind") != "DaemonSet"
        ]
        pools = [(one["metadata"].get("labels") or {}).get(POOL_LABEL) for one in nodes]
        return {
            f"{CHAT.on_demand}, replicas": str(replicas(store, CHAT, CHAT.on_demand)),
            f"{CHAT.spot}, replicas": str(replicas(store, CHAT, CHAT.spot)),
            f"{CHAT.name}, replicas ready": str(ready_replicas(store, CHAT)),
            f"Nodes in {SPOT_POOL}": str(pools.count(SPOT_POOL)),
            f"Nodes in {ON_DEMAND_POOL}": str(pools.count(ON_DEMAND_POOL)),
            "The interrupted node": "ready" if there else "taken away",
            "Pods on it, but for daemons": str(len(on_node)),
        }


def table(before: dict[str, str], after: dict[str, str]) -> tuple[Row, ...]:
    """The figures side by side."""
    return tuple(Row(figure, before[figure], after[figure]) for figure in before)


def replicas(store: Objects, pair: Pair, deployment: str) -> int:
    """The replicas that a Deployment is to have."""
    return int(store.get(DEPLOYMENTS, deployment, pair.namespace)["spec"]["replicas"])


def ready_replicas(store: Objects, pair: Pair) -> int:
    """Replicas of a workload that serve, both halves together."""
    pods = store.list(PODS, pair.namespace, labels=f"{WORKLOAD_LABEL}={pair.name}")
    return sum(is_ready(pod) and is_active(pod) for pod in pods)


def _acted(evidence: Evidence) -> Iterator[Check]:
    yield _surged(evidence)
    yield _nothing_lost(evidence)
    yield _floor_held(evidence)
    yield _node_left(evidence)
    yield _nothing_else_touched(evidence)


def _observed(evidence: Evidence) -> Iterator[Check]:
    changes = writes(evidence.requests)
    detail = f"{len(evidence.requests)} calls, all of them GET"
    if changes:
        detail = ", ".join(f"{one.method} {one.path}" for one in changes)
    yield Check("Nothing in the cluster was changed by Shiftwright", not changes, detail)
    before, after = evidence.on_demand_before, evidence.on_demand_after
    name = f"{CHAT.on_demand} has the replicas it had"
    yield Check(name, before == after, f"{before}, and {after} at the end")


def _always(evidence: Evidence) -> Iterator[Check]:
    yield _told_once(evidence)
    finished = evidence.incident.closed and evidence.incident.told is Told.EVERYTHING
    yield Check("The ledger has the incident, closed and told", finished)
    same = evidence.first == evidence.second
    detail = "" if same else f"{evidence.first} became {evidence.second}"
    yield Check("A second delivery of the notice changed nothing and told nothing", same, detail)
    left = f"{evidence.waiting} waiting, {evidence.dead} in the dead letters"
    empty = evidence.waiting == evidence.dead == 0
    yield Check("The queue is empty, and so are its dead letters", empty, left)


def _surged(evidence: Evidence) -> Check:
    """One more on-demand replica for each spot replica on the node."""
    before, after = evidence.on_demand_before, evidence.on_demand_after
    on_node = sum(
        track.workload == CHAT.name
        for track in evidence.tracks
        if track.kind == "pod" and track.spans[0].place == evidence.scene.node
    )
    name = f"{CHAT.on_demand} makes up for the {on_node} replicas on the node"
    return Check(name, on_node > 0 and after == before + on_node, f"{before} → {after} replicas")


def _nothing_lost(evidence: Evidence) -> Check:
    lost = [one.subject for one in evidence.happenings if one.kind == "lost"]
    return Check("No pod died with the node without having been evicted", not lost, ", ".join(lost))


def _floor_held(evidence: Evidence) -> Check:
    fewest = fewest_ready(evidence.tracks, CHAT.name)
    name = f"{CHAT.name} never had fewer than {CHAT.floor} ready replicas"
    return Check(name, fewest >= CHAT.floor, f"{fewest} at the lowest point")


def _node_left(evidence: Evidence) -> Check:
    name = evidence.scene.node
    spans = next((one.spans for one in evidence.tracks if one.name == name), ())
    cordoned = bool(spans) and spans[-1].state is State.CORDONED
    gone = any(one.kind == "reclaimed" and one.subject == name for one in evidence.happenings)
    detail = f"cordoned: {'yes' if cordoned else 'no'}, taken away: {'yes' if gone else 'no'}"
    return Check("The node was cordoned, and then taken away", cordoned and gone, detail)


def _nothing_else_touched(evidence: Evidence) -> Check:
    """Writes went to the node, its pods and the on-demand Deployment, and nowhere else."""
    node = evidence.scene.node
    pods = {
        track.name
        for track in evidence.tracks
        if track.kind == "pod" and any(span.place == node for span in track.spans)
    }
    allowed = {node, CHAT.on_demand, *pods}
    strays = [
        request.path
        for request in writes(evidence.requests)
        if not allowed.intersection(request.path.partition("?")[0].split("/"))
    ]
    return Check("Nothing else in the cluster was written to", not strays, ", ".join(strays))


def _told_once(evidence: Evidence) -> Check:
    threads = [message for message in evidence.messages if message.thread_ts is None]
    refused = [one.error for one in evidence.refusals if one.error != "ratelimited"]
    detail = f"messages: {len(evidence.messages)}, threads: {len(threads)}"
    if refused:
        detail += f"; Slack refused: {', '.join(refused)}"
    return Check("People were told in one Slack thread", len(threads) == 1 and not refused, detail)
