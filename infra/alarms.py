"""What an operator is woken for."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.inbox import Inbox
from lambdas.core.events import NOTICE

_MINUTE = cdk.Duration.minutes(1)


def add(scope: Construct, *, inbox: Inbox, function: lambda_.IFunction) -> None:
    """Add the alarms. They carry no action: subscribe your own to them."""
    dead = inbox.dead_letters.metric_approximate_number_of_messages_visible(
        period=_MINUTE, statistic="max"
    )
    age = inbox.queue.metric_approximate_age_of_oldest_message(period=_MINUTE, statistic="max")
    errors = function.metric_errors(period=_MINUTE)
    throttles = function.metric_throttles(period=_MINUTE)
    untold = cloudwatch.Metric(
        namespace="Shiftwright",
        metric_name="Untold",
        dimensions_map={"service": "interruptions"},
        period=_MINUTE,
        statistic="sum",
    )
    _alarm(scope, "DeadLetters", dead, 0, "Events could not be handled; see the dead letters")
    _alarm(
        scope,
        "OldestNotice",
        age,
        int(NOTICE.total_seconds()),
        "Notices wait longer than an instance lives",
    )
    _alarm(scope, "FunctionErrors", errors, 0, "The interruptions function failed; see its log")
    _alarm(scope, "FunctionThrottles", throttles, 0, "The account's Lambda concurrency is used up")
    _alarm(scope, "Untold", untold, 0, "Slack refuses our messages; see the function's log")


def _alarm(
    scope: Construct, name: str, metric: cloudwatch.IMetric, above: int, description: str
) -> None:
    cloudwatch.Alarm(
        scope,
        f"{name}Alarm",
        alarm_description=f"Shiftwright: {description}",
        metric=metric,
        threshold=above,
        evaluation_periods=1,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
