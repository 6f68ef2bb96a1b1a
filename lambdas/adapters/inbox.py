"""The inbox: the queue that events come from, and its dead letters."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec

from lambdas.failures import aws_errors


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """One message as SQS hands it to the function; `receives` counts from 1."""

    message_id: str
    receipt: str
    body: str
    receives: int = 1


class Inbox:
    """Sends messages on, and asks for them again sooner than their visibility time-out."""

    def __init__(self, client: Any, url: str, dead_letter_url: str) -> None:
        """`client` is a boto3 SQS client."""
        self._client = client
        self._url = url
        self._dead_letter_url = dead_letter_url

    def send_later(self, body: str, delay: dt.timedelta) -> None:
        """Put a message back, to arrive after `delay` (at most 15 minutes)."""
        seconds = int(delay.total_seconds())
        self._call(
            self._client.send_message,
            QueueUrl=self._url,
            MessageBody=body,
            DelaySeconds=seconds,
        )

    def bury(self, body: str, reason: str) -> None:
        """Move a body that nobody can act on to the dead letters, with the reason."""
        attribute = {"DataType": "String", "StringValue": reason[:256]}
        self._call(
            self._client.send_message,
            QueueUrl=self._dead_letter_url,
            MessageBody=body,
            MessageAttributes={"reason": attribute},
        )

    def again_in(self, letter: Letter, delay: dt.timedelta) -> None:
        """Let a message that is about to be reported as failed come back after `delay`."""
        self._call(
            self._client.change_message_visibility,
            QueueUrl=self._url,
            ReceiptHandle=letter.receipt,
            VisibilityTimeout=int(delay.total_seconds()),
        )

    def _call(self, operation: Callable[..., Any], **arguments: Any) -> None:
        with aws_errors(f"queue {arguments['QueueUrl']}"):
            operation(**arguments)


def letters(event: dict[str, Any]) -> tuple[Letter, ...]:
    """The messages in the event that Lambda's SQS poller gives a function."""
    return tuple(
        Letter(
            message_id=record["messageId"],
            receipt=record["receiptHandle"],
            body=record["body"],
            receives=int(record["attributes"].get("ApproximateReceiveCount", "1")),
        )
        for record in event["Records"]
    )
