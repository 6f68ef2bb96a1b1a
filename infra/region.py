"""Everything that one region needs, put together."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra import alarms
from infra.function import InterruptionsFunction
from infra.inbox import Inbox
from lambdas.core.policy import Policy


class RegionStack(cdk.Stack):
    """The interruptions function of one region, its inbox, its ledger and its secret."""

    def __init__(
        self, scope: Construct, name: str, *, region: str, policy: Policy, asset: Path
    ) -> None:
        super().__init__(
            scope,
            name,
            env=cdk.Environment(region=region),
            description=f"Shiftwright in {region}: reacts to spot interruptions of GPU nodes",
        )
        inbox = Inbox(self, "Inbox")
        ledger = _ledger(self)
        secret = _slack_secret(self)
        self.function = InterruptionsFunction(
            self,
            "Interruptions",
            asset=asset,
            inbox=inbox,
            ledger=ledger,
            secret=secret,
            clusters=[n for n, c in policy.clusters.items() if c.region == region],
            vpc=policy.vpc_in(region),
        )
        alarms.add(self, inbox=inbox, function=self.function.function)
        outputs = {
            "SlackSecretArn": (secret.secret_arn, "Put the Slack bot token here"),
            "InboxUrl": (inbox.queue.queue_url, "Where notices arrive"),
            "DeadLetterUrl": (inbox.dead_letters.queue_url, "What could not be handled"),
            "FunctionRoleArn": (self.function.role.role_arn, "Who speaks to the clusters"),
            "FunctionName": (self.function.function.function_name, "Who handles notices"),
            "LogGroupName": (self.function.log_group.log_group_name, "What it says"),
            "LedgerTable": (ledger.table_name, "What was done before"),
        }
        for output, (value, description) in outputs.items():
            cdk.CfnOutput(self, output, value=value, description=description)


def _ledger(scope: Construct) -> dynamodb.TableV2:
    """What was done and told for each incident. It goes with the stack: it is of no use alone,
    and its entries expire by themselves."""
    return dynamodb.TableV2(
        scope,
        "Ledger",
        partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
        billing=dynamodb.Billing.on_demand(),
        time_to_live_attribute="expires",
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )


def _slack_secret(scope: Construct) -> secretsmanager.Secret:
    """The Slack bot token, which an operator puts in. It goes with the stack, and can be had
    again from Slack; Secrets Manager itself keeps a deleted secret for some days."""
    secret = secretsmanager.Secret(
        scope,
        "SlackToken",
        description="Shiftwright's Slack bot token (xoxb-...), as plain text",
        # Any text but a token: the function says so, and what to do. A later deployment leaves
        # the operator's value alone, since this one has not changed.
        secret_string_value=cdk.SecretValue.unsafe_plain_text("no token yet"),
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    cdk.Validations.of(secret).acknowledge(
        cdk.Acknowledgment(
            id="AwsSolutions-SMG4",
            reason="A Slack bot token is issued by Slack; Secrets Manager cannot rotate it.",
        )
    )
    return secret
