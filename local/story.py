"""The story of a run: what is told by the API journal, the ledger, Slack and the cluster."""

import datetime as dt
import re
import threading
from collections.abc import Iterable, Iterator

import msgspec

from lambdas.core.incident import Incident
from lambdas.core.plan import Action, Cordon, Evict, Leave, Outcome, Status, Surge
from local.console import Console
from local.kubernetes import Request
from local.recording import Act, Event, Source

_WHO = {
    Source.AWS: "AWS",
    Source.SHIFTWRIGHT: "shiftwright",
    Source.CLUSTER: "cluster",
    Source.SLACK: "Slack",
    Source.STAGE: "",
}
_WORDS = {
    Status.DONE: "done",
    Status.OBSERVED: "would do it; observe mode",
    Status.UNNEEDED: "not needed any more",
    Status.BLOCKED: "held back by a disruption budget",
    Status.RETRY: "to be tried again",
    Status.FAILED: "failed",
}
_EVICTION = re.compile(r"/pods/([^/]+)/eviction")
_SCALE = re.compile(r"/deployments/([^/]+)/scale")
_NODE = re.compile(r"/api/v1/nodes/([^/?]+)")


class Story:
    """Collects events and prints each as it comes. Thread-safe.

    `zero` is the moment of the notice.
    """

    def __init__(self, console: Console, zero: dt.datetime) -> None:
        self._console = console
        self._zero = zero
        self._lock = threading.Lock()
        self._events: list[Event] = []

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened so far, in its order."""
        with self._lock:
            return tuple(sorted(self._events, key=lambda event: event.at))

    def seconds(self, at: dt.datetime) -> float:
        """Seconds since the notice."""
        return (at - self._zero).total_seconds()

    def tell(self, at: dt.datetime, source: Source, text: str, reason: str = "") -> None:
        """Something happened."""
        event = Event(at=self.seconds(at), source=source, text=text, reason=reason)
        with self._lock:
            self._events.append(event)
            self._console.line(f"{event.at:+7.1f} s  {_WHO[source]:<11}  {text}")
            if reason:
                self._console.line(" " * 24 + self._console.paint(reason, "dim"))


class Bookkeeper(msgspec.Struct):
    """Turns each new state of the ledger's incident into lines, with the API's own times."""

    story: Story
    seen: dict[tuple[str, str], Status] = {}

    def read(self, incident: Incident, requests: Iterable[Request]) -> None:
        """Tell what is new in the incident."""
        for outcome in incident.outcomes:
            key = (describe(outcome.action)[0], describe(outcome.action)[1])
            if self.seen.get(key) is outcome.status:
                continue
            self.seen[key] = outcome.status
            at = accepted_at(outcome, requests)
            what, subject = key
            self.story.tell(
                at or incident.noticed_at,
                Source.SHIFTWRIGHT,
                f"{what} {subject}: {_WORDS[outcome.status]}",
                outcome.detail or outcome.action.reason,
            )


def acts(incident: Incident) -> Iterator[Act]:
    """The incident's actions as the page shows them."""
    for outcome in incident.outcomes:
        what, subject = describe(outcome.action)
        yield Act(
            what=what,
            subject=subject,
            reason=outcome.action.reason,
            outcome=_WORDS[outcome.status],
            detail=outcome.detail,
        )


def describe(action: Action) -> tuple[str, str]:
    """An action in two parts: what, and to which object."""
    match action:
        case Surge() as surge:
            subject = f"{surge.namespace}/{surge.deployment}"
            return f"surge {surge.before} → {surge.after}", subject
        case Cordon():
            return "cordon", action.node
        case Evict():
            return "evict", f"{action.namespace}/{action.pod}"
        case Leave():
            return "leave", action.subject


def accepted_at(outcome: Outcome, requests: Iterable[Request]) -> dt.datetime | None:
    """When the API server last answered the request behind an outcome."""
    wanted = _request_of(outcome.action)
    times = [one.at for one in requests if one.method != "GET" and _object_of(one.path) == wanted]
    return max(times, default=None)


def _request_of(action: Action) -> tuple[str, str]:
    match action:
        case Surge():
            return "scale", action.deployment
        case Cordon():
            return "node", action.node
        case Evict():
            return "eviction", action.pod
        case Leave():
            return "", action.subject


def _object_of(path: str) -> tuple[str, str]:
    for kind, pattern in (("eviction", _EVICTION), ("scale", _SCALE), ("node", _NODE)):
        if found := pattern.search(path):
            return kind, found[1]
    return "", path
