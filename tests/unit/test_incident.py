"""The record of an interruption: how it advances, and what is due to be told."""

import datetime as dt

import msgspec
import pytest

from lambdas.core.incident import (
    CLAIM,
    Incident,
    Told,
    advance,
    concerns,
    is_same,
    stuck,
    to_tell,
)
from lambdas.core.plan import Action, Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.core.policy import Mode

NOTICED = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)
TAKEN = NOTICED + dt.timedelta(seconds=120)
EARLY = NOTICED + dt.timedelta(seconds=5)
TIME_IS_UP = NOTICED + dt.timedelta(seconds=106)
MARGIN = dt.timedelta(seconds=15)

INCIDENT = Incident(
    instance_id="i-a",
    cluster="gpu-prod",
    instance_type="g5.2xlarge",
    zone="eu-west-1a",
    mode=Mode.ACT,
    noticed_at=NOTICED,
    taken_at=TAKEN,
    node="node-a",
)
SURGE = Surge(
    workload="chat",
    namespace="inference",
    deployment="chat-on-demand",
    spot_deployment="chat-spot",
    before=1,
    after=3,
    resource_version="7",
    nodes=("node-a", "node-b"),
    reason="because",
)
CORDON = Cordon(node="node-a", interrupted_at="2026-03-01T12:02:00Z", reason="because")
LEAVE = Leave(subject="chat", nodes=("node-a",), reason="already made up for")


def evict(name: str) -> Evict:
    return Evict(
        node="node-a",
        namespace="inference",
        pod=name,
        uid=f"uid-{name}",
        deployment="chat-spot",
        reason="because",
    )


def outcome(action: Action, status: Status, detail: str = "") -> Outcome:
    return Outcome(action=action, status=status, detail=detail)


@pytest.mark.parametrize(
    ("before", "new", "now", "after", "closed"),
    [
        pytest.param(
            (),
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.DONE)),
            EARLY,
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.DONE)),
            True,
            id="all done at once",
        ),
        pytest.param(
            (),
            (outcome(evict("a"), Status.BLOCKED), outcome(evict("b"), Status.DONE)),
            EARLY,
            (outcome(evict("a"), Status.BLOCKED), outcome(evict("b"), Status.DONE)),
            False,
            id="a budget blocks: open",
        ),
        pytest.param(
            (outcome(evict("a"), Status.BLOCKED), outcome(evict("b"), Status.DONE)),
            (outcome(evict("a"), Status.DONE),),
            EARLY,
            (outcome(evict("a"), Status.DONE), outcome(evict("b"), Status.DONE)),
            True,
            id="the budget gives way",
        ),
        pytest.param(
            (outcome(evict("a"), Status.BLOCKED),),
            (outcome(evict("a"), Status.BLOCKED),),
            TIME_IS_UP,
            (outcome(evict("a"), Status.BLOCKED),),
            True,
            id="time is up: closed with what is blocked",
        ),
        pytest.param(
            (outcome(evict("a"), Status.RETRY),),
            (outcome(evict("a"), Status.RETRY),),
            TIME_IS_UP,
            (outcome(evict("a"), Status.RETRY),),
            False,
            id="a passing failure is tried again even then",
        ),
        pytest.param(
            (outcome(evict("a"), Status.BLOCKED),),
            (),
            EARLY,
            (outcome(evict("a"), Status.UNNEEDED, "no longer needed"),),
            True,
            id="the pod is gone by itself",
        ),
        pytest.param(
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.BLOCKED)),
            (outcome(LEAVE, Status.DONE), outcome(evict("a"), Status.DONE)),
            EARLY,
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.DONE)),
            True,
            id="our own surge seen again is not told as left alone",
        ),
        pytest.param((), (), EARLY, (), True, id="nothing to do"),
    ],
)
def test_advance(
    before: tuple[Outcome, ...],
    new: tuple[Outcome, ...],
    now: dt.datetime,
    after: tuple[Outcome, ...],
    closed: bool,
) -> None:
    incident = msgspec.structs.replace(INCIDENT, outcomes=before)
    advanced = advance(incident, new, now, MARGIN)
    assert (advanced.outcomes, advanced.closed) == (after, closed)


def test_out_of_reach_keeps_what_was_done_and_goes_away_when_it_is_over() -> None:
    done = outcome(SURGE, Status.DONE)
    blocked = outcome(evict("a"), Status.BLOCKED)
    incident = msgspec.structs.replace(INCIDENT, outcomes=(done, blocked))
    once = stuck(incident, Status.RETRY, "503")
    twice = stuck(once, Status.RETRY, "504")
    assert not twice.closed
    assert twice.outcomes[:2] == (done, blocked)
    assert [one.detail for one in twice.outcomes[2:]] == ["504"]
    over = advance(twice, (outcome(evict("a"), Status.DONE),), EARLY, MARGIN)
    assert over.closed
    assert over.has == {Status.DONE, Status.UNNEEDED}


def test_refused_for_good_closes() -> None:
    assert stuck(INCIDENT, Status.FAILED, "403").closed


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({}, Told.OPENING),
        ({"closed": True}, Told.EVERYTHING),
        ({"told": Told.OPENING}, None),
        ({"told": Told.OPENING, "closed": True}, Told.EVERYTHING),
        ({"told": Told.EVERYTHING, "closed": True}, None),
        ({"claimed_until": EARLY + CLAIM}, None),
        ({"claimed_until": EARLY}, Told.OPENING),
    ],
)
def test_to_tell(changes: dict[str, object], due: Told | None) -> None:
    assert to_tell(msgspec.structs.replace(INCIDENT, **changes), EARLY) == due


@pytest.mark.parametrize(
    ("noticed_at", "same"),
    [
        (NOTICED, True),
        (NOTICED + dt.timedelta(minutes=2), True),
        (NOTICED - dt.timedelta(minutes=2), True),
        (NOTICED + dt.timedelta(hours=1), False),
    ],
)
def test_a_much_later_notice_is_another_incident(noticed_at: dt.datetime, same: bool) -> None:
    assert is_same(INCIDENT, noticed_at) == same


@pytest.mark.parametrize(
    ("action", "node", "expected"),
    [
        (SURGE, "node-b", True),
        (SURGE, "node-c", False),
        (CORDON, "node-a", True),
        (evict("a"), "node-b", False),
        (LEAVE, "node-a", True),
        (Leave(subject="i-a", nodes=(), reason="gone"), "", True),
        (Leave(subject="i-b", nodes=(), reason="gone"), "", False),
    ],
)
def test_concerns(action: Action, node: str, expected: bool) -> None:
    assert concerns(action, node, "i-a") == expected


def test_a_record_survives_the_ledger_unchanged() -> None:
    incident = msgspec.structs.replace(
        INCIDENT,
        outcomes=(
            outcome(SURGE, Status.DONE),
            outcome(CORDON, Status.UNNEEDED, "already gone"),
            outcome(evict("a"), Status.BLOCKED, "budget"),
            outcome(LEAVE, Status.DONE),
        ),
        claimed_until=EARLY,
        thread="1.2",
    )
    assert msgspec.json.decode(msgspec.json.encode(incident), type=Incident) == incident
