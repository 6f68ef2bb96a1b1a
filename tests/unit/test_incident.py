"""The record of an interruption: how it advances, and what is due to be told."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from lambdas.core.incident import (
    Incident,
    Told,
    advance,
    concerns,
    is_due,
    is_same,
    miss,
)
from lambdas.core.plan import Action, Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.core.policy import Mode

NOTICED = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)
TAKEN = NOTICED + dt.timedelta(seconds=120)
EARLY = NOTICED + dt.timedelta(seconds=5)

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
    ("before", "new", "time_is_up", "after", "closed"),
    [
        pytest.param(
            (),
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.DONE)),
            False,
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.DONE)),
            True,
            id="all done at once",
        ),
        pytest.param(
            (),
            (outcome(evict("a"), Status.BLOCKED), outcome(evict("b"), Status.DONE)),
            False,
            (outcome(evict("a"), Status.BLOCKED), outcome(evict("b"), Status.DONE)),
            False,
            id="a budget blocks: open",
        ),
        pytest.param(
            (outcome(evict("a"), Status.BLOCKED), outcome(evict("b"), Status.DONE)),
            (outcome(evict("a"), Status.DONE),),
            False,
            (outcome(evict("a"), Status.DONE), outcome(evict("b"), Status.DONE)),
            True,
            id="the budget gives way",
        ),
        pytest.param(
            (outcome(evict("a"), Status.BLOCKED),),
            (outcome(evict("a"), Status.BLOCKED),),
            True,
            (outcome(evict("a"), Status.BLOCKED),),
            True,
            id="time is up: closed with what is blocked",
        ),
        pytest.param(
            (outcome(evict("a"), Status.BLOCKED), outcome(evict("b"), Status.RETRY)),
            (),
            True,
            (
                outcome(evict("a"), Status.BLOCKED),
                outcome(evict("b"), Status.UNNEEDED, "no longer needed"),
            ),
            True,
            id="time is up: nothing is evicted any more, and what is blocked stays so",
        ),
        pytest.param(
            (outcome(evict("a"), Status.RETRY),),
            (outcome(evict("a"), Status.RETRY),),
            True,
            (outcome(evict("a"), Status.RETRY),),
            False,
            id="a passing failure is tried again even then",
        ),
        pytest.param(
            (outcome(evict("a"), Status.BLOCKED),),
            (),
            False,
            (outcome(evict("a"), Status.UNNEEDED, "no longer needed"),),
            True,
            id="the pod is gone by itself",
        ),
        pytest.param(
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.BLOCKED)),
            (outcome(LEAVE, Status.DONE), outcome(evict("a"), Status.DONE)),
            False,
            (outcome(SURGE, Status.DONE), outcome(evict("a"), Status.DONE)),
            True,
            id="our own surge seen again is not told as left alone",
        ),
        pytest.param((), (), False, (), True, id="nothing to do"),
    ],
)
def test_advance(
    before: tuple[Outcome, ...],
    new: tuple[Outcome, ...],
    time_is_up: bool,
    after: tuple[Outcome, ...],
    closed: bool,
) -> None:
    incident = msgspec.structs.replace(INCIDENT, outcomes=before)
    advanced = advance(incident, new, time_is_up=time_is_up)
    assert (advanced.outcomes, advanced.closed) == (after, closed)


def test_a_miss_keeps_what_was_done_and_is_forgotten_when_it_is_over() -> None:
    done, blocked = outcome(SURGE, Status.DONE), outcome(evict("a"), Status.BLOCKED)
    incident = msgspec.structs.replace(INCIDENT, outcomes=(done, blocked))
    missed = miss(incident, "503", for_good=False)
    assert (missed.trouble, missed.misses, missed.closed) == ("503", 1, False)
    assert missed.outcomes == (done, blocked)
    assert not missed.waits_for_budgets
    over = advance(missed, (outcome(evict("a"), Status.DONE),), time_is_up=False)
    assert (over.trouble, over.closed) == ("", True)


def test_refused_for_good_closes() -> None:
    assert miss(INCIDENT, "403", for_good=True).closed


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({}, False),
        ({"outcomes": (outcome(CORDON, Status.DONE),)}, True),
        ({"misses": 1, "trouble": "503"}, False),
        ({"misses": 2, "trouble": "503"}, True),
        ({"closed": True}, True),
        ({"told": Told.OPENING, "outcomes": (outcome(CORDON, Status.BLOCKED),)}, False),
        ({"told": Told.OPENING, "closed": True}, True),
        ({"told": Told.EVERYTHING, "closed": True}, False),
    ],
)
def test_is_due(changes: dict[str, Any], due: bool) -> None:
    assert is_due(msgspec.structs.replace(INCIDENT, **changes)) == due


@pytest.mark.parametrize(
    ("statuses", "waits"),
    [
        ((Status.DONE, Status.BLOCKED), True),
        ((Status.DONE,), False),
        ((Status.BLOCKED, Status.RETRY), False),
        ((Status.BLOCKED, Status.OVERTAKEN), False),
        ((), False),
    ],
)
def test_what_waits_for_budgets_alone(statuses: tuple[Status, ...], waits: bool) -> None:
    outcomes = tuple(outcome(evict(str(one)), one) for one in statuses)
    assert msgspec.structs.replace(INCIDENT, outcomes=outcomes).waits_for_budgets == waits


@pytest.mark.parametrize(
    ("noticed_at", "same"),
    [
        pytest.param(NOTICED, True, id="a second delivery"),
        pytest.param(TAKEN, True, id="another event about the same interruption"),
        pytest.param(TAKEN + dt.timedelta(seconds=1), False, id="a later interruption"),
        pytest.param(NOTICED - dt.timedelta(days=3), True, id="an old event, delivered again"),
    ],
)
def test_a_notice_from_after_the_end_is_another_incident(
    noticed_at: dt.datetime, same: bool
) -> None:
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
        trouble="503",
        thread="1.2",
    )
    assert msgspec.json.decode(msgspec.json.encode(incident), type=Incident) == incident
