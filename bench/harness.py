"""Stand-ins of AWS, Kubernetes and Slack, filled with a cluster of a given size."""

import contextlib
import datetime as dt
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import msgspec
from botocore.config import Config

from infra.asset import Target, build
from lambdas.core.policy import Cluster, Interruptions, Mode, Policy, Pool, Slack, Workload
from local.aws.stand_in import Aws
from local.clock import utc_now
from local.kubernetes import StandIn, User, read_cluster_roles
from local.slack.stand_in import SlackStandIn

ROOT = Path(__file__).resolve().parents[1]
REGION = "eu-west-1"
CLUSTER = "gpu-bench"
TOKEN = "xoxb-bench"  # noqa: S105 (the stand-in's own)
PODS_PER_NODE = 15
WORKLOADS = 3
# Fifty image names, as a kubelet reports of a busy node: most of what a node weighs.
_IMAGES = [
    {"names": [f"registry.example/team/image-{number}@sha256:{'0' * 64}"], "sizeBytes": 10**9}
    for number in range(50)
]
_HASH = "5d9c7b8f6d"


class Harness:
    """The stand-ins while they run, and the handler as a child process against them."""

    def __init__(self, aws: Aws, kubernetes: StandIn, policy: Policy, instances: list[str]) -> None:
        self.aws = aws
        self.kubernetes = kubernetes
        self.policy = policy
        self.instances = instances
        self._asset = build(policy, Target.HOST)
        self._resources: dict[str, str] = {}

    def new_run(self) -> None:
        """Fresh queues and an empty ledger: the next notice is the first one of its kind."""
        suffix = secrets.token_hex(4)
        sqs, dynamodb = client(self.aws, "sqs"), client(self.aws, "dynamodb")
        table = f"ledger-{suffix}"
        dynamodb.create_table(
            TableName=table,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self._resources = {
            "SHIFTWRIGHT_LEDGER_TABLE": table,
            "SHIFTWRIGHT_INBOX_URL": sqs.create_queue(QueueName=f"inbox-{suffix}")["QueueUrl"],
            "SHIFTWRIGHT_DEAD_LETTER_URL": sqs.create_queue(QueueName=f"dead-{suffix}")["QueueUrl"],
        }

    def handle(self, instances: Sequence[str], *, plain: bool = False) -> dict[str, Any]:
        """Run the handler once, in a child process, on one batch of notices."""
        order = {"event": {"Records": [_record(one) for one in instances]}, "plain": plain}
        environment = self.aws.environment() | self._resources
        environment |= {
            "SHIFTWRIGHT_SLACK_SECRET": "slack",
            "LAMBDA_TASK_ROOT": str(self._asset),
            "PYTHONPATH": f"{self._asset}:{ROOT}",
            "POWERTOOLS_SERVICE_NAME": "interruptions",
            "POWERTOOLS_METRICS_NAMESPACE": "Shiftwright",
            "POWERTOOLS_LOG_LEVEL": "WARNING",
        }
        # -S: no site-packages, so that every package comes from the asset.
        done = subprocess.run(
            [sys.executable, "-S", "-m", "bench.handler"],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            check=False,
            cwd=self._asset,
            env=environment,
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            raise RuntimeError(f"the handler failed:\n{done.stdout}{done.stderr}")
        result: dict[str, Any] = json.loads(lines[-1])
        if result["failures"]:
            raise RuntimeError(f"the handler put its notice back:\n{done.stdout}")
        return result


def client(aws: Aws, service: str) -> Any:
    """A boto3 client of the AWS stand-in."""
    make = boto3.Session().client
    return make(  # type: ignore[call-overload]
        service,
        endpoint_url=aws.url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106
        config=Config(proxies={}),
    )


@contextlib.contextmanager
def harness(nodes: int, mode: Mode = Mode.ACT) -> Iterator[Harness]:
    """A cluster with `nodes` nodes of 15 pods each, three of which are spot replicas."""
    kubernetes = StandIn(
        authenticate=lambda _token: User("function", ("shiftwright",)),
        cluster_roles=read_cluster_roles((ROOT / "manifests/shiftwright-rbac.yaml").read_text()),
        clock=utc_now,
    )
    ticks = iter(range(10**9))

    def slack_clock() -> dt.datetime:
        """Two seconds a call: never too fast for Slack's rate limit."""
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=2 * next(ticks))

    slack = SlackStandIn(token=TOKEN, channels={"C0GPUBENCH": "gpu-bench"}, clock=slack_clock)
    with contextlib.ExitStack() as stack:
        kubernetes.start()
        stack.callback(kubernetes.stop)
        slack.start()
        stack.callback(slack.stop)
        port = int(kubernetes.url.rpartition(":")[2])
        aws = Aws(kubernetes_port=port, ca_pem=kubernetes.ca_pem, region=REGION)
        aws.start()
        stack.callback(aws.stop)
        instances = _run_instances(aws, nodes)
        _fill(kubernetes, instances)
        client(aws, "secretsmanager").create_secret(Name="slack", SecretString=TOKEN)
        client(aws, "eks").create_cluster(
            name=CLUSTER,
            roleArn="arn:aws:iam::000000000000:role/cluster",
            resourcesVpcConfig={},
        )
        yield Harness(aws, kubernetes, _policy(slack.url, mode), instances)


def _policy(slack_url: str, mode: Mode) -> Policy:
    workloads = {
        f"w{number}": Workload(
            namespace=f"team-{number}",
            pool="gpu",
            spot="spot",
            on_demand="on-demand",
            replicas=10,
        )
        for number in range(WORKLOADS)
    }
    cluster = Cluster(
        region=REGION,
        pools={"gpu": Pool(spot="gpu-spot", on_demand="gpu-on-demand")},
        workloads=workloads,
    )
    return Policy(
        slack=Slack(channel="#gpu-bench", api_url=slack_url),
        clusters={CLUSTER: cluster},
        interruptions=Interruptions(mode=mode),
    )


def _run_instances(aws: Aws, number: int) -> list[str]:
    answer = client(aws, "ec2").run_instances(
        ImageId="ami-12345678",
        InstanceType="g5.2xlarge",
        MinCount=number,
        MaxCount=number,
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}],
            }
        ],
    )
    return [one["InstanceId"] for one in answer["Instances"]]


def _fill(kubernetes: StandIn, instances: Sequence[str]) -> None:
    create = kubernetes.store.create
    for number in range(WORKLOADS):
        create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}})
        create(_deployment(f"team-{number}", "spot", len(instances)))
        create(_deployment(f"team-{number}", "on-demand", 0))
    create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}})
    for number, instance in enumerate(instances):
        node = f"node-{number:04}"
        create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": node},
                "spec": {"providerID": f"aws:///{REGION}a/{instance}"},
                "status": {"images": _IMAGES},
            }
        )
        for place in range(PODS_PER_NODE):
            create(_pod(node, place))


def _deployment(namespace: str, name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": {"readyReplicas": replicas},
    }


def _pod(node: str, place: int) -> dict[str, Any]:
    """The first pods are a spot replica of each workload, the others somebody else's."""
    ours = place < WORKLOADS
    owner = f"spot-{_HASH}" if ours else f"other-{_HASH}"
    environment = [{"name": f"SETTING_{number}", "value": "x" * 60} for number in range(30)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{node}-{place}",
            "namespace": f"team-{place}" if ours else "others",
            "labels": {"pod-template-hash": _HASH},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": "0",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "main", "env": environment}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def notice(instance: str) -> str:
    """An interruption warning of now, as EventBridge would put it on the queue."""
    event = {
        "version": "0",
        "id": secrets.token_hex(8),
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2",
        "account": "000000000000",
        "time": utc_now().isoformat(),
        "region": REGION,
        "resources": [],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
    }
    return msgspec.json.encode(event).decode()


def _record(instance: str) -> dict[str, Any]:
    return {
        "messageId": secrets.token_hex(8),
        "receiptHandle": "none",
        "body": notice(instance),
        "attributes": {"ApproximateReceiveCount": "1"},
    }
