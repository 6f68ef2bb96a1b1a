"""One self-contained HTML page from the record of a run. No network; all text escaped."""

import html
import string
from collections.abc import Sequence
from pathlib import Path

from lambdas.core.words import counted
from local.page import mrkdwn, timeline
from local.recording import Act, Event, Post, Recording, Row, Source, Step, fewest_ready

_TEMPLATE = Path(__file__).with_name("template.html")
_WHO = {
    Source.AWS: "AWS",
    Source.SHIFTWRIGHT: "Shiftwright",
    Source.CLUSTER: "cluster",
    Source.SLACK: "Slack",
    Source.STAGE: "local run",
}


def render(recording: Recording) -> str:
    """The page as text."""
    scale = timeline.scale_of(recording)
    template = string.Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(
        title=f"Shiftwright: spot interruption in {html.escape(recording.cluster)}",
        pills=_pills(recording),
        headline=_headline(recording),
        where=_where(recording),
        figures=_figures(recording),
        timeline_lead=_timeline_lead(recording),
        legend=timeline.legend(),
        marks=timeline.marks(recording, scale),
        area=timeline.area(recording, scale),
        pools=timeline.pools(recording, scale),
        ticks=timeline.ticks(scale),
        events="".join(_event(event, scale.x(event.at)) for event in recording.events),
        acts="".join(_act(act) for act in recording.acts),
        slack_lead=_slack_lead(recording.posts),
        slack=_slack(recording),
        rows="".join(_row(row) for row in recording.rows),
        checks=_checks(recording),
        steps=_steps(recording.steps),
        footer=_footer(recording),
    )


def _failed(recording: Recording) -> int:
    return sum(not check.held for check in recording.checks)


def _pills(recording: Recording) -> str:
    failed = _failed(recording)
    result = (
        f'<span class="pill bad">{failed} of {len(recording.checks)} checks failed</span>'
        if failed
        else f'<span class="pill good">all {len(recording.checks)} checks held</span>'
    )
    return f'<span class="pill">{html.escape(recording.mode)} mode</span> {result}'


def _headline(recording: Recording) -> str:
    if _failed(recording):
        return "The run did not end as it should."
    name, fewest = (
        html.escape(recording.workload),
        fewest_ready(recording.tracks, recording.workload),
    )
    if recording.mode == "observe":
        return (
            "A spot node is taken away. People were told, nothing was changed: "
            f"{name} is down to {fewest} of {recording.replicas} replicas."
        )
    return (
        f"A spot node is taken away. {name} keeps {fewest} of {recording.replicas} replicas ready."
    )


def _where(recording: Recording) -> str:
    node, instance, cluster, region, noticed_at = map(
        html.escape,
        (
            recording.node,
            recording.instance,
            recording.cluster,
            recording.region,
            recording.noticed_at,
        ),
    )
    return (
        f"Node <code>{node}</code>, instance <code>{instance}</code>, in cluster {cluster}, "
        f"{region}. Notice at {noticed_at}."
    )


def _figures(recording: Recording) -> str:
    surged = "none" if recording.surged_at is None else _seconds(recording.surged_at)
    ready = fewest_ready(recording.tracks, recording.workload)
    fewest = f"{ready} <small>of {recording.replicas}</small>"
    figures = (
        (surged, "from the notice to the surge accepted by the API server"),
        (str(recording.evicted), "pods evicted within their disruption budgets"),
        (fewest, f"replicas of {html.escape(recording.workload)} ready at the lowest point"),
        (str(recording.calls), "calls by the function to the Kubernetes API"),
    )
    return "".join(f"<div><dd>{value}</dd><dt>{text}</dt></div>" for value, text in figures)


def _seconds(value: float) -> str:
    return f"{value:.1f} <small>s</small>"


def _timeline_lead(recording: Recording) -> str:
    lead = "Every lane is a node, every bar in it a pod."
    if recording.sped_up_at is not None:
        lead += (
            f" The first {recording.sped_up_at:.0f} seconds ran in real time. After that only the "
            "reclaim was left to wait for, and the clock of the cluster ran "
            f"{recording.speed:g} times faster."
        )
    return lead


def _event(event: Event, x: float) -> str:
    reason = f"<small>{html.escape(event.reason)}</small>" if event.reason else ""
    return (
        f'<li class="s-{event.source.value}" tabindex="0" data-x="{x:.2f}">'
        f'<time>{event.at:+.1f} s</time><span class="who">{_WHO[event.source]}</span>'
        f'<div class="what"><p>{html.escape(event.text)}</p>{reason}</div></li>'
    )


def _act(act: Act) -> str:
    detail = f"<br><small>{html.escape(act.detail)}</small>" if act.detail else ""
    return (
        f'<tr><th scope="row">{html.escape(act.what)} <code>{html.escape(act.subject)}</code></th>'
        f"<td>{html.escape(act.reason)}</td>"
        f'<td><span class="outcome">{html.escape(act.outcome)}</span>{detail}</td></tr>'
    )


def _slack_lead(posts: Sequence[Post]) -> str:
    threads = sum(not post.reply for post in posts)
    return f"{counted(len(posts), 'message')} in {counted(threads, 'thread')}, as Slack shows them."


def _slack(recording: Recording) -> str:
    parts: list[str] = []
    replies = sum(post.reply for post in recording.posts)
    for post in recording.posts:
        if post.reply and replies:
            parts.append(f'<p class="replies">{replies} in the thread</p>')
            replies = 0
        parts.append(_post(post))
    channel = f'<p class="channel"># {html.escape(recording.channel)}</p>'
    return f'<div class="slack">{channel}{"".join(parts)}</div>'


def _post(post: Post) -> str:
    body = mrkdwn.blocks_to_html(post.blocks) or f"<p>{mrkdwn.text_to_html(post.text)}</p>"
    by = f'<p class="by"><b>Shiftwright</b><span>APP</span><time>{post.at:+.1f} s</time></p>'
    face = '<div class="face" aria-hidden="true">S</div>'
    style = "post reply" if post.reply else "post"
    return f'<article class="{style}">{face}<div>{by}{body}</div></article>'


def _row(row: Row) -> str:
    changed = ' class="changed"' if row.before != row.after else ""
    return (
        f'<tr><th scope="row">{html.escape(row.figure)}</th><td>{html.escape(row.before)}</td>'
        f"<td{changed}>{html.escape(row.after)}</td></tr>"
    )


def _checks(recording: Recording) -> str:
    parts = []
    for check in recording.checks:
        style, mark, word = ("ok", "✓", "held") if check.held else ("no", "✗", "failed")
        name = html.escape(check.name)
        detail = f"<small>{html.escape(check.detail)}</small>" if check.detail else ""
        parts.append(
            f'<li class="{style}" data-mark="{mark}"><span class="unseen">{word}: </span>'
            f"<span>{name}</span>{detail}</li>"
        )
    return "".join(parts)


def _steps(steps: Sequence[Step]) -> str:
    longest = max((step.seconds for step in steps), default=1.0) or 1.0
    return "".join(
        f"<li><span>{html.escape(step.name)}</span><time>{step.seconds:.1f} s</time>"
        f'<span class="bar"><i style="width:{100 * step.seconds / longest:.1f}%"></i></span></li>'
        for step in steps
    )


def _footer(recording: Recording) -> str:
    return (
        "The real CDK deployed the function, its queue, rule, ledger and secret into an AWS "
        "stand-in on this machine. The Kubernetes API, its cluster and Slack are stand-ins too; "
        f"everything shown went through them in {html.escape(recording.mode)} mode."
    )
