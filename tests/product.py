"""The interruption pass as a test puts it together: moto for AWS, the stand-in for Slack."""

import contextlib
import datetime as dt
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from lambdas.adapters.ec2 import Ec2
from lambdas.adapters.inbox import Inbox, Letter
from lambdas.adapters.kube import Kube
from lambdas.adapters.ledger import Ledger
from lambdas.adapters.slack import Slack
from lambdas.core.incident import Incident
from lambdas.core.policy import Cluster, Interruptions, Mode
from lambdas.passes.intake import Intake
from lambdas.passes.interruption import InterruptionPass
from lambdas.passes.tell import Teller
from local.slack.stand_in import SlackStandIn

SLACK_TOKEN = "xoxb-test"


class Product:
    """Everything that the pass needs, and switches to break it.

    `connect` gives the API of a cluster by name.
    """

    def __init__(
        self,
        aws: boto3.Session,
        slack: SlackStandIn,
        clusters: Mapping[str, Cluster],
        connect: Callable[[str], Kube],
        clock: Callable[[], dt.datetime],
    ) -> None:
        self.slack = slack
        self.slack_token = SLACK_TOKEN
        self.voice = Slack("#gpu-ops", slack.url, lambda: self.slack_token)
        self.clusters = clusters
        self.connect = connect
        self.clock = clock
        self.ec2 = Ec2(aws.client("ec2"))
        self.sqs = aws.client("sqs")
        queue = self.sqs.create_queue(QueueName="inbox", Attributes={"VisibilityTimeout": "90"})
        self.url = queue["QueueUrl"]
        self.dead = self.sqs.create_queue(QueueName="dead")["QueueUrl"]
        self.dynamodb = aws.client("dynamodb")
        self.dynamodb.create_table(
            TableName="ledger",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.ledger = Ledger(self.dynamodb, "ledger")
        self.counts: Counter[str] = Counter()

    def the_pass(self, mode: Mode = Mode.ACT) -> InterruptionPass:
        """The pass as a function just started would have it."""
        logger = Logger(service="test", level=logging.INFO)
        inbox = Inbox(self.sqs, self.url, self.dead)
        intake = Intake(
            clusters=self.clusters,
            mode=mode,
            ec2=self.ec2,
            ledger=self.ledger,
            inbox=inbox,
            clock=self.clock,
            logger=logger,
            count=self._count,
        )
        teller = Teller(
            ledger=self.ledger,
            slack=self.voice,
            clock=self.clock,
            logger=logger,
            count=self._count,
        )
        return InterruptionPass(
            clusters=self.clusters,
            settings=Interruptions(mode=mode),
            connect=self.connect,
            intake=intake,
            teller=teller,
            inbox=inbox,
            clock=self.clock,
            logger=logger,
            count=self._count,
        )

    def run(self, *letters: Letter, mode: Mode = Mode.ACT) -> tuple[str, ...]:
        """Handle a batch; returns the ids of the messages to be delivered again."""
        return self.the_pass(mode).run(letters, self.clock() + dt.timedelta(seconds=40))

    def incident(self, instance: str) -> Incident:
        """The ledger's record of an instance."""
        found = self.ledger.records({instance})[instance].incident
        assert found is not None
        return found

    def texts(self) -> list[str]:
        """What Slack was told, in short."""
        return [message.text for message in self.slack.messages]

    def waiting(self) -> int:
        """Messages on the inbox, delayed ones included."""
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])
        counts: dict[str, str] = dict(answer["Attributes"])
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
        return sum(int(counts[name]) for name in names)

    def _count(self, name: str) -> None:
        self.counts[name] += 1


@contextlib.contextmanager
def running_slack(began: dt.datetime) -> Iterator[SlackStandIn]:
    """A workspace whose clock goes two seconds a call: we are never too fast for it."""
    now = [began]

    def clock() -> dt.datetime:
        now[0] += dt.timedelta(seconds=2)
        return now[0]

    slack = SlackStandIn(token=SLACK_TOKEN, channels={"C01GPUOPS": "gpu-ops"}, clock=clock)
    slack.start()
    try:
        yield slack
    finally:
        slack.stop()


def letter(
    instance: str,
    noticed_at: dt.datetime,
    *,
    receives: int = 1,
    message_id: str = "m-1",
    **changes: Any,
) -> Letter:
    """A notice for an instance, as it comes from the inbox."""
    event = {
        "version": "0",
        "id": "e-1",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2",
        "account": "123456789012",
        "time": noticed_at.isoformat(),
        "region": "eu-west-1",
        "resources": [],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
        **changes,
    }
    return Letter(message_id=message_id, receipt="r", body=json.dumps(event), receives=receives)
