"""The timeline of a run as HTML: ready replicas over time, and a lane for every node."""

import html
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from local.recording import Recording, Role, Span, Track, ready_over_time

_STEPS = (1, 2, 5, 10, 15, 30, 60)
_ROW = 20
_DAEMON_ROW = 8
_ROLES = {Role.SPOT: "spot", Role.ON_DEMAND: "demand", Role.DAEMON: "daemon", Role.OTHER: "other"}
_LEGEND = (
    ("r-spot", "", "replica on spot"),
    ("r-demand", "", "replica on on-demand"),
    ("r-other", "", "another team's pod"),
    ("r-spot", "pod starting", "starting"),
    ("r-spot", "pod terminating", "terminating"),
    ("r-spot", "pod pending", "waiting for a node"),
    ("", "life cordoned", "cordoned node"),
)


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Where a moment stands, in percent of the width.

    When the clock was sped up, what comes after is squeezed into the last third; less if
    little came before.
    """

    start: float
    end: float
    knee: float | None = None

    def x(self, at: float) -> float:
        """The place of a moment; what lies outside is put on the edge."""
        at = min(max(at, self.start), self.end)
        if self.knee is None:
            return 100 * (at - self.start) / (self.end - self.start)
        before = self.knee - self.start
        share = min(68.0, 5 * before)
        if at <= self.knee:
            return share * (at - self.start) / before
        return share + (100 - share) * (at - self.knee) / (self.end - self.knee)

    def ticks(self) -> tuple[int, ...]:
        """Round seconds to label, not too close to each other."""
        if self.knee is None:
            return tuple(_round(self.start, self.end, 10))
        early = list(_round(self.start, self.knee, 8))
        late = [at for at in _round(self.knee, self.end, 4) if self.x(at) - self.x(early[-1]) > 5]
        return (*early, *late)


def scale_of(recording: Recording) -> Scale:
    """The scale that fits a recording."""
    start = min(recording.begins, 0.0)
    end = max(recording.ends, start + 1)
    knee = recording.sped_up_at
    return Scale(start=start, end=end, knee=knee if knee and start < knee < end else None)


def marks(recording: Recording, scale: Scale) -> str:
    """The notice, the deadline and the sped-up stretch, over all lanes."""
    parts = [_mark(scale.x(0), "notice", "left")]
    if scale.knee is not None:
        x = scale.x(scale.knee)
        parts.append(f'<div class="fast" style="left:{x:.2f}%;right:0"></div>')
        parts.append(_mark(x, f"clock {recording.speed:g} times faster", "soft left"))
    if scale.end >= recording.deadline:
        parts.append(_mark(scale.x(recording.deadline), "taken away", "right"))
    return "".join(parts)


def legend() -> str:
    """What the colours and patterns mean."""
    return "".join(
        f'<span class="{role}"><i class="key {style}"></i>{text}</span>'
        for role, style, text in _LEGEND
    )


def ticks(scale: Scale) -> str:
    """The labels of the time axis."""
    return "".join(
        f'<span style="left:{scale.x(at):.2f}%"{_minor(index)}>{at}&thinsp;s</span>'
        for index, at in enumerate(scale.ticks())
    )


def area(recording: Recording, scale: Scale) -> str:
    """Ready replicas of the workload as a stacked step chart, with its floor."""
    points = ready_over_time(recording.tracks, recording.workload)
    if not points:
        return ""
    top = max(recording.floor, *(spot + on_demand for _, spot, on_demand in points)) + 1
    spot = [(at, 0, count) for at, count, _ in points]
    on_demand = [(at, count, count + more) for at, count, more in points]
    fewest = min(total for _, _, total in on_demand)
    grid = "".join(f"M0 {_y(count, top)}H100" for count in range(1, top))
    label = f"Ready replicas of {html.escape(recording.workload)}"
    return (
        f'<div class="caption"><h3>{label}</h3><span>spot below, on-demand above</span></div>'
        f'<figure class="area"><svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" '
        f'aria-label="{label} over time; never fewer than {fewest}">'
        f'<path class="spot" d="{_steps(spot, top, scale)}"/>'
        f'<path class="demand" d="{_steps(on_demand, top, scale)}"/><path class="grid" d="{grid}"/>'
        f'<path class="floor" d="M0 {_y(recording.floor, top)}H100"/></svg>'
        f'<span class="tag" style="top:{_y(recording.floor, top)}%">'
        f"at least {recording.floor} ready</span></figure>"
    )


def pools(recording: Recording, scale: Scale) -> str:
    """One lane for every node, by pool, and one for the pods that wait for a node."""
    nodes = [track for track in recording.tracks if track.kind == "node"]
    pods = [track for track in recording.tracks if track.kind == "pod"]
    parts: list[str] = []
    for pool in dict.fromkeys(node.spans[0].place for node in nodes):
        here = [node for node in nodes if node.spans[0].place == pool]
        here.sort(key=lambda node: node.name != recording.node)
        count = f"{len(here)} node{'s' if len(here) > 1 else ''} seen"
        parts.append(_caption(pool, count))
        parts += [_lane(node, pods, recording, scale) for node in here]
    waiting = [pod for pod in pods if any(not span.place for span in pod.spans)]
    if waiting:
        parts.append(_caption("No node yet", "pods that wait for a node"))
        parts.append(f'<div class="node">{_pods(waiting, "", scale)}</div>')
    return "".join(parts)


def _caption(title: str, text: str) -> str:
    return (
        f'<div class="caption"><h3>{html.escape(title)}</h3><span>{html.escape(text)}</span></div>'
    )


def _lane(node: Track, pods: Sequence[Track], recording: Recording, scale: Scale) -> str:
    interrupted = node.name == recording.node
    flag = '<span class="flag">spot interruption</span>' if interrupted else ""
    lives = "".join(
        f'<div class="life {span.state.value}" style="{_extent(span, scale)}" '
        f'title="{_title(node.name, span)}"></div>'
        for span in node.spans
    )
    here = [pod for pod in pods if any(span.place == node.name for span in pod.spans)]
    name = f"<code>{html.escape(node.name)}</code><span>{html.escape(node.instance)}</span>{flag}"
    lane = _pods(here, node.name, scale, lives)
    return f'<div class="node"><div class="name">{name}</div>{lane}</div>'


def _pods(pods: Sequence[Track], place: str, scale: Scale, behind: str = "") -> str:
    """The pods of one place in as few rows as they fit in, over what lies behind them."""
    rows: list[float] = []
    parts: list[str] = []
    for pod in sorted(pods, key=lambda pod: (pod.role is Role.DAEMON, _begin(pod, place))):
        spans = [span for span in pod.spans if span.place == place]
        row = next((i for i, free in enumerate(rows) if free <= spans[0].start), len(rows))
        if pod.role is Role.DAEMON or row == len(rows):
            rows.append(0.0)
            row = len(rows) - 1
        rows[row] = spans[-1].end if pod.role is not Role.DAEMON else float("inf")
        parts += _bars(pod, spans, 4 + row * _ROW, scale)
    daemons = sum(pod.role is Role.DAEMON for pod in pods)
    height = 6 + (len(rows) - daemons) * _ROW + daemons * _DAEMON_ROW
    return f'<div class="lane" style="height:{height}px">{behind}{"".join(parts)}</div>'


def _begin(pod: Track, place: str) -> float:
    return next(span.start for span in pod.spans if span.place == place)


def _bars(pod: Track, spans: Sequence[Span], top: int, scale: Scale) -> Iterator[str]:
    widest = max(spans, key=lambda span: _width(span, scale))
    for span in spans:
        narrow = " narrow" if _width(span, scale) < 3 else ""
        label = html.escape(pod.name) if span is widest and not narrow else ""
        style = f"pod r-{_ROLES[pod.role]} {span.state.value}{narrow}"
        place = f"top:{top}px;{_extent(span, scale)}"
        title = _title(pod.name, span)
        yield f'<div class="{style}" style="{place}" title="{title}">{label}</div>'


def _title(name: str, span: Span) -> str:
    return html.escape(f"{name}: {span.state.value}, {span.start:.1f} s to {span.end:.1f} s")


def _width(span: Span, scale: Scale) -> float:
    return scale.x(span.end) - scale.x(span.start)


def _extent(span: Span, scale: Scale) -> str:
    return f"left:{scale.x(span.start):.2f}%;width:{_width(span, scale):.2f}%"


def _steps(points: Sequence[tuple[float, int, int]], top: int, scale: Scale) -> str:
    """A closed path around the band between two counts that change in steps."""
    ends = [*(at for at, _, _ in points[1:]), scale.end]
    upper: list[str] = []
    lower: list[str] = []
    for (at, low, high), until in zip(points, ends, strict=True):
        left, right = scale.x(at), scale.x(until)
        upper.append(f"{left:.2f} {_y(high, top)}L{right:.2f} {_y(high, top)}")
        lower.append(f"{right:.2f} {_y(low, top)}L{left:.2f} {_y(low, top)}")
    return f"M{'L'.join(upper)}L{'L'.join(reversed(lower))}Z"


def _y(count: int, top: int) -> str:
    return f"{100 - 100 * count / top:.2f}"


def _mark(x: float, text: str, style: str) -> str:
    return f'<div class="mark {style}" style="left:{x:.2f}%"><b>{html.escape(text)}</b></div>'


def _minor(index: int) -> str:
    return ' class="minor"' if index % 2 else ""


def _round(start: float, end: float, most: int) -> Iterable[int]:
    step = next((step for step in _STEPS if (end - start) / step <= most), _STEPS[-1])
    first = -int(-start // step) * step
    return range(first, int(end) + 1, step)
