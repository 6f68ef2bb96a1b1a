"""What people read: the words, and Slack's limits whatever the names hold."""

import datetime as dt
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core import messages
from lambdas.core.incident import Incident
from lambdas.core.plan import Action, Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.core.policy import Mode
from local.slack.blocks import problems

NOTICED = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)
NOW = NOTICED + dt.timedelta(seconds=4)


def incident(*outcomes: Outcome, mode: Mode = Mode.ACT, node: str = "node-a") -> Incident:
    return Incident(
        instance_id="i-0123456789abcdef0",
        cluster="gpu-prod",
        instance_type="g5.2xlarge",
        zone="eu-west-1a",
        mode=mode,
        noticed_at=NOTICED,
        taken_at=NOTICED + dt.timedelta(seconds=120),
        node=node,
        outcomes=outcomes,
    )


def surge(workload: str = "chat") -> Surge:
    return Surge(
        workload=workload,
        namespace="inference",
        deployment=f"{workload}-on-demand",
        spot_deployment=f"{workload}-spot",
        before=1,
        after=3,
        resource_version="7",
        nodes=("node-a",),
        reason="1 of 3 spot replicas are ready on nodes that stay",
    )


def evict(name: str) -> Evict:
    return Evict(
        node="node-a", namespace="inference", pod=name, uid=name, deployment=None, reason="r"
    )


CORDON = Cordon(node="node-a", interrupted_at="", reason="i-0 is taken away in 116 s")
LEAVE = Leave(subject="node-a", nodes=("node-a",), reason="Karpenter drains it")


def outcome(action: Action, status: Status = Status.DONE, detail: str = "") -> Outcome:
    return Outcome(action=action, status=status, detail=detail)


def shown(message: messages.Message) -> str:
    return "\n".join(
        element["text"] if isinstance(element["text"], str) else element["text"]["text"]
        for block in message.blocks
        for element in (block.get("elements") or [block])
    )


def test_the_opening_says_what_was_decided_what_became_of_it_and_why() -> None:
    message = messages.opening(
        [
            incident(
                outcome(surge()),
                outcome(CORDON),
                outcome(evict("chat-1")),
                outcome(evict("chat-2"), Status.BLOCKED, "the budget allows 0"),
            )
        ],
        NOW,
    )
    assert message.text == (
        "Spot interruption in gpu-prod: 1 node; chat on-demand goes 1 → 3; "
        "a disruption budget holds pods back"
    )
    assert shown(message).splitlines() == [
        "Spot interruption in gpu-prod: 1 node",
        ":white_check_mark: surge *chat*: `inference/chat-on-demand` 1 → 3 "
        "(1 of 3 spot replicas are ready on nodes that stay)",
        "*node-a* (g5.2xlarge, eu-west-1a, i-0123456789abcdef0), "
        "taken away at <!date^1772366520^{time_secs}|12:02:00 UTC>",
        ":white_check_mark: cordon (i-0 is taken away in 116 s)",
        ":white_check_mark: evict 1 pod: `chat-1`",
        ":hourglass: held back: evict 1 pod: `chat-2` (the budget allows 0)",
        "act mode · 4 s after the notice",
    ]


def test_observe_mode_says_that_nothing_was_changed() -> None:
    message = messages.opening(
        [incident(outcome(surge(), Status.OBSERVED), mode=Mode.OBSERVE)], NOW
    )
    assert ":eye: would *chat*" not in shown(message)
    assert ":eye: would surge *chat*" in shown(message)
    assert "observe mode: nothing was changed" in shown(message)


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (outcome(LEAVE), ":white_small_square: node-a left alone: Karpenter drains it"),
        (outcome(surge(), Status.RETRY, "409"), ":repeat: trying again: surge *chat*"),
        (outcome(surge(), Status.FAILED, "403"), ":x: failed: surge *chat*"),
        (outcome(CORDON, Status.UNNEEDED, "gone"), ":heavy_minus_sign: not needed: cordon (gone)"),
    ],
)
def test_each_outcome_has_its_words(one: Outcome, line: str) -> None:
    assert line in shown(messages.opening([incident(one)], NOW))


def test_a_surge_that_nodes_share_is_told_once() -> None:
    both = [incident(outcome(surge())), incident(outcome(surge()), node="node-b")]
    assert shown(messages.opening(both, NOW)).count("chat-on-demand") == 1


def test_a_hundred_nodes_fit_into_one_message() -> None:
    pods = [outcome(evict(f"pod-{number}")) for number in range(110)]
    surges = [outcome(surge(f"workload-{number}")) for number in range(200)]
    many = [incident(*surges, *pods, node=f"node-{number}") for number in range(100)]
    message = messages.opening(many, NOW)
    assert "80 more nodes" in shown(message)
    assert "and 104 more" in shown(message)
    assert problems_of(message) == []
    assert len(shown(message)) < 13_000


def test_the_closing_answers_in_a_few_words() -> None:
    message = messages.closing([incident(outcome(evict("chat-1")))], NOW)
    assert message.text == "Finished with 1 node in gpu-prod"
    assert "4 s after the notice" in shown(message)


@given(st.text(max_size=5000), st.text(max_size=400))
def test_no_name_breaks_the_message_or_speaks_for_us(detail: str, node: str) -> None:
    hostile = incident(
        outcome(surge(), Status.FAILED, detail),
        outcome(evict(node), Status.FAILED, detail),
        node=node,
    )
    message = messages.opening([hostile], NOW)
    assert problems_of(message) == []
    assert "<!channel>" not in shown(messages.opening([incident(node="<!channel>")], NOW))


def problems_of(message: messages.Message) -> list[str]:
    blocks = json.loads(msgspec.json.encode(message.blocks))
    return list(problems(blocks))
