"""Everything that a local run starts: the stand-ins, the deployment, and the scene in them."""

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import boto3
from botocore.config import Config

from lambdas.core.events import REPLAY_SOURCE
from lambdas.core.policy import Mode
from local import scene
from local.aws import deployed
from local.aws.stand_in import Aws, bootstrap, deploy
from local.clock import SceneClock, utc_now
from local.cluster import Cluster, Machines, SimulatedCluster
from local.console import Console
from local.kubernetes import (
    MASTERS,
    Happening,
    User,
    eks_authenticator,
    read_cluster_roles,
    sts_caller,
)
from local.kubernetes.server import Front
from local.objects import Objects
from local.slack.stand_in import Message, SlackStandIn

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
MANIFEST = ROOT / "manifests" / "shiftwright-rbac.yaml"
SLACK_TOKEN = "xoxb-local-run"  # noqa: S105  (the stand-in's own)
# The AWS stand-in hands functions no role credentials: whoever asks STS is the account's root.
CALLER = "arn:aws:iam::000000000000:root"
GROUP = "shiftwright"
# A resource that CloudFormation has made, in the output of `cdk deploy`.
_CREATED = re.compile(r"\| +[0-9/]+ \| [^|]+ \| CREATE_COMPLETE +\| (\S+) +\| ([^ (:]+)")
_WORTH_SAYING = re.compile(
    r"Synthesis time: .*|success: Published .*|.*(?:_FAILED|ROLLBACK|rror:).*"
)
# No proxy of the environment's may come in between.
_DIRECT = Config(proxies={}, retries={"mode": "standard", "max_attempts": 3})


class Listener(Protocol):
    """Who wants to hear what happens in the cluster, and what Slack accepts."""

    def happened(self, happening: Happening) -> None:
        """Something happened in the cluster."""

    def posted(self, message: Message) -> None:
        """Slack accepted a message."""


class Stage:
    """A context manager: what it starts is up inside, and gone afterwards."""

    # Made on entering.
    aws: Aws
    deployed: deployed.Deployed
    scene: scene.Scene

    def __init__(self, mode: Mode, console: Console, *, real: bool = False) -> None:
        """`real` puts a real control plane with Karpenter on it, not the stand-in."""
        self.mode = mode
        self.clock = SceneClock()
        self._console = console
        self._stack = contextlib.ExitStack()
        self._clients: dict[str, Any] = {}
        self._listener: Listener | None = None
        self.admin_token = secrets.token_urlsafe()
        self._review: Callable[[str], User | None] = _nobody_is_known
        self.cluster = self._make_cluster(real=real)
        self.slack = SlackStandIn(
            token=SLACK_TOKEN,
            channels={scene.CHANNEL_ID: scene.CHANNEL},
            clock=utc_now,
            listener=self._posted,
        )

    def __enter__(self) -> "Stage":
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def kubernetes(self) -> Front:
        """Where the function reaches the cluster."""
        return self.cluster.kubernetes

    @property
    def store(self) -> Objects:
        """The cluster's objects."""
        return self.cluster.store

    @property
    def machines(self) -> Machines:
        """The instances below its nodes."""
        return self.cluster.machines

    def client(self, service: str) -> Any:
        """A boto3 client of the AWS stand-in."""
        if service not in self._clients:
            make = boto3.Session().client
            self._clients[service] = make(  # type: ignore[call-overload]
                service,
                endpoint_url=self.aws.url,
                region_name=scene.REGION,
                aws_access_key_id="test",
                aws_secret_access_key="test",  # noqa: S106
                config=_DIRECT,
            )
        return self._clients[service]

    def send(self, event: Mapping[str, Any]) -> None:
        """Put an event on the bus, where the deployed rule finds it."""
        entry = {
            "Source": REPLAY_SOURCE,
            "DetailType": event["detail-type"],
            "Detail": json.dumps(event["detail"]),
            "Resources": event["resources"],
        }
        self.client("events").put_events(Entries=[entry])

    def function_log(self) -> tuple[str, ...]:
        """What the function and its runtime said, line by line."""
        group = f"/aws/lambda/{deployed.FUNCTION}"
        events = self.client("logs").filter_log_events(logGroupName=group)["events"]
        return tuple(event["message"].rstrip() for event in events)

    @contextlib.contextmanager
    def heard_by(self, listener: Listener) -> Iterator[None]:
        """Tell a listener what happens, in the threads in which it happens."""
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    def _happened(self, happening: Happening) -> None:
        if self._listener:
            self._listener.happened(happening)

    def _posted(self, message: Message) -> None:
        if self._listener:
            self._listener.posted(message)

    def _start(self) -> None:
        step = self._console.step
        with step(f"{self._cluster_name}, and the Slack stand-in"):
            self._stack.callback(self.cluster.stop)
            self.cluster.start()
            self.slack.start()
            self._stack.callback(self.slack.stop)
        with step("AWS stand-in"):
            self._start_aws()
        with step("cdk bootstrap"):
            bootstrap(self.aws, lambda _line: None)
        with step("cdk deploy") as progress:
            progress("building the functions and the template; the first time takes longer")
            policy = self.aws.directory / "policy.yaml"
            policy.write_text(scene.policy(self.mode.value, self.slack.url), encoding="utf-8")
            deploy(self.aws, policy, lambda line: _say_what_matters(line, progress))
        with step("Cluster with two GPU pools, Slack token"):
            self._set_scene()

    def _make_cluster(self, *, real: bool) -> Cluster:
        if real:
            # Only then is there a need for what builds and runs a control plane.
            from local.real import RealCluster  # noqa: PLC0415

            self._cluster_name = "Control plane with Karpenter"
            return RealCluster(self._authenticate, self.clock, self._happened)
        self._cluster_name = "Kubernetes stand-in"
        roles = read_cluster_roles(MANIFEST.read_text(encoding="utf-8"))
        return SimulatedCluster(self._authenticate, roles, self.clock, self._happened)

    def _start_aws(self) -> None:
        port = int(self.kubernetes.url.rpartition(":")[2])
        self.aws = Aws(kubernetes_port=port, ca_pem=self.kubernetes.ca_pem, region=scene.REGION)
        self.aws.start()
        self._stack.callback(self.aws.stop)
        sts = sts_caller({int(self.aws.url.rpartition(":")[2])})
        review = eks_authenticator(sts, scene.CLUSTER, utc_now, access_entries={CALLER: [GROUP]})
        self._review = review

    def _authenticate(self, token: str) -> User | None:
        if secrets.compare_digest(token.encode(), self.admin_token.encode()):
            return User("admin", (MASTERS,))
        return self._review(token)

    def _set_scene(self) -> None:
        self.deployed = deployed.find(self.client("lambda"))
        self.client("secretsmanager").put_secret_value(
            SecretId=self.deployed.slack_secret, SecretString=SLACK_TOKEN
        )
        scene.create_cluster(self.client("eks"))
        self.scene = self.cluster.fill(self.client("ec2"))


def _say_what_matters(line: str, progress: Callable[[str], None]) -> None:
    if created := _CREATED.search(line):
        progress(f"created {created[1]:<32} {created[2]}")
    elif said := _WORTH_SAYING.search(line):
        progress(said[0])


def _nobody_is_known(_token: str) -> User | None:
    """Before the AWS stand-in is up, there is no STS to ask."""
    return None
