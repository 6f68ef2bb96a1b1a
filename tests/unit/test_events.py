"""What comes out of the inbox: notices, events that are not ours, and rubbish."""

import contextlib
import datetime as dt
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.events import (
    InstanceAction,
    MalformedEventError,
    Notice,
    UnknownEvent,
    parse_event,
)

EVENTS = pathlib.Path(__file__).parents[2] / "events"
NOW = dt.datetime(2026, 3, 1, 12, 0, 30, tzinfo=dt.UTC)
NOTICED = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)


def envelope(**changes: object) -> dict[str, object]:
    event: dict[str, object] = {
        "version": "0",
        "id": "1e5527d7-bb36-4607-3370-4164db56a40e",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2026-03-01T12:00:00Z",
        "region": "eu-west-1",
        "resources": ["arn:aws:ec2:eu-west-1a:instance/i-0123456789abcdef0"],
        "detail": {"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"},
    }
    return {**event, **changes}


@pytest.mark.parametrize(
    ("action", "taken_at"),
    [
        ("terminate", NOTICED + dt.timedelta(seconds=120)),
        ("stop", NOTICED + dt.timedelta(seconds=120)),
        ("hibernate", NOTICED),
    ],
)
def test_a_notice_says_when_the_instance_is_taken_away(action: str, taken_at: dt.datetime) -> None:
    detail = {"instance-id": "i-0123456789abcdef0", "instance-action": action}
    notice = parse_event(json.dumps(envelope(detail=detail)), NOW)
    assert notice == Notice(
        instance_id="i-0123456789abcdef0",
        action=InstanceAction(action),
        noticed_at=NOTICED,
    )
    assert isinstance(notice, Notice)
    assert notice.taken_at == taken_at


def test_a_replayed_notice_counts() -> None:
    assert isinstance(parse_event(json.dumps(envelope(source="shiftwright.replay")), NOW), Notice)


@pytest.mark.parametrize(
    "changes",
    [
        {"detail-type": "EC2 Instance Rebalance Recommendation"},
        {"detail-type": "EC2 Instance State-change Notification", "detail": {"state": "pending"}},
        {"source": "aws.health", "detail-type": "AWS Health Event"},
        {"source": "somebody.else"},
    ],
)
def test_other_events_are_unknown(changes: dict[str, object]) -> None:
    assert isinstance(parse_event(json.dumps(envelope(**changes)), NOW), UnknownEvent)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("", "Input data was truncated"),
        ("{", "Input data was truncated"),
        ("[]", "Expected `object`"),
        ("null", "Expected `object`"),
        ("{}", "`source`"),
        ("[" * 100_000, ""),
        ('"\ud800"', ""),
        (json.dumps(envelope(detail=None)), "$.detail"),
        (json.dumps(envelope(detail={})), "instance-id"),
        (json.dumps(envelope(source=7)), "$.source"),
        (json.dumps(envelope(time="yesterday")), "$.time"),
        (json.dumps(envelope(time="2026-03-01T12:00:00")), "$.time"),
        (json.dumps(envelope(time="2026-03-01T13:00:00Z")), "future"),
        (json.dumps(envelope(time="0001-01-01T00:00:00+14:00")), "date value out of range"),
        (
            json.dumps(
                envelope(detail={"instance-id": "i-0123456789abcdef0\n", "instance-action": "stop"})
            ),
            "$.detail.instance-id",
        ),
        (
            json.dumps(envelope(detail={"instance-id": "x; rm", "instance-action": "stop"})),
            "$.detail.instance-id",
        ),
        (
            json.dumps(
                envelope(detail={"instance-id": "i-0123456789abcdef0", "instance-action": "eat"})
            ),
            "$.detail.instance-action",
        ),
    ],
)
def test_a_malformed_body_is_named(body: str, part: str) -> None:
    with pytest.raises(MalformedEventError) as error:
        parse_event(body, NOW)
    assert part in str(error.value)


@given(st.text())
def test_no_body_raises_anything_else(body: str) -> None:
    with contextlib.suppress(MalformedEventError):
        parse_event(body, NOW)


@pytest.mark.parametrize("path", sorted(EVENTS.glob("*.json")), ids=lambda path: path.name)
def test_the_sample_events_are_what_their_names_say(path: pathlib.Path) -> None:
    event = parse_event(path.read_text(), NOW.replace(year=2100))
    assert isinstance(event, Notice) == path.name.startswith("spot-interruption")
