"""The page of a run: nothing hostile gets through, nothing comes from a network."""

import html.parser
from typing import Any

import msgspec
import pytest

from local.page import mrkdwn
from local.page.render import render
from local.page.timeline import Scale
from local.recording import (
    Act,
    Check,
    Event,
    Post,
    Recorder,
    Recording,
    Role,
    Row,
    Sighting,
    Source,
    Span,
    State,
    Step,
    Track,
    fewest_ready,
    ready_over_time,
)

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>$where &amp;"
VOID = {"meta", "br", "hr"}


def recording(text: str = "x") -> Recording:
    node = Track(
        kind="node",
        name=text,
        role=Role.SPOT,
        workload="",
        instance=text,
        spans=(Span(State.READY, text, -2.0, 3.0), Span(State.CORDONED, text, 3.0, 120.0)),
    )
    pod = Track(
        kind="pod",
        name=text,
        role=Role.SPOT,
        workload=text,
        instance="",
        spans=(Span(State.PENDING, "", -2.0, -1.0), Span(State.READY, text, -1.0, 122.0)),
    )
    block: dict[str, object] = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    header: dict[str, object] = {"type": "header", "text": {"type": "plain_text", "text": text}}
    return Recording(
        cluster=text,
        region=text,
        mode=text,
        node=text,
        instance=text,
        noticed_at=text,
        channel=text,
        workload=text,
        replicas=4,
        floor=3,
        surged_at=1.5,
        sped_up_at=20.0,
        speed=20.0,
        steps=(Step(text, 1.0),),
        tracks=(node, pod),
        events=(Event(at=0.0, source=Source.AWS, text=text, reason=text),),
        acts=(Act(what=text, subject=text, reason=text, outcome=text, detail=text),),
        posts=(
            Post(at=1.0, text=text, blocks=(header, block)),
            Post(at=2.0, text=text, reply=True),
        ),
        rows=(Row(text, text, "y"),),
        checks=(Check(text, False, text), Check(text, True)),
    )


class Outline(html.parser.HTMLParser):
    """The tags of a page, checked for balance on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    parsed = Outline()
    parsed.feed(text)
    parsed.close()
    assert parsed.open == []
    return parsed


def test_hostile_text_stays_text() -> None:
    calm, hostile = outline(render(recording())), outline(render(recording(HOSTILE)))
    assert hostile.tags == calm.tags
    assert hostile.tags.count("script") == 1
    assert {name for name, _ in hostile.attributes} == {name for name, _ in calm.attributes}


def test_nothing_comes_from_a_network() -> None:
    parsed = outline(render(recording()))
    assert not {"img", "link", "iframe", "a"} & set(parsed.tags)
    assert not {"src", "href"} & {name for name, _ in parsed.attributes}
    policies = [value for _, value in parsed.attributes if value and "default-src" in value]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"]


def test_an_empty_recording_renders() -> None:
    empty = msgspec.structs.replace(
        recording(), tracks=(), events=(), acts=(), posts=(), rows=(), checks=(), steps=()
    )
    outline(render(empty))


def test_a_recording_is_plain_data() -> None:
    data = msgspec.json.encode(recording(HOSTILE))
    assert msgspec.json.decode(data, type=Recording) == recording(HOSTILE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a *b* _c_ ~d~", "a <b>b</b> <i>c</i> <s>d</s>"),
        ("snake_case_name 2*3*4", "snake_case_name 2*3*4"),
        ("`*b* <x>`", "<code>*b* &lt;x&gt;</code>"),
        ("&lt;b&gt; &amp;lt;", "&lt;b&gt; &amp;lt;"),
        ("one\ntwo", "one<br>two"),
        (":x: :unknown:", "❌ :unknown:"),
        ("<!date^1772366520^{time_secs}|12:02:00 UTC>", "12:02:00 UTC"),
        (
            "<https://example.com/?a=1&amp;b=2|*here*>",
            '<a href="https://example.com/?a=1&amp;b=2" rel="noreferrer">*here*</a>',
        ),
        ("<javascript:alert(1)|here>", "here"),
        ('<https://example.com/"onclick="x|here>', None),
    ],
)
def test_mrkdwn(text: str, expected: str | None) -> None:
    rendered = mrkdwn.text_to_html(text)
    if expected is None:
        assert [name for name, _ in outline(rendered).attributes] == ["href", "rel"]
    else:
        assert rendered == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "divider"}, "<hr>"),
        ({"type": "poem"}, ""),
        ({"type": "header", "text": {"type": "plain_text", "text": "*a*"}}, "<h4>*a*</h4>"),
        (
            {"type": "context", "elements": [{"type": "mrkdwn", "text": "*a*"}]},
            '<div class="context"><span><b>a</b></span></div>',
        ),
        (
            {
                "type": "section",
                "fields": [{"type": "mrkdwn", "text": "a"}],
                "accessory": {"type": "button", "text": {"type": "plain_text", "text": "b"}},
            },
            '<div class="section"><div class="fields"><p>a</p></div>'
            '<span class="button">b</span></div>',
        ),
        (
            {
                "type": "actions",
                "elements": [
                    {"style": "danger", "text": {"type": "plain_text", "text": "b"}},
                    "junk",
                ],
            },
            '<div class="actions"><span class="button danger">b</span></div>',
        ),
    ],
)
def test_blocks(block: dict[str, object], expected: str) -> None:
    assert mrkdwn.blocks_to_html([block]) == expected


@pytest.mark.parametrize(
    ("scale", "places"),
    [
        (Scale(start=0, end=100), {-5: 0, 0: 0, 50: 50, 100: 100, 200: 100}),
        (Scale(start=-2, end=120, knee=18), {-2: 0, 8: 34, 18: 68, 69: 84, 120: 100}),
    ],
)
def test_scale(scale: Scale, places: dict[float, float]) -> None:
    assert {at: scale.x(at) for at in places} == places


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(start=-2.5, end=20), (0, 5, 10, 15, 20)),
        (Scale(start=-2, end=122, knee=17.2), (0, 5, 10, 15, 30, 60, 90, 120)),
        (Scale(start=0, end=1), (0, 1)),
    ],
)
def test_ticks(scale: Scale, ticks: tuple[int, ...]) -> None:
    assert scale.ticks() == ticks


def sighting(state: State, place: str, **more: Any) -> Sighting:
    fields = {"kind": "pod", "name": "p", "role": Role.SPOT, "workload": "chat", **more}
    return Sighting(state=state, place=place, **fields)


def test_recorder_joins_what_does_not_change() -> None:
    recorder = Recorder()
    recorder.observe(0.0, [sighting(State.PENDING, "")])
    recorder.observe(1.0, [sighting(State.PENDING, "")])
    recorder.observe(2.0, [sighting(State.READY, "n"), sighting(State.READY, "n", name="q")])
    recorder.observe(3.0, [sighting(State.READY, "n", name="q")])

    spans = {track.name: track.spans for track in recorder.tracks()}
    assert spans == {
        "p": (Span(State.PENDING, "", 0.0, 2.0), Span(State.READY, "n", 2.0, 2.0)),
        "q": (Span(State.READY, "n", 2.0, 3.0),),
    }


def test_ready_over_time() -> None:
    def pod(name: str, role: Role, workload: str, *spans: Span) -> Track:
        return Track(kind="pod", name=name, role=role, workload=workload, instance="", spans=spans)

    tracks = (
        pod("a", Role.SPOT, "chat", Span(State.READY, "n", 0, 5), Span(State.DONE, "n", 5, 9)),
        pod(
            "b",
            Role.ON_DEMAND,
            "chat",
            Span(State.STARTING, "n", 0, 5),
            Span(State.READY, "n", 5, 9),
        ),
        pod("c", Role.SPOT, "chat", Span(State.READY, "n", 0, 9)),
        pod("d", Role.SPOT, "embed", Span(State.READY, "n", 0, 9)),
    )
    assert ready_over_time(tracks, "chat") == ((0, 2, 0), (5, 1, 1))


@pytest.mark.parametrize(
    ("spans", "fewest"),
    [
        ((), 0),
        ((Span(State.READY, "n", -2, 9),), 1),
        ((Span(State.STARTING, "n", -2, -1), Span(State.READY, "n", -1, 9)), 1),
        ((Span(State.READY, "n", -2, 4), Span(State.TERMINATING, "n", 4, 9)), 0),
    ],
)
def test_fewest_ready(spans: tuple[Span, ...], fewest: int) -> None:
    pod = Track(kind="pod", name="a", role=Role.SPOT, workload="chat", instance="", spans=spans)
    assert fewest_ready((pod,), "chat") == fewest
