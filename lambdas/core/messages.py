"""What people read in Slack, as Block Kit data within Slack's limits."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from lambdas.core.incident import Incident
from lambdas.core.plan import Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.core.policy import Mode
from lambdas.core.words import counted

# https://docs.slack.dev/reference/block-kit/blocks
HEADER_LIMIT = 150
SECTION_LIMIT = 3000
# Slack takes 50 blocks, and refuses a message whose blocks come to more than about 13,000
# characters (msg_blocks_too_long). All nodes together get this much.
NODES_SHOWN = 20
_NODES_LIMIT = 9000
NAMES_SHOWN = 6
# Room for a server's own words; Kubernetes' names are at most 253.
_NAME_LIMIT = 300
_MARKS_OF_SLACK = str.maketrans("`*", "''")

Block = dict[str, Any]


class Message(msgspec.Struct, frozen=True):
    """A post: `text` is the notification and the fallback, `blocks` what is shown."""

    text: str
    blocks: tuple[Block, ...]


def opening(incidents: Sequence[Incident], now: dt.datetime) -> Message:
    """The first message about incidents of one cluster; it opens their thread."""
    first = incidents[0]
    what = counted(len(incidents), "node")
    observing = first.mode is Mode.OBSERVE
    title = f"Spot interruption in {first.cluster}: {what}"
    summary = f"{title}{_summary(incidents)}"
    blocks = [_header(title), *_body(incidents)]
    took = (now - first.noticed_at).total_seconds()
    mode = "observe mode: nothing was changed" if observing else "act mode"
    blocks.append(_context(f"{mode} · {took:.0f} s after the notice"))
    return Message(text=summary, blocks=tuple(blocks))


def closing(incidents: Sequence[Incident], now: dt.datetime) -> Message:
    """The answer in the thread when nothing is left to do for these incidents."""
    what = counted(len(incidents), "node")
    summary = f"Finished with {what} in {incidents[0].cluster}{_summary(incidents)}"
    took = (now - incidents[0].noticed_at).total_seconds()
    footer = _context(f"{took:.0f} s after the notice")
    return Message(text=summary, blocks=(*_body(incidents), footer))


def _summary(incidents: Sequence[Incident]) -> str:
    moved = [
        f"{surge.workload} on-demand {_MOVES[outcome.status]} {surge.before} → {surge.after}"
        for outcome in _surges(incidents)
        if isinstance(surge := outcome.action, Surge) and outcome.status in _MOVES
    ]
    statuses = {status for incident in incidents for status in incident.has}
    if Status.FAILED in statuses or any(one.trouble and one.closed for one in incidents):
        moved.append("something failed")
    elif Status.BLOCKED in statuses:
        moved.append("a disruption budget holds pods back")
    return _escape("; ".join(["", *moved[:NAMES_SHOWN]]))


def _body(incidents: Sequence[Incident]) -> list[Block]:
    surges = "\n".join(_line(outcome) for outcome in _surges(incidents))
    blocks = [_section(surges)] if surges else []
    shown = incidents[:NODES_SHOWN]
    limit = min(SECTION_LIMIT, _NODES_LIMIT // len(shown))
    blocks += [_section("\n".join(_node_lines(one)), limit) for one in shown]
    hidden = len(incidents) - NODES_SHOWN
    if hidden > 0:
        blocks.append(_context(f"and {counted(hidden, 'more node')}; the ledger has them all"))
    return blocks


def _surges(incidents: Iterable[Incident]) -> list[Outcome]:
    """The surges of all incidents; one that several nodes share is told once."""
    found: dict[tuple[str, str], Outcome] = {}
    for incident in incidents:
        for outcome in incident.outcomes:
            if isinstance(outcome.action, Surge):
                found[outcome.action.namespace, outcome.action.deployment] = outcome
    return list(found.values())


def _node_lines(incident: Incident) -> Iterator[str]:
    kind = ", ".join(filter(None, (incident.instance_type, incident.zone, incident.instance_id)))
    taken = int(incident.taken_at.timestamp())
    clock = incident.taken_at.strftime("%H:%M:%S UTC")
    title = incident.node or "no node"
    yield f"*{_name(title)}* ({_name(kind)}), taken away at <!date^{taken}^{{time_secs}}|{clock}>"
    if incident.trouble:
        mark, verb = _MARKS[Status.FAILED if incident.closed else Status.RETRY]
        yield f"{mark} {verb}{_name(incident.trouble)}"
    evictions = [one for one in incident.outcomes if isinstance(one.action, Evict)]
    for outcome in incident.outcomes:
        if isinstance(outcome.action, Cordon | Leave):
            yield _line(outcome)
    for status in Status:
        alike = [one for one in evictions if one.status is status]
        if alike:
            yield _eviction_line(status, alike)


def _line(outcome: Outcome) -> str:
    mark, verb = _MARKS[outcome.status]
    match outcome.action:
        case Surge() as surge:
            target = f"{_name(surge.namespace)}/{_name(surge.deployment)}"
            what = f"surge *{_name(surge.workload)}*: `{target}` {surge.before} → {surge.after}"
        case Cordon():
            what = "cordon"
        case Leave() as leave:
            return f":white_small_square: {_name(leave.subject)} left alone: {_name(leave.reason)}"
        case Evict() as evict:
            what = f"evict {_name(evict.pod)}"
    detail = outcome.detail or outcome.action.reason
    return f"{mark} {verb}{what} ({_name(detail)})"


def _eviction_line(status: Status, outcomes: list[Outcome]) -> str:
    mark, verb = _MARKS[status]
    pods = [one.action.pod for one in outcomes if isinstance(one.action, Evict)]
    names = ", ".join(f"`{_name(pod)}`" for pod in pods[:NAMES_SHOWN])
    if len(pods) > NAMES_SHOWN:
        names += f" and {len(pods) - NAMES_SHOWN} more"
    detail = next((one.detail for one in outcomes if one.detail), "")
    line = f"{mark} {verb}evict {counted(len(pods), 'pod')}: {names}"
    return f"{line} ({_name(detail)})" if detail else line


_MOVES = {
    Status.DONE: "goes",
    Status.OBSERVED: "would go",
    Status.RETRY: "is to go",
    Status.OVERTAKEN: "is to go",
}
_MARKS = {
    Status.DONE: (":white_check_mark:", ""),
    Status.OBSERVED: (":eye:", "would "),
    Status.UNNEEDED: (":heavy_minus_sign:", "not needed: "),
    Status.BLOCKED: (":hourglass:", "held back: "),
    Status.OVERTAKEN: (":repeat:", "overtaken, trying again: "),
    Status.RETRY: (":repeat:", "trying again: "),
    Status.FAILED: (":x:", "failed: "),
}


def _header(text: str) -> Block:
    shown = _cut(text, HEADER_LIMIT)
    return {"type": "header", "text": {"type": "plain_text", "text": shown}}


def _section(text: str, limit: int = SECTION_LIMIT) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text, limit)}}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}


def _name(text: str) -> str:
    """Words from outside: bounded, on one line, without Slack's own marks."""
    return _escape(_cut(" ".join(text.split()), _NAME_LIMIT)).translate(_MARKS_OF_SLACK)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
