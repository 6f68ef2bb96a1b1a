"""Where settings, clients and the clock are put together: the only composition in AWS."""

import datetime as dt
import functools
import os
import pathlib
import threading
from collections.abc import Callable, Mapping

import boto3
import msgspec
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from botocore.config import Config

from lambdas.adapters.ec2 import Ec2
from lambdas.adapters.eks import Eks
from lambdas.adapters.inbox import Inbox
from lambdas.adapters.kube import Kube
from lambdas.adapters.ledger import Ledger
from lambdas.adapters.secrets import read_slack_token
from lambdas.adapters.slack import Slack
from lambdas.core.policy import Policy
from lambdas.passes.intake import Intake
from lambdas.passes.interruption import InterruptionPass
from lambdas.passes.tell import Teller

# A notice has 120 s: a call that hangs must leave time for another.
_AWS_CONFIG = Config(
    connect_timeout=3, read_timeout=5, retries={"mode": "standard", "max_attempts": 3}
)
# Acting does not wait for the ledger: an answer that takes longer counts as none.
_LEDGER_CONFIG = Config(
    connect_timeout=1, read_timeout=1, retries={"mode": "standard", "max_attempts": 2}
)
# How long a warm function trusts where a cluster's API server is.
_CONNECTION_LIFE = dt.timedelta(minutes=15)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the stack tells the function by its environment."""

    region: str
    ledger_table: str
    inbox_url: str
    dead_letter_url: str
    slack_secret: str
    policy_path: pathlib.Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the settings.

        Raises:
            KeyError: a variable is not set; the stack sets them all.
        """
        return cls(
            region=environment["AWS_REGION"],
            ledger_table=environment["SHIFTWRIGHT_LEDGER_TABLE"],
            inbox_url=environment["SHIFTWRIGHT_INBOX_URL"],
            dead_letter_url=environment["SHIFTWRIGHT_DEAD_LETTER_URL"],
            slack_secret=environment["SHIFTWRIGHT_SLACK_SECRET"],
            policy_path=pathlib.Path(environment["LAMBDA_TASK_ROOT"]) / "policy.json",
        )


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler needs."""

    metrics: Metrics
    interruptions: InterruptionPass


@functools.cache
def runtime() -> Runtime:
    """The function's one runtime, made at the first event and kept while it is warm."""
    return build(Settings.from_environment(os.environ))


def utc_now() -> dt.datetime:
    """The clock."""
    return dt.datetime.now(dt.UTC)


def build(settings: Settings) -> Runtime:
    """Put a runtime together."""
    policy = msgspec.json.decode(settings.policy_path.read_bytes(), type=Policy)
    session = boto3.Session(region_name=settings.region)
    logger = Logger()
    metrics = Metrics()

    def client(service: str, config: Config = _AWS_CONFIG) -> object:
        return session.client(service, config=config)  # type: ignore[call-overload]

    slack = Slack(
        policy.slack.channel,
        policy.slack.api_url,
        lambda: read_slack_token(client("secretsmanager"), settings.slack_secret),
    )
    ledger = Ledger(client("dynamodb", _LEDGER_CONFIG), settings.ledger_table)
    inbox = Inbox(client("sqs"), settings.inbox_url, settings.dead_letter_url)
    clusters = {
        name: cluster
        for name, cluster in policy.clusters.items()
        if cluster.region == settings.region
    }
    count = _counter(metrics)
    intake = Intake(
        clusters=clusters,
        mode=policy.interruptions.mode,
        ec2=Ec2(client("ec2")),
        ledger=ledger,
        inbox=inbox,
        clock=utc_now,
        logger=logger,
        count=count,
    )
    interruptions = InterruptionPass(
        clusters=clusters,
        settings=policy.interruptions,
        connect=Clusters(Eks(client("eks"), client("sts"), utc_now)).connect,
        intake=intake,
        teller=Teller(ledger=ledger, slack=slack, clock=utc_now, logger=logger, count=count),
        inbox=inbox,
        clock=utc_now,
        logger=logger,
        count=count,
    )
    return Runtime(metrics=metrics, interruptions=interruptions)


def _counter(metrics: Metrics) -> Callable[[str], None]:
    """Adds one to a metric by name."""
    lock = threading.Lock()

    def count(name: str) -> None:
        with lock:  # clusters are handled in threads, and Metrics is not made for them
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=1)

    return count


class Clusters:
    """Connections to clusters, kept while the function is warm."""

    def __init__(self, eks: Eks) -> None:
        self._eks = eks
        self._kept: dict[str, tuple[Kube, dt.datetime]] = {}

    def connect(self, cluster: str) -> Kube:
        """The API of a cluster by name; errors as in Eks.connection."""
        kube, until = self._kept.get(cluster, (None, utc_now()))
        if kube is not None and utc_now() < until:
            return kube
        found = self._eks.connection(cluster)
        kube = Kube(
            cluster,
            found.endpoint,
            found.ca_pem,
            functools.partial(self._eks.token, cluster),
        )
        self._kept[cluster] = (kube, utc_now() + _CONNECTION_LIFE)
        return kube
