"""The interruptions function, and what it may do."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.inbox import Inbox
from lambdas.core.policy import Vpc

NAME = "shiftwright-interruptions"
# More would need a batching window, and with a window Lambda may wait 20 s for a quiet queue.
BATCH = 10
# Functions at work at once: all of them speak to the same few API servers.
MAX_CONCURRENCY = 5
_NETWORK_ACTIONS = (
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)


class InterruptionsFunction(Construct):
    """Reads the inbox, and acts on the clusters of its region."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        asset: Path,
        inbox: Inbox,
        ledger: dynamodb.TableV2,
        secret: secretsmanager.Secret,
        clusters: Sequence[str],
        vpc: Vpc | None,
    ) -> None:
        super().__init__(scope, name)
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/lambda/{NAME}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Shiftwright's interruptions function",
        )
        self.function = self._function(
            asset,
            {
                "SHIFTWRIGHT_LEDGER_TABLE": ledger.table_name,
                "SHIFTWRIGHT_INBOX_URL": inbox.queue.queue_url,
                "SHIFTWRIGHT_DEAD_LETTER_URL": inbox.dead_letters.queue_url,
                "SHIFTWRIGHT_SLACK_SECRET": secret.secret_arn,
                "POWERTOOLS_SERVICE_NAME": "interruptions",
                "POWERTOOLS_METRICS_NAMESPACE": "Shiftwright",
                "POWERTOOLS_LOG_LEVEL": "INFO",
            },
        )
        self._grant(inbox, ledger, secret, clusters)
        if vpc:
            self._join(vpc)
            inbox.keep_awake()
        self.function.add_event_source(
            sources.SqsEventSource(
                inbox.queue,
                batch_size=BATCH,
                report_batch_item_failures=True,
                max_concurrency=MAX_CONCURRENCY,
            )
        )

    def _function(self, asset: Path, environment: dict[str, str]) -> lambda_.Function:
        return lambda_.Function(
            self,
            "Function",
            function_name=NAME,
            description="Moves replicas off spot instances that are about to be taken away",
            code=lambda_.Code.from_asset(
                str(asset), asset_hash=asset.name, asset_hash_type=cdk.AssetHashType.CUSTOM
            ),
            handler="lambdas.interruptions.handler",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=512,
            timeout=cdk.Duration.seconds(60),
            role=self.role.without_policy_updates(),
            log_group=self.log_group,
            environment=environment,
        )

    def _grant(
        self,
        inbox: Inbox,
        ledger: dynamodb.TableV2,
        secret: secretsmanager.Secret,
        clusters: Sequence[str],
    ) -> None:
        """Each permission that the function uses, and no other."""
        stack = cdk.Stack.of(self)
        inbox.grant(self.role)
        ledger.grant(self.role, "dynamodb:GetItem", "dynamodb:PutItem")
        self._allow(["secretsmanager:GetSecretValue"], [secret.secret_arn])
        self._allow(["logs:CreateLogStream", "logs:PutLogEvents"], [self.log_group.log_group_arn])
        self._allow(
            ["eks:DescribeCluster"],
            [
                stack.format_arn(service="eks", resource="cluster", resource_name=name)
                for name in clusters
            ],
        )
        self._allow(["ec2:DescribeInstances"], ["*"])
        cdk.Validations.of(self.role).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-IAM5[Resource::*]",
                reason="ec2:Describe* actions support no resource; nothing else has this wildcard.",
            )
        )

    def _join(self, vpc: Vpc) -> None:
        """Join a VPC, by ids, so that synth asks no account for anything.

        Lambda makes the network interfaces with the function's own role, and needs every
        interface of the account and region; the function's code is denied the same actions.
        """
        stack = cdk.Stack.of(self)
        cfn = cast(lambda_.CfnFunction, self.function.node.default_child)
        cfn.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(vpc.subnets), security_group_ids=list(vpc.security_groups)
        )
        interfaces = stack.format_arn(service="ec2", resource="*", resource_name="*")
        self._allow(["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"], ["*"])
        self._allow(_NETWORK_ACTIONS, [interfaces])
        own = stack.format_arn(
            service="lambda",
            resource="function",
            resource_name=NAME,
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        self.role.add_to_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                actions=list(_NETWORK_ACTIONS),
                resources=["*"],
                conditions={"ArnEquals": {"lambda:SourceFunctionArn": own}},
            )
        )
        cdk.Validations.of(self.role).acknowledge(
            cdk.Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:{stack.region}"
                ":<AWS::AccountId>:*/*]",
                reason="Lambda names the network interfaces itself, as it makes them.",
            )
        )

    def _allow(self, actions: Sequence[str], resources: Sequence[str]) -> None:
        self.role.add_to_policy(
            iam.PolicyStatement(actions=list(actions), resources=list(resources))
        )
