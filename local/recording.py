"""The record of a run as plain data: what the page shows, and what the checks judge.

Every time is in seconds since the notice, by the clock of the scene.
"""

import enum
from collections.abc import Iterable, Iterator

import msgspec


class State(enum.Enum):
    """How a node or pod stood."""

    PENDING = "pending"  # a pod without a node
    STARTING = "starting"
    READY = "ready"
    CORDONED = "cordoned"
    TERMINATING = "terminating"
    DONE = "done"  # a pod whose containers have ended


class Role(enum.Enum):
    """What a node or pod is to the story."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    DAEMON = "daemon"
    OTHER = "other"


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """One node or pod at one moment. A pod's `place` is its node, a node's its pool."""

    kind: str
    name: str
    role: Role
    state: State
    place: str
    workload: str = ""
    instance: str = ""


class Span(msgspec.Struct, frozen=True):
    """A stretch of time in one state at one place."""

    state: State
    place: str
    start: float
    end: float


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """The life of one node or pod."""

    kind: str
    name: str
    role: Role
    workload: str
    instance: str
    spans: tuple[Span, ...]


class Source(enum.Enum):
    """Who says what happened."""

    AWS = "aws"
    SHIFTWRIGHT = "shiftwright"
    CLUSTER = "cluster"
    SLACK = "slack"
    STAGE = "stage"  # the run itself: a sped-up clock, a second delivery


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, in one line, and why."""

    at: float
    source: Source
    text: str
    reason: str = ""


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """An action of the plan, why, and what became of it."""

    what: str
    subject: str
    reason: str
    outcome: str
    detail: str = ""


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """A Slack message, as the channel shows it."""

    at: float
    text: str
    blocks: tuple[dict[str, object], ...] = ()
    reply: bool = False


class Row(msgspec.Struct, frozen=True):
    """A line of the table: a figure before and after."""

    figure: str
    before: str
    after: str


class Check(msgspec.Struct, frozen=True):
    """Something that must hold at the end."""

    name: str
    held: bool
    detail: str = ""


class Step(msgspec.Struct, frozen=True):
    """A step of setting the stage, and how long it took."""

    name: str
    seconds: float


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of one run."""

    cluster: str
    region: str
    mode: str
    node: str
    instance: str
    noticed_at: str
    channel: str
    workload: str
    replicas: int
    floor: int
    deadline: float = 120.0
    surged_at: float | None = None
    evicted: int = 0
    sped_up_at: float | None = None
    speed: float = 1.0
    calls: int = 0
    steps: tuple[Step, ...] = ()
    tracks: tuple[Track, ...] = ()
    events: tuple[Event, ...] = ()
    acts: tuple[Act, ...] = ()
    posts: tuple[Post, ...] = ()
    rows: tuple[Row, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def begins(self) -> float:
        """When the first span begins."""
        return min((span.start for track in self.tracks for span in track.spans), default=0.0)

    @property
    def ends(self) -> float:
        """When the last span ends."""
        return max((span.end for track in self.tracks for span in track.spans), default=0.0)


class Recorder:
    """Turns sightings into tracks."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], Sighting] = {}
        self._spans: dict[tuple[str, str], list[Span]] = {}

    def observe(self, at: float, sightings: Iterable[Sighting]) -> None:
        """Take down everything there is at this moment; what is missing is gone."""
        for sighting in sightings:
            key = (sighting.kind, sighting.name)
            self._first.setdefault(key, sighting)
            spans = self._spans.setdefault(key, [])
            last = spans[-1] if spans else None
            if last and (last.state, last.place) == (sighting.state, sighting.place):
                spans[-1] = Span(last.state, last.place, last.start, at)
                continue
            if last:
                spans[-1] = Span(last.state, last.place, last.start, at)
            spans.append(Span(sighting.state, sighting.place, at, at))

    def tracks(self) -> tuple[Track, ...]:
        """What was seen so far, in the order of first sight."""
        return tuple(
            Track(
                kind=first.kind,
                name=first.name,
                role=first.role,
                workload=first.workload,
                instance=first.instance,
                spans=tuple(self._spans[key]),
            )
            for key, first in self._first.items()
        )


def ready_over_time(tracks: Iterable[Track], workload: str) -> tuple[tuple[float, int, int], ...]:
    """Ready replicas of a workload on spot and on-demand, at each moment one of them changes."""
    pods = [track for track in tracks if track.kind == "pod" and track.workload == workload]
    end = max((span.end for track in pods for span in track.spans), default=0.0)
    points: dict[float, tuple[int, int]] = {}
    spot = on_demand = 0
    for at, spot_change, on_demand_change in sorted(_changes(pods, end)):
        spot += spot_change
        on_demand += on_demand_change
        points[at] = (spot, on_demand)
    return tuple((at, *counts) for at, counts in points.items())


def fewest_ready(tracks: Iterable[Track], workload: str) -> int:
    """The fewest ready replicas of a workload from the notice on; 0 if it was never seen.

    What stood at the notice counts too, whenever it had become ready.
    """
    points = ready_over_time(tracks, workload)
    before = [spot + on_demand for at, spot, on_demand in points if at <= 0][-1:]
    after = [spot + on_demand for at, spot, on_demand in points if at > 0]
    return min([*before, *after], default=0)


def _changes(pods: Iterable[Track], end: float) -> Iterator[tuple[float, int, int]]:
    for pod in pods:
        spot = int(pod.role is Role.SPOT)
        for span in pod.spans:
            if span.state is not State.READY:
                continue
            yield span.start, spot, 1 - spot
            if span.end < end:  # the recording ends, not the pod
                yield span.end, -spot, spot - 1
