"""The record of one interruption: what was done, how far it is, and what people were told."""

import datetime as dt
import enum
from collections.abc import Iterable

import msgspec

from lambdas.core.plan import Action, Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.core.policy import Mode

# A notice this much later is another interruption of the same (stopped, restarted) instance.
SAME_INCIDENT = dt.timedelta(hours=1)
# Whoever claims a message has this long to post it before another pass may.
CLAIM = dt.timedelta(seconds=30)
_UNSETTLED = (Status.BLOCKED, Status.RETRY)


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


def is_same(incident: Incident, noticed_at: dt.datetime) -> bool:
    """Whether a notice belongs to an incident that is on record for its instance."""
    return abs(noticed_at - incident.noticed_at) < SAME_INCIDENT


def concerns(action: Action, node: str, instance_id: str) -> bool:
    """Whether an action is part of the incident of this node."""
    match action:
        case Surge(nodes=nodes):
            return node in nodes
        case Cordon(node=its) | Evict(node=its):
            return node == its
        case Leave(subject=subject, nodes=nodes):
            return subject == instance_id or node in nodes


def advance(
    incident: Incident, outcomes: Iterable[Outcome], now: dt.datetime, margin: dt.timedelta
) -> Incident:
    """The record after one more pass.

    A later outcome of the same action replaces the earlier one. What was unsettled and is
    not planned again has settled itself. When only disruption budgets stand in the way and
    the time is up, the incident is closed with them.
    """
    new = {_key(outcome.action): outcome for outcome in outcomes}
    merged = [new.pop(_key(old.action), _settle(old)) for old in incident.outcomes]
    # Seen again, what we did ourselves looks like something to leave alone.
    merged += [one for one in new.values() if not (merged and isinstance(one.action, Leave))]
    advanced = msgspec.structs.replace(incident, outcomes=tuple(merged))
    time_is_up = now >= incident.taken_at - margin
    unsettled = advanced.has.intersection(_UNSETTLED)
    closed = not unsettled or (time_is_up and Status.RETRY not in unsettled)
    return msgspec.structs.replace(advanced, closed=closed)


def stuck(incident: Incident, status: Status, detail: str) -> Incident:
    """The record after a pass that could not reach the cluster: RETRY, or FAILED for good."""
    action = Leave(subject=incident.instance_id, nodes=(), reason="the cluster is out of reach")
    outcome = Outcome(action=action, status=status, detail=detail)
    others = (one for one in incident.outcomes if _key(one.action) != _key(action))
    return msgspec.structs.replace(
        incident, outcomes=(*others, outcome), closed=status is Status.FAILED
    )


def to_tell(incident: Incident, now: dt.datetime) -> Told | None:
    """How far people will know with the message that is due now, or None if none is due."""
    if incident.claimed_until and now < incident.claimed_until:
        return None
    if incident.closed and incident.told is not Told.EVERYTHING:
        return Told.EVERYTHING
    return Told.OPENING if incident.told is Told.NOTHING else None


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
