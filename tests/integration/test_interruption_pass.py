"""The whole pass on stand-ins: a notice on the queue, and what the cluster and Slack saw."""

import datetime as dt
import json
import urllib.parse
from collections.abc import Iterator
from typing import Any

import boto3
import msgspec
import pytest

from lambdas.adapters.inbox import Letter
from lambdas.adapters.kube import Kube
from lambdas.core.errors import ConflictError, PassingError, PermanentError
from lambdas.core.incident import Told
from lambdas.core.policy import Mode
from local.kubernetes.resources import BUDGETS, DEPLOYMENTS, NODES
from local.slack.stand_in import SlackStandIn
from tests import product
from tests.integration.cluster import NOW, ClusterUnderTest, running_cluster
from tests.policy import CLUSTER
from tests.product import Product

NOTICED = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)


class Stage(Product):
    """The pass against the Kubernetes stand-in, filled by hand."""

    def __init__(self, aws: boto3.Session, cluster: ClusterUnderTest, slack: SlackStandIn) -> None:
        self.now = NOW
        super().__init__(
            aws, slack, {"gpu-prod": CLUSTER}, lambda _name: cluster.kube(), lambda: self.now
        )
        self.cluster = cluster
        self.instances_of = aws.client("ec2")

    def instances(self, number: int, cluster: str = "gpu-prod") -> list[str]:
        tags = [{"Key": f"kubernetes.io/cluster/{cluster}", "Value": "owned"}]
        answer = self.instances_of.run_instances(
            ImageId="ami-12345678",
            InstanceType="g5.2xlarge",
            MinCount=number,
            MaxCount=number,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
        return [one["InstanceId"] for one in answer["Instances"]]

    def scene(self) -> str:
        """A spot node with two of three spot replicas and a daemon; returns its instance."""
        (instance,) = self.instances(1)
        self.cluster.node("node-a", instance)
        self.cluster.node("node-b", "i-elsewhere")
        self.cluster.pod("chat-1", "node-a", "chat-spot")
        self.cluster.pod("chat-2", "node-a", "chat-spot")
        self.cluster.pod("chat-3", "node-b", "chat-spot")
        self.cluster.pod("plugin", "node-a", "DaemonSet/plugin")
        self.cluster.deployment("chat-spot", 3, 3)
        self.cluster.deployment("chat-on-demand", 1, 1)
        return instance

    def replicas(self, name: str = "chat-on-demand") -> int:
        found = self.cluster.stand_in.store.get(DEPLOYMENTS, name, "inference")
        return int(found["spec"]["replicas"])


def letter(instance: str, **changes: Any) -> Letter:
    return product.letter(instance, NOTICED, **changes)


@pytest.fixture
def cluster() -> Iterator[ClusterUnderTest]:
    with running_cluster() as one:
        yield one


@pytest.fixture
def stage(aws: boto3.Session, cluster: ClusterUnderTest) -> Iterator[Stage]:
    with product.running_slack(NOW) as slack:
        yield Stage(aws, cluster, slack)


SCALE = "/apis/apps/v1/namespaces/inference/deployments/chat-on-demand/scale"
EVICTION = "/api/v1/namespaces/inference/pods/{}/eviction"


def test_cordon_then_surge_then_evict_then_tell(stage: Stage) -> None:
    instance = stage.scene()
    assert stage.run(letter(instance)) == ()
    writes = stage.cluster.writes()
    assert writes[:2] == ["PATCH /api/v1/nodes/node-a 200", f"PATCH {SCALE} 200"]
    assert sorted(writes[2:]) == [
        f"POST {EVICTION.format('chat-1')} 201",
        f"POST {EVICTION.format('chat-2')} 201",
    ]
    assert stage.replicas() == 3
    (message,) = stage.slack.messages
    assert message.text == "Spot interruption in gpu-prod: 1 node; chat on-demand goes 1 → 3"
    incident = stage.incident(instance)
    assert incident.finished
    assert incident.thread == message.ts
    assert stage.waiting() == 0
    assert stage.counts == {"Interruptions": 1, "Surges": 1, "Evictions": 2}


def test_no_more_calls_than_four_and_one_a_pod_and_two_a_workload(stage: Stage) -> None:
    stage.run(letter(stage.scene()))
    pods, workloads = 2, 1
    assert len(stage.cluster.requests()) <= 4 + pods + 2 * workloads


def test_a_second_delivery_changes_nothing_and_tells_nothing(stage: Stage) -> None:
    instance = stage.scene()
    stage.run(letter(instance))
    before = len(stage.cluster.requests())
    assert stage.run(letter(instance, receives=2, message_id="m-2")) == ()
    assert stage.run(letter(instance, id="another-event")) == ()
    assert len(stage.cluster.requests()) == before
    assert len(stage.slack.messages) == 1


def test_two_deliveries_in_one_batch_are_one(stage: Stage) -> None:
    instance = stage.scene()
    assert stage.run(letter(instance), letter(instance, message_id="m-2")) == ()
    assert len(stage.slack.messages) == 1
    assert len(stage.cluster.writes()) == 4


def test_observe_mode_decides_and_tells_and_changes_nothing(stage: Stage) -> None:
    instance = stage.scene()
    assert stage.run(letter(instance), mode=Mode.OBSERVE) == ()
    assert stage.cluster.writes() == []
    assert stage.replicas() == 1
    (message,) = stage.slack.messages
    assert ":eye: would surge *chat*" in json.dumps(message.blocks, ensure_ascii=False)
    assert stage.incident(instance).finished


def test_a_blocked_eviction_goes_on_until_the_budget_gives_way(stage: Stage) -> None:
    instance = stage.scene()
    stage.cluster.budget("chat", "chat-spot", allowed=1)
    assert stage.run(letter(instance)) == ()
    assert not stage.incident(instance).closed
    assert stage.waiting() == 1
    stage.cluster.stand_in.store.patch(
        BUDGETS, "chat", {"status": {"disruptionsAllowed": 1}}, "inference"
    )
    stage.now += dt.timedelta(seconds=6)
    assert stage.run(letter(instance)) == ()
    opening, closing = stage.slack.messages
    assert "a disruption budget holds pods back" in opening.text
    assert closing.thread_ts == opening.ts
    assert closing.text == "Finished with 1 node in gpu-prod; chat on-demand goes 1 → 3"
    assert stage.incident(instance).finished
    assert stage.waiting() == 1


def test_a_budget_that_never_gives_way_is_told_when_the_time_is_up(stage: Stage) -> None:
    instance = stage.scene()
    stage.cluster.budget("chat", "chat-spot", allowed=0)
    stage.run(letter(instance))
    stage.now = NOTICED + dt.timedelta(seconds=106)
    assert stage.run(letter(instance)) == ()
    assert "a disruption budget holds pods back" in stage.slack.messages[-1].text
    assert stage.incident(instance).finished
    assert stage.waiting() == 1


def test_of_two_functions_at_once_each_sees_the_others_node(stage: Stage) -> None:
    """The first one is held between its surge and its evictions; the second one runs through."""
    one, other = stage.instances(2)
    for instance, node in ((one, "node-a"), (other, "node-b")):
        stage.cluster.node(node, instance)
        for number in range(2):
            stage.cluster.pod(f"{node}-{number}", node, "chat-spot")
    stage.cluster.deployment("chat-spot", 4, 4)
    stage.cluster.deployment("chat-on-demand", 1, 1)
    real = stage.cluster.kube()
    outcomes: list[tuple[str, ...]] = []

    class Interrupted:
        """The cluster, where another function comes in right after the surge."""

        times = 1

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def scale(self, *arguments: Any) -> None:
            real.scale(*arguments)
            if self.times:
                self.times = 0
                outcomes.append(stage.run(letter(other, message_id="m-2")))

    interrupted: Any = Interrupted()
    stage.connect = lambda _name: interrupted
    assert stage.run(letter(one)) == ()
    assert outcomes == [()]
    assert stage.replicas() == 5


def test_a_second_notice_that_finds_a_surplus_looks_twice(stage: Stage) -> None:
    one = stage.scene()
    stage.cluster.stand_in.store.patch(
        DEPLOYMENTS, "chat-on-demand", {"spec": {"replicas": 2}}, "inference"
    )
    stage.run(letter(one))
    lists = [r.path for r in stage.cluster.requests() if r.path.startswith("/api/v1/nodes?")]
    assert len(lists) == 2
    assert stage.cluster.writes()[:2] == ["PATCH /api/v1/nodes/node-a 200", f"PATCH {SCALE} 200"]
    assert stage.replicas() == 3


def test_karpenter_was_first(stage: Stage) -> None:
    instance = stage.scene()
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    stage.cluster.stand_in.store.patch(NODES, "node-a", {"spec": {"taints": [taint]}})
    stage.run(letter(instance))
    assert stage.cluster.writes() == [f"PATCH {SCALE} 200"]
    (message,) = stage.slack.messages
    assert "Karpenter drains it" in json.dumps(message.blocks)


def test_a_hundred_notices_read_the_nodes_once_and_are_told_once(stage: Stage) -> None:
    instances = stage.instances(100)
    for number, instance in enumerate(instances):
        stage.cluster.node(f"node-{number}", instance)
        stage.cluster.pod(f"chat-{number}", f"node-{number}", "chat-spot")
    stage.cluster.deployment("chat-spot", 100, 100)
    stage.cluster.deployment("chat-on-demand", 1, 1)
    batch = [letter(one, message_id=one) for one in instances]
    assert stage.run(*batch) == ()
    paths = [request.path.partition("?")[0] for request in stage.cluster.requests()]
    assert paths.count("/api/v1/nodes") == 1
    assert paths.count("/apis/karpenter.sh/v1/nodeclaims") == 1
    assert paths.count(SCALE) == 1
    assert stage.replicas() == 101
    assert len(stage.slack.messages) == 1
    assert all(stage.incident(one).finished for one in instances)


def test_an_earlier_notice_counts_while_its_node_is_going_and_no_longer(stage: Stage) -> None:
    instance = stage.scene()
    marks = {"shiftwright.dev/interrupted-at": (NOW + dt.timedelta(seconds=60)).isoformat()}
    stage.cluster.stand_in.store.patch(NODES, "node-b", {"metadata": {"annotations": marks}})
    stage.run(letter(instance))
    assert stage.replicas() == 4
    marks = {"shiftwright.dev/interrupted-at": (NOW - dt.timedelta(minutes=10)).isoformat()}
    stage.cluster.stand_in.store.patch(NODES, "node-b", {"metadata": {"annotations": marks}})
    before = len(stage.cluster.requests())
    (second,) = stage.instances(1)
    stage.run(letter(second))
    read = [one.path for one in stage.cluster.requests()[before:] if "/pods?" in one.path]
    assert len(read) == 1
    assert "node-a" in read[0]


def test_what_is_not_ours_is_acknowledged(stage: Stage) -> None:
    (foreign,) = stage.instances(1, cluster="somebody-elses")
    body = letter(foreign).body.replace("Spot Instance Interruption Warning", "Something Else")
    unknown = Letter(message_id="m-3", receipt="r", body=body)
    assert stage.run(letter(foreign), letter("i-00000000000000000"), unknown) == ()
    assert stage.cluster.requests() == ()
    assert stage.slack.messages == ()
    assert stage.counts == {"ForeignInstances": 2, "UnknownEvents": 1}


def test_rubbish_goes_to_the_dead_letters_and_holds_nothing_up(stage: Stage) -> None:
    instance = stage.scene()
    rubbish = Letter(message_id="m-0", receipt="r", body="rubbish")
    assert stage.run(rubbish, letter(instance)) == ()
    (dead,) = stage.sqs.receive_message(QueueUrl=stage.dead)["Messages"]
    assert dead["Body"] == "rubbish"
    assert stage.incident(instance).finished
    assert stage.counts["MalformedEvents"] == 1


def test_an_instance_without_a_node_is_told(stage: Stage) -> None:
    (instance,) = stage.instances(1)
    assert stage.run(letter(instance)) == ()
    assert "no node of the cluster runs on this instance" in json.dumps(
        stage.slack.messages[0].blocks
    )


# Failures


def test_a_cluster_out_of_reach_is_tried_again_and_told_from_the_second_time(
    stage: Stage,
) -> None:
    instance = stage.scene()
    working = stage.connect

    def broken(_name: str) -> Kube:
        raise PassingError("cluster gpu-prod: no route to host")

    stage.connect = broken
    assert stage.run(letter(instance)) == ("m-1",)
    assert stage.texts() == []
    assert stage.run(letter(instance, receives=2)) == ("m-1",)
    assert stage.run(letter(instance, receives=3)) == ("m-1",)
    (message,) = stage.slack.messages
    assert "no route to host" in json.dumps(message.blocks)
    stage.connect = working
    assert stage.run(letter(instance, receives=4)) == ()
    assert stage.replicas() == 3
    assert stage.incident(instance).finished
    assert len(stage.slack.messages) == 2


def test_a_cluster_that_refuses_us_is_told_and_not_repeated(stage: Stage) -> None:
    instance = stage.scene()
    stage.connect = lambda _name: stage.cluster.kube("stranger")
    assert stage.run(letter(instance)) == ()
    (message,) = stage.slack.messages
    assert "shiftwright-rbac.yaml" in json.dumps(message.blocks)
    assert stage.incident(instance).finished


def test_a_surge_that_is_overtaken_is_decided_anew_at_once(stage: Stage) -> None:
    instance = stage.scene()
    real = stage.cluster.kube()

    class Overtaken:
        """The cluster, where somebody writes to the Deployment between reading and surge."""

        times = 1

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def scale(self, namespace: str, deployment: str, replicas: int, version: str) -> None:
            if self.times:
                self.times -= 1
                stage.cluster.stand_in.store.patch(
                    DEPLOYMENTS, deployment, {"metadata": {"labels": {"a": "b"}}}, namespace
                )
            real.scale(namespace, deployment, replicas, version)

    overtaken: Any = Overtaken()
    stage.connect = lambda _name: overtaken
    assert stage.run(letter(instance)) == ()
    scales = [one for one in stage.cluster.writes() if "/scale" in one]
    assert scales == [f"PATCH {SCALE} 409", f"PATCH {SCALE} 200"]
    first_eviction = next(
        number for number, one in enumerate(stage.cluster.writes()) if "eviction" in one
    )
    assert first_eviction > stage.cluster.writes().index(f"PATCH {SCALE} 200")
    assert stage.incident(instance).finished
    assert len(stage.slack.messages) == 1


def test_without_time_nothing_is_begun_and_nothing_is_lost(stage: Stage) -> None:
    instance = stage.scene()
    assert stage.the_pass().run([letter(instance)], stage.now) == ("m-1",)
    assert stage.cluster.writes() == []
    assert stage.run(letter(instance, receives=2)) == ()
    assert stage.replicas() == 3
    assert stage.incident(instance).finished


def test_slack_out_of_order_does_not_hold_up_the_drain(stage: Stage) -> None:
    instance = stage.scene()
    port = urllib.parse.urlsplit(stage.slack.url).port or 0
    the_pass = stage.the_pass()
    stage.slack.stop()
    until = stage.now + dt.timedelta(seconds=40)
    assert the_pass.run([letter(instance)], until) == ("m-1",)
    assert stage.replicas() == 3
    assert stage.incident(instance).told is Told.NOTHING
    stage.slack.start(port)
    before = len(stage.cluster.requests())
    assert stage.run(letter(instance, receives=2)) == ()
    assert len(stage.cluster.requests()) == before
    (message,) = stage.slack.messages
    assert "chat on-demand goes 1 → 3" in message.text


def test_a_token_that_slack_refuses_is_not_tried_for_ever(stage: Stage) -> None:
    instance = stage.scene()
    stage.slack_token = "xoxb-wrong"
    assert stage.run(letter(instance)) == ()
    assert stage.replicas() == 3
    assert stage.incident(instance).finished
    assert stage.counts["Untold"] == 1


def test_without_the_ledger_we_still_act(stage: Stage) -> None:
    instance = stage.scene()
    stage.dynamodb.delete_table(TableName="ledger")
    assert stage.run(letter(instance)) == ("m-1",)
    assert stage.replicas() == 3


def test_another_function_is_telling(stage: Stage) -> None:
    instance = stage.scene()
    stage.run(letter(instance))
    ledger = stage.ledger
    claimed = msgspec.structs.replace(
        stage.incident(instance),
        told=Told.NOTHING,
        claimed_until=stage.now + dt.timedelta(seconds=30),
    )
    ledger.write(claimed)
    assert stage.run(letter(instance, receives=2)) == ("m-1",)
    assert len(stage.slack.messages) == 1
    stage.now += dt.timedelta(seconds=31)
    assert stage.run(letter(instance, receives=3)) == ()
    assert len(stage.slack.messages) == 2


def test_queues_out_of_reach_put_everything_back(stage: Stage) -> None:
    instance = stage.scene()
    stage.cluster.budget("chat", "chat-spot", allowed=0)
    stage.sqs.delete_queue(QueueUrl=stage.url)
    stage.sqs.delete_queue(QueueUrl=stage.dead)
    rubbish = Letter(message_id="m-0", receipt="r", body="rubbish")
    assert stage.run(rubbish, letter(instance)) == ("m-0", "m-1")


def test_ec2_that_refuses_us_leaves_the_notices_in_the_dead_letters(stage: Stage) -> None:
    instance = stage.scene()

    class Refusing:
        def instances(self, _ids: object) -> dict[str, Any]:
            raise PermanentError("UnauthorizedOperation")

    refusing: Any = Refusing()
    stage.ec2 = refusing
    assert stage.run(letter(instance)) == ()
    (dead,) = stage.sqs.receive_message(QueueUrl=stage.dead)["Messages"]
    assert dead["Body"] == letter(instance).body


def test_a_rehearsal_does_not_hide_the_real_notice(stage: Stage) -> None:
    instance = stage.scene()
    stage.run(letter(instance), mode=Mode.OBSERVE)
    stage.now += dt.timedelta(minutes=40)
    real = (NOTICED + dt.timedelta(minutes=40)).isoformat()
    assert stage.run(letter(instance, time=real)) == ()
    assert stage.replicas() == 3


def test_a_notice_from_the_dead_letters_drains_nothing(stage: Stage) -> None:
    instance = stage.scene()
    stage.now += dt.timedelta(days=3)
    assert stage.run(letter(instance)) == ()
    assert stage.cluster.writes() == []
    (message,) = stage.slack.messages
    assert "the notice is too old" in json.dumps(message.blocks)


def test_a_record_that_nobody_can_read_holds_nothing_up(stage: Stage) -> None:
    instance = stage.scene()
    item = {
        "pk": {"S": f"interruption#{instance}"},
        "version": {"N": "3"},
        "incident": {"S": "{}"},
    }
    stage.dynamodb.put_item(TableName="ledger", Item=item)
    assert stage.run(letter(instance)) == ()
    assert stage.incident(instance).finished


@pytest.mark.parametrize(
    ("refusal", "again"),
    [
        (PermanentError("a webhook refuses"), ()),
        (PassingError("503"), ("m-1",)),
        (ConflictError("409"), ("m-1",)),
    ],
)
def test_pods_are_not_evicted_from_a_node_that_could_not_be_cordoned(
    stage: Stage, refusal: Exception, again: tuple[str, ...]
) -> None:
    instance = stage.scene()
    real = stage.cluster.kube()

    class Refusing:
        """The cluster, where nodes cannot be patched."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def cordon(self, _node: str, _interrupted_at: str) -> None:
            raise refusal

    refusing: Any = Refusing()
    stage.connect = lambda _name: refusing
    assert stage.run(letter(instance)) == again
    assert stage.cluster.writes() == [f"PATCH {SCALE} 200"]
    (message,) = stage.slack.messages
    assert "its node could not be cordoned" in json.dumps(message.blocks)


def test_a_cluster_that_is_lost_in_the_middle_keeps_the_record(stage: Stage) -> None:
    instance = stage.scene()
    stage.cluster.budget("chat", "chat-spot", allowed=1)
    stage.run(letter(instance))

    def broken(_name: str) -> Kube:
        raise PassingError("no route to host")

    working, stage.connect = stage.connect, broken
    assert stage.run(letter(instance)) == ("m-1",)
    incident = stage.incident(instance)
    assert incident.trouble == "no route to host"
    assert len(incident.outcomes) == 4
    stage.connect = working
    budget = {"status": {"disruptionsAllowed": 1}}
    stage.cluster.stand_in.store.patch(BUDGETS, "chat", budget, "inference")
    assert stage.run(letter(instance, receives=2)) == ()
    assert stage.incident(instance).finished


def test_a_later_interruption_of_the_same_instance_is_another_incident(stage: Stage) -> None:
    instance = stage.scene()
    stage.run(letter(instance))
    stage.now += dt.timedelta(hours=5)
    later = (NOTICED + dt.timedelta(hours=5)).isoformat()
    assert stage.run(letter(instance, time=later)) == ()
    assert len(stage.slack.messages) == 2
