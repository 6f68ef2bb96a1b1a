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
    Status.OBSERVED: "would do it",
    Status.UNNEEDED: "not needed any more",
    Status.BLOCKED: "held back by a disruption budget",
    Status.RETRY: "to be tried again",
    Status.FAILED: "failed",
}
_EVICTION = re.compile(r"/pods/([^/]+)/eviction")
_SCALE = re.compile(r"/deployments/([^/]+)/scale")
_NODE = re.compile(r"/api/v1/nodes/([^/?]+)")


class Story:
    """Collects events, and prints them in the order in which they happened. Thread-safe.

    `zero` is the moment of the notice. What an action was comes to light only when the ledger
    has it; so events wait in `flush` until nothing earlier can come any more.
    """

    def __init__(self, console: Console, zero: dt.datetime) -> None:
        self._console = console
        self._zero = zero
        self._lock = threading.Lock()
        self._told: list[Event] = []
        self._waiting: list[Event] = []

    @property
    def events(self) -> tuple[Event, ...]:
        """What was printed, in its order."""
        with self._lock:
            return tuple(self._told)

    def seconds(self, at: dt.datetime) -> float:
        """Seconds since the notice."""
        return (at - self._zero).total_seconds()

    def tell(self, at: dt.datetime, source: Source, text: str, reason: str = "") -> None:
        """Something happened."""
        event = Event(at=self.seconds(at), source=source, text=text, reason=reason)
        with self._lock:
            self._waiting.append(event)

    def flush(self, until: dt.datetime) -> None:
        """Print what happened up to a moment."""
        end = self.seconds(until)
        with self._lock:
            due = sorted((one for one in self._waiting if one.at <= end), key=lambda one: one.at)
            self._waiting = [one for one in self._waiting if one.at > end]
            self._told += due
        for event in due:
            self._print(event)

    def _print(self, event: Event) -> None:
        self._console.line(f"{event.at:+7.1f} s  {_WHO[event.source]:<11}  {event.text}")
        if event.reason:
            self._console.line(" " * 24 + self._console.paint(event.reason, "dim"))


class Bookkeeper(msgspec.Struct):
    """Turns each new state of the ledger's incident into lines, with the API's own times."""

    story: Story
    seen: dict[tuple[str, str], Status] = {}

    def read(self, incident: Incident, requests: Iterable[Request], now: dt.datetime) -> None:
        """Tell what is new in the incident."""
        for outcome in incident.outcomes:
            key = describe(outcome.action)
            if self.seen.get(key) is outcome.status:
                continue
            self.seen[key] = outcome.status
            at = accepted_at(outcome, requests)
            self.story.tell(
                at or now,
                Source.SHIFTWRIGHT,
                _sentence(outcome),
                outcome.detail or outcome.action.reason,
            )


def _sentence(outcome: Outcome) -> str:
    text = " ".join(describe(outcome.action))
    if outcome.status is Status.OBSERVED:
        return f"would {text}"
    return text if outcome.status is Status.DONE else f"{text}: {_WORDS[outcome.status]}"


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
            name = f"{surge.namespace}/{surge.deployment}"
            return "surge", f"{name} {surge.before} → {surge.after}"
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
