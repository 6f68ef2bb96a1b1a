"""The way in: an EventBridge rule, and the queue that its events wait in."""

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from lambdas.core.events import INTERRUPTION_WARNING, SOURCES

# Longer than the function may run, so that a batch at work is not delivered again.
VISIBILITY = cdk.Duration.seconds(90)
MAX_RECEIVES = 8
_QUEUE = "shiftwright-inbox"


class Inbox(Construct):
    """Spot interruption notices, and the continuations that the function sends itself."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        stack = cdk.Stack.of(self)
        # Each queue names the other, so one of the two names must be known beforehand.
        arn = stack.format_arn(service="sqs", resource=_QUEUE)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=f"{_QUEUE}-dead-letters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.days(14),
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                source_queues=[sqs.Queue.from_queue_arn(self, "Self", arn)]
            ),
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=_QUEUE,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=VISIBILITY,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=MAX_RECEIVES
            ),
        )
        self._rule()

    def _rule(self) -> None:
        events.Rule(
            self,
            "Rule",
            description="Spot interruption warnings, real and rehearsed, to Shiftwright's inbox",
            event_pattern=events.EventPattern(
                source=list(SOURCES), detail_type=[INTERRUPTION_WARNING]
            ),
            targets=[targets.SqsQueue(self.queue, dead_letter_queue=self.dead_letters)],
        )

    def keep_awake(self) -> None:
        """Send an event that nobody acts on once a day: Lambda takes the network interfaces of a
        function away that is idle for weeks, and getting them back costs most of a notice."""
        heartbeat = {"source": "shiftwright", "detail-type": "Heartbeat", "detail": {}}
        events.Rule(
            self,
            "Heartbeat",
            description="Keeps the network interfaces of Shiftwright's function",
            schedule=events.Schedule.rate(cdk.Duration.days(1)),
            targets=[
                targets.SqsQueue(
                    self.queue,
                    message=events.RuleTargetInput.from_object(heartbeat),
                    dead_letter_queue=self.dead_letters,
                )
            ],
        )

    def grant(self, role: iam.IRole) -> None:
        """Let the function read, send continuations, and set aside what it cannot read."""
        self.queue.grant_consume_messages(role)
        self.queue.grant(role, "sqs:SendMessage")
        self.dead_letters.grant(role, "sqs:SendMessage")
