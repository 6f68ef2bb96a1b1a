"""The record of one interruption: what was done, how far it is, and what people were told."""

import datetime as dt
import enum
from collections.abc import Iterable

import msgspec

from lambdas.core.plan import TRY_AGAIN, Action, Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.core.policy import Mode

# Whoever claims a message has this long to post it before another pass may.
CLAIM = dt.timedelta(seconds=30)
# People hear of trouble in reaching a cluster from so many passes on: most of it is over sooner.
TELL_FROM = 2
_UNSETTLED = TRY_AGAIN | {Status.BLOCKED}


class Told(enum.Enum):
    """How much of the incident people have been told."""

    NOTHING = "nothing"
    OPENING = "opening"
    EVERYTHING = "everything"


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """One interruption of one instance. `version` counts the writes to the ledger."""

    instance_id: str
    cluster: str
    instance_type: str
    zone: str
    mode: Mode
    noticed_at: dt.datetime
    taken_at: dt.datetime
    node: str = ""
    outcomes: tuple[Outcome, ...] = ()
    # Why the last pass could do nothing, and how many passes could not.
    trouble: str = ""
    misses: int = 0
    closed: bool = False
    told: Told = Told.NOTHING
    thread: str = ""
    claimed_until: dt.datetime | None = None
    version: int = 0

    @property
    def finished(self) -> bool:
        """Nothing is left to do or to tell."""
        return self.closed and self.told is Told.EVERYTHING

    @property
    def has(self) -> frozenset[Status]:
        """The statuses among its outcomes."""
        return frozenset(outcome.status for outcome in self.outcomes)

    @property
    def waits_for_budgets(self) -> bool:
        """Whether nothing but disruption budgets stands in the way."""
        stuck = self.closed or self.trouble or self.has & TRY_AGAIN
        return Status.BLOCKED in self.has and not stuck


def is_same(incident: Incident, noticed_at: dt.datetime) -> bool:
    """Whether a notice belongs to an incident that is on record for its instance.

    A second delivery has the time of the first one. A notice from after the instance should
    have gone is another one: the first was a rehearsal, or the instance was started again.
    """
    return noticed_at <= incident.taken_at


def concerns(action: Action, node: str, instance_id: str) -> bool:
    """Whether an action is part of the incident of this node."""
    match action:
        case Surge(nodes=nodes):
            return node in nodes
        case Cordon(node=its) | Evict(node=its):
            return node == its
        case Leave(subject=subject, nodes=nodes):
            return subject == instance_id or node in nodes


def advance(incident: Incident, outcomes: Iterable[Outcome], *, time_is_up: bool) -> Incident:
    """The record after one more pass.

    A later outcome of the same action replaces the earlier one. What was unsettled and is not
    planned again has settled itself. When the time is up, what disruption budgets hold back
    stays as it is, and the incident is closed with it.
    """
    surged = {one.action.workload for one in incident.outcomes if isinstance(one.action, Surge)}
    new = {_key(outcome.action): outcome for outcome in outcomes}
    keeps = {Status.BLOCKED} if time_is_up else set()
    merged = [
        new.pop(_key(old.action), old if old.status in keeps else _settle(old))
        for old in incident.outcomes
    ]
    # Seen again, our own surge looks like something to leave alone.
    merged += [
        one
        for one in new.values()
        if not (isinstance(one.action, Leave) and one.action.subject in surged)
    ]
    advanced = msgspec.structs.replace(incident, outcomes=tuple(merged), trouble="")
    return msgspec.structs.replace(advanced, closed=not advanced.has & (_UNSETTLED - keeps))


def miss(incident: Incident, trouble: str, *, for_good: bool) -> Incident:
    """The record after a pass that could do nothing, and whether another one may."""
    return msgspec.structs.replace(
        incident, trouble=trouble, misses=incident.misses + 1, closed=for_good
    )


def is_due(incident: Incident) -> bool:
    """Whether people are to be told something now."""
    if incident.closed:
        return incident.told is not Told.EVERYTHING
    if incident.told is not Told.NOTHING:
        return False
    return bool(incident.outcomes) or incident.misses >= TELL_FROM


def _key(action: Action) -> tuple[str, ...]:
    match action:
        case Surge():
            return ("surge", action.namespace, action.deployment)
        case Cordon():
            return ("cordon", action.node)
        case Evict():
            return ("evict", action.uid)
        case Leave():
            return ("leave", action.subject)


def _settle(outcome: Outcome) -> Outcome:
    if outcome.status not in _UNSETTLED:
        return outcome
    return Outcome(action=outcome.action, status=Status.UNNEEDED, detail="no longer needed")
