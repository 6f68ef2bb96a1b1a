"""EventBridge envelopes from outside, turned into notices."""

import datetime as dt
import enum
from typing import Annotated

import msgspec

# AWS takes a spot instance away two minutes after the notice; hibernation begins at once.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
NOTICE = dt.timedelta(seconds=120)
# An event from further ahead than this is not late or early: its clock cannot be trusted.
CLOCK_SKEW = dt.timedelta(minutes=5)
# PutEvents refuses sources that begin with "aws."; a rehearsal on a real account uses this one.
REPLAY_SOURCE = "shiftwright.replay"
SOURCES = ("aws.ec2", REPLAY_SOURCE)
INTERRUPTION_WARNING = "EC2 Spot Instance Interruption Warning"


class MalformedEventError(ValueError):
    """The body is not an event that anybody could act on; the message says why."""


class InstanceAction(enum.Enum):
    """What AWS does to the instance when the notice has run out."""

    TERMINATE = "terminate"
    STOP = "stop"
    HIBERNATE = "hibernate"


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A spot interruption notice."""

    instance_id: str
    action: InstanceAction
    noticed_at: dt.datetime

    @property
    def taken_at(self) -> dt.datetime:
        """When the instance is taken away."""
        if self.action is InstanceAction.HIBERNATE:
            return self.noticed_at
        return self.noticed_at + NOTICE


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A well-formed event that is none of our business."""

    source: str
    detail_type: str


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    source: Annotated[str, msgspec.Meta(max_length=256)]
    detail_type: Annotated[str, msgspec.Meta(max_length=128)] = msgspec.field(name="detail-type")


class _WarningDetail(msgspec.Struct, frozen=True, kw_only=True):
    instance_id: Annotated[str, msgspec.Meta(pattern=r"^i-[0-9a-f]{8,17}\Z")] = msgspec.field(
        name="instance-id"
    )
    instance_action: InstanceAction = msgspec.field(name="instance-action")


class _Warning(msgspec.Struct, frozen=True, kw_only=True):
    time: Annotated[dt.datetime, msgspec.Meta(tz=True)]
    detail: _WarningDetail


def parse_event(body: str, now: dt.datetime) -> Notice | UnknownEvent:
    """Read one message body of the inbox.

    Raises:
        MalformedEventError: the body is no EventBridge event, or a notice that lacks
            what is needed to act on it.
    """
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
        if envelope.source not in SOURCES or envelope.detail_type != INTERRUPTION_WARNING:
            return UnknownEvent(source=envelope.source, detail_type=envelope.detail_type)
        warning = msgspec.json.decode(body, type=_Warning)
        noticed_at = warning.time.astimezone(dt.UTC)
    except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError) as error:
        raise MalformedEventError(str(error)) from error
    if noticed_at > now + CLOCK_SKEW:
        raise MalformedEventError(f"time {noticed_at.isoformat()} lies in the future - `$.time`")
    return Notice(
        instance_id=warning.detail.instance_id,
        action=warning.detail.instance_action,
        noticed_at=noticed_at,
    )
