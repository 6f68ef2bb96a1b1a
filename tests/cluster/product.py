"""The interruption pass in a cluster whose nodes are kwok's, and a queue that is played."""

import dataclasses
import datetime as dt
import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import boto3
import msgspec

from lambdas.adapters.inbox import Letter
from lambdas.adapters.kube import Kube
from lambdas.core.instances import Instance
from lambdas.core.policy import Cluster
from lambdas.core.snapshot import Node
from local.slack.stand_in import SlackStandIn
from tests.contract.client import Server
from tests.product import Product, letter

CLUSTER = "gpu-prod"


def instance_of(node: str) -> str:
    """The EC2 instance that a kwok node stands for."""
    return f"i-{hashlib.sha256(node.encode()).hexdigest()[:17]}"


@dataclasses.dataclass(frozen=True)
class Call:
    """A request of the product: when it was sent, and how it ended."""

    at: dt.datetime
    method: str
    path: str
    error: str  # the class of the error, or ""

    @property
    def object(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]


class Journal:
    """What the product asked of the API server, and a way to step in before a request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self.before: Callable[[str, str], None] = lambda _method, _path: None

    def add(self, call: Call) -> None:
        with self._lock:
            self._calls.append(call)

    def writes(self, method: str = "", part: str = "") -> list[Call]:
        """Requests that change something, by method and a part of their path."""
        with self._lock:
            return [
                call
                for call in self._calls
                if call.method != "GET" and method in call.method and part in call.object
            ]


class KwokKube(Kube):
    """The product's own client. Only a node's instance is made up: kwok has none."""

    def __init__(self, server: Server, journal: Journal) -> None:
        super().__init__(CLUSTER, server.url, server.ca_pem, lambda **_: server.product_token)
        self._journal = journal

    def nodes(self) -> Iterator[Node]:
        for node in super().nodes():
            yield msgspec.structs.replace(node, instance_id=instance_of(node.name))

    def _call(
        self,
        method: str,
        path: str,
        content_type: str | None = None,
        body: dict[str, Any] | None = None,
    ) -> bytes:
        self._journal.before(method, path)
        at = dt.datetime.now(dt.UTC)
        error = ""
        try:
            return super()._call(method, path, content_type, body)
        except Exception as raised:
            error = type(raised).__name__
            raise
        finally:
            self._journal.add(Call(at, method, path, error))


class KwokInstances:
    """EC2 as far as the pass asks it: every instance is one of the cluster's."""

    def instances(self, ids: Collection[str]) -> Mapping[str, Instance]:
        tags = {f"kubernetes.io/cluster/{CLUSTER}": "owned"}
        return {
            one: Instance(
                instance_id=one, instance_type="g4dn.12xlarge", zone="eu-west-1a", tags=tags
            )
            for one in ids
        }


class ClusterProduct(Product):
    """The pass with the real time, and the queue's deliveries as Lambda would make them."""

    def __init__(
        self, aws: boto3.Session, slack: SlackStandIn, server: Server, cluster: Cluster
    ) -> None:
        self.journal = Journal()
        super().__init__(
            aws,
            slack,
            {CLUSTER: cluster},
            lambda _name: KwokKube(server, self.journal),
            lambda: dt.datetime.now(dt.UTC),
        )
        instances: Any = KwokInstances()
        self.ec2 = instances

    def notify(self, *nodes: str) -> dt.datetime:
        """Put a notice for each node on the inbox; returns the time of them all."""
        now = self.clock()
        for node in nodes:
            body = letter(instance_of(node), now).body
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body)
        return now

    def deliver(self, wait_seconds: int = 0) -> int:
        """One invocation with what is visible on the inbox now; returns how much that was."""
        answer = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=wait_seconds,
            AttributeNames=["ApproximateReceiveCount"],
        )
        letters = [
            Letter(
                message_id=message["MessageId"],
                receipt=message["ReceiptHandle"],
                body=message["Body"],
                receives=int(message["Attributes"]["ApproximateReceiveCount"]),
            )
            for message in answer.get("Messages", ())
        ]
        again = self.run(*letters) if letters else ()
        for one in letters:
            if one.message_id not in again:
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=one.receipt)
        return len(letters)

    def deliver_until_finished(self, *nodes: str, seconds: float = 90) -> None:
        """Play the queue until the incidents of these nodes are finished, and it is empty."""
        deadline = time.monotonic() + seconds
        ids = {instance_of(node) for node in nodes}
        while True:
            self.deliver(wait_seconds=1)
            records = self.ledger.records(ids)
            incidents = [one.incident for one in records.values() if one.incident]
            if len(incidents) == len(ids) and all(one.finished for one in incidents):
                return
            assert time.monotonic() < deadline, f"not finished in {seconds:g} s: {incidents}"
