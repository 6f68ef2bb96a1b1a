"""The small parts of a run: its clock, its console, its story and its checks."""

import datetime as dt
import io
from typing import Any

import msgspec
import pytest

from lambdas.core.incident import Incident, Told
from lambdas.core.plan import Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.core.policy import Mode
from local.checks import Evidence, Footprint, judge
from local.clock import SceneClock
from local.console import Console
from local.kubernetes import Happening, Request
from local.recording import Role, Source, Span, State, Step, Track
from local.scene import Scene
from local.slack.stand_in import Message, Refusal
from local.story import Bookkeeper, Story, acts

ZERO = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
NODE, INSTANCE = "node-a", "i-0123456789abcdef0"
SURGE = Surge(
    workload="chat",
    namespace="inference",
    deployment="chat-on-demand",
    spot_deployment="chat-spot",
    before=1,
    after=2,
    resource_version="7",
    nodes=(NODE,),
    reason="0 of 1 spot replicas are ready on nodes that stay",
)
EVICT = Evict(
    node=NODE,
    namespace="inference",
    pod="chat-spot-x",
    uid="u",
    deployment="chat-spot",
    reason="its node is taken away",
)
CORDON = Cordon(node=NODE, interrupted_at="2026-03-01T12:02:00Z", reason="taken away in 118 s")
LEAVE = Leave(subject="embed", nodes=(NODE,), reason="nothing to do")


def after(seconds: float) -> dt.datetime:
    return ZERO + dt.timedelta(seconds=seconds)


def request(seconds: float, method: str, path: str, status: int = 200) -> Request:
    return Request(after(seconds), "shiftwright", method, path, status)


REQUESTS = (
    request(1.0, "GET", "/api/v1/nodes?limit=500"),
    request(
        1.1, "PATCH", "/apis/apps/v1/namespaces/inference/deployments/chat-on-demand/scale?x=y"
    ),
    request(1.2, "PATCH", f"/api/v1/nodes/{NODE}?fieldManager=shiftwright"),
    request(1.3, "POST", "/api/v1/namespaces/inference/pods/chat-spot-x/eviction", 429),
    request(6.3, "POST", "/api/v1/namespaces/inference/pods/chat-spot-x/eviction", 201),
)


def incident(*outcomes: Outcome) -> Incident:
    return Incident(
        instance_id=INSTANCE,
        cluster="gpu-demo",
        instance_type="g5.12xlarge",
        zone="eu-west-1a",
        mode=Mode.ACT,
        noticed_at=ZERO,
        taken_at=after(120),
        node=NODE,
        outcomes=outcomes,
        closed=True,
        told=Told.EVERYTHING,
        version=3,
    )


def test_the_scene_clock() -> None:
    real = [ZERO]
    clock = SceneClock(lambda: real[0])

    real[0] = after(1)
    assert clock() == after(1)
    clock.hold(after(-600))
    real[0] = after(2)
    assert clock() == after(-600)
    clock.release()
    assert clock() == after(2)
    clock.run_at(20)
    real[0] = after(3)
    assert clock() == after(22)
    clock.run_at(1)
    real[0] = after(4)
    assert clock() == after(23)


def test_the_console_counts_steps() -> None:
    stream, now = io.StringIO(), [0.0]
    console = Console(stream, lambda: now[0])
    now[0] = 1.0
    with console.step("cdk deploy") as progress:
        now[0] = 4.5
        progress("1 of 2")
    console.table(("figure", "before"), (("replicas", "1"),))

    assert console.steps == (Step("cdk deploy", 3.5),)
    assert stream.getvalue() == (
        "   1.0 s  cdk deploy\n   4.5 s    1 of 2\n  figure    before\n  replicas  1\n"
    )


def test_a_terminal_that_knows_no_arrows() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(stream).line("1 → 2")
    stream.seek(0)
    assert stream.read() == "1 \\u2192 2\n"


def test_the_ledger_is_told_once_a_state_with_the_times_of_the_api() -> None:
    story = Story(Console(io.StringIO()), ZERO)
    bookkeeper = Bookkeeper(story)
    blocked = Outcome(action=EVICT, status=Status.BLOCKED, detail="budget chat")
    done = Outcome(action=EVICT, status=Status.DONE)
    surge = Outcome(action=SURGE, status=Status.DONE)

    bookkeeper.read(incident(surge, blocked), REQUESTS[:4], after(2))
    bookkeeper.read(incident(surge, blocked), REQUESTS[:4], after(2))
    bookkeeper.read(incident(surge, done), REQUESTS, after(7))
    story.flush(after(7))

    assert [(event.at, event.source, event.text, event.reason) for event in story.events] == [
        (1.1, Source.SHIFTWRIGHT, "surge inference/chat-on-demand 1 → 2", SURGE.reason),
        (
            1.3,
            Source.SHIFTWRIGHT,
            "evict inference/chat-spot-x: held back by a disruption budget",
            "budget chat",
        ),
        (6.3, Source.SHIFTWRIGHT, "evict inference/chat-spot-x", EVICT.reason),
    ]


def test_events_are_printed_in_the_order_in_which_they_happened() -> None:
    stream = io.StringIO()
    story = Story(Console(stream), ZERO)
    story.tell(after(1.2), Source.CLUSTER, "second")
    story.tell(after(1.1), Source.SHIFTWRIGHT, "first", "because")
    story.tell(after(9), Source.STAGE, "third")
    story.flush(after(2))

    assert [event.text for event in story.events] == ["first", "second"]
    assert stream.getvalue() == (
        "   +1.1 s  shiftwright  first\n"
        "                        because\n"
        "   +1.2 s  cluster      second\n"
    )


def test_acts() -> None:
    outcomes = [Outcome(action=one, status=Status.DONE) for one in (SURGE, CORDON, EVICT, LEAVE)]
    assert [(act.what, act.subject, act.outcome) for act in acts(incident(*outcomes))] == [
        ("surge", "inference/chat-on-demand 1 → 2", "done"),
        ("cordon", NODE, "done"),
        ("evict", "inference/chat-spot-x", "done"),
        ("leave", "embed", "done"),
    ]


def track(kind: str, name: str, role: Role, *spans: Span) -> Track:
    workload = "chat" if kind == "pod" else ""
    return Track(kind=kind, name=name, role=role, workload=workload, instance="", spans=spans)


FOOTPRINT = Footprint(writes=4, posts=1, ledger_version=3)
POST = Message(at=after(2), ts="1.1", channel="C", text="told")
GOOD = Evidence(
    scene=Scene(node=NODE, instance=INSTANCE),
    mode=Mode.ACT,
    incident=incident(Outcome(action=SURGE, status=Status.DONE)),
    requests=REQUESTS,
    happenings=(Happening(after(120), "reclaimed", NODE, INSTANCE),),
    tracks=(
        track("node", NODE, Role.SPOT, Span(State.CORDONED, "gpu-spot", -1, 120)),
        track("pod", "chat-spot-x", Role.SPOT, Span(State.READY, NODE, -1, 6)),
        *(
            track(
                "pod", f"chat-on-demand-{number}", Role.ON_DEMAND, Span(State.READY, "b", -1, 130)
            )
            for number in range(3)
        ),
    ),
    messages=(POST, msgspec.structs.replace(POST, ts="2.1", thread_ts="1.1")),
    refusals=(Refusal(at=ZERO, method="chat.postMessage", error="ratelimited"),),
    first=FOOTPRINT,
    second=FOOTPRINT,
    waiting=0,
    dead=0,
    on_demand_before=1,
    on_demand_after=2,
)
OBSERVED = {"mode": Mode.OBSERVE, "requests": REQUESTS[:1], "on_demand_after": 1}


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({}, ()),
        (OBSERVED, ()),
        ({"on_demand_after": 1}, ("makes up for",)),
        ({"happenings": ()}, ("cordoned, and then",)),
        (
            {"happenings": (*GOOD.happenings, Happening(after(120), "lost", "a/b", "died"))},
            ("No pod died",),
        ),
        ({"tracks": GOOD.tracks[:4]}, ("never had fewer",)),
        (
            {"requests": (*REQUESTS, request(9, "PATCH", "/api/v1/nodes/node-b"))},
            ("Nothing else",),
        ),
        ({"messages": (POST, POST)}, ("one Slack thread",)),
        ({"messages": ()}, ("one Slack thread",)),
        (
            {"refusals": (Refusal(at=ZERO, method="chat.postMessage", error="no_text"),)},
            ("one Slack thread",),
        ),
        (
            {"incident": msgspec.structs.replace(GOOD.incident, closed=False)},
            ("The ledger",),
        ),
        ({"second": msgspec.structs.replace(FOOTPRINT, posts=2)}, ("A second delivery",)),
        ({"waiting": 1}, ("The queue",)),
        ({"dead": 1}, ("The queue",)),
        ({**OBSERVED, "requests": REQUESTS}, ("Nothing in the cluster",)),
        ({**OBSERVED, "on_demand_after": 2}, ("has the replicas",)),
    ],
)
def test_checks(changes: dict[str, Any], failed: tuple[str, ...]) -> None:
    checks = judge(msgspec.structs.replace(GOOD, **changes))
    names = [check.name for check in checks if not check.held]
    assert len(names) == len(failed)
    assert all(part in name for part, name in zip(failed, names, strict=True))
