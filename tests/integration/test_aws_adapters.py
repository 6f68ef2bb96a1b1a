"""The AWS adapters against moto, and against the errors that AWS gives."""

import base64
import datetime as dt
import urllib.parse
from typing import Any

import boto3
import msgspec
import pytest
from botocore.exceptions import ConnectTimeoutError
from botocore.stub import Stubber

from lambdas.adapters.ec2 import Ec2
from lambdas.adapters.eks import Connection, Eks
from lambdas.adapters.inbox import Inbox, Letter, letters
from lambdas.adapters.ledger import Ledger, Record
from lambdas.adapters.secrets import read_slack_token
from lambdas.core.errors import ConflictError, PassingError, PermanentError
from lambdas.core.incident import Incident
from lambdas.core.policy import Mode

NOW = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)


def clock() -> dt.datetime:
    return NOW


def incident(instance_id: str = "i-0123456789abcdef0") -> Incident:
    return Incident(
        instance_id=instance_id,
        cluster="gpu-prod",
        instance_type="g5.2xlarge",
        zone="eu-west-1a",
        mode=Mode.ACT,
        noticed_at=NOW,
        taken_at=NOW + dt.timedelta(seconds=120),
    )


# EC2


def run_instances(client: Any, number: int) -> list[str]:
    tags = [{"Key": "eks:cluster-name", "Value": "gpu-prod"}]
    answer = client.run_instances(
        ImageId="ami-12345678",
        InstanceType="g5.2xlarge",
        MinCount=number,
        MaxCount=number,
        Placement={"AvailabilityZone": "eu-west-1b"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    return [one["InstanceId"] for one in answer["Instances"]]


def test_instances_are_found_and_unknown_ones_left_out(aws: boto3.Session) -> None:
    client = aws.client("ec2")
    (known,) = run_instances(client, 1)
    found = Ec2(client).instances({known, "i-00000000000000000"})
    assert set(found) == {known}
    assert found[known].instance_type == "g5.2xlarge"
    assert found[known].zone == "eu-west-1b"
    assert found[known].tags["eks:cluster-name"] == "gpu-prod"


def test_more_instances_than_one_filter_takes(aws: boto3.Session) -> None:
    client = aws.client("ec2")
    known = run_instances(client, 250)
    assert set(Ec2(client).instances(known)) == set(known)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnauthorizedOperation", PermanentError),
        ("RequestLimitExceeded", PassingError),
        ("InternalError", PassingError),
    ],
)
def test_errors_of_ec2(aws: boto3.Session, code: str, kind: type[Exception]) -> None:
    client = aws.client("ec2")
    with Stubber(client) as stub:
        stub.add_client_error("describe_instances", code)
        with pytest.raises(kind, match=code):
            Ec2(client).instances({"i-00000000000000000"})


# EKS


def eks_adapter(aws: boto3.Session) -> Eks:
    return Eks(aws.client("eks"), aws.client("sts"), clock)


def described(aws: boto3.Session, ca: bytes) -> Connection:
    client = aws.client("eks")
    answer = {
        "status": "ACTIVE",
        "endpoint": "https://cluster",
        "certificateAuthority": {"data": base64.b64encode(ca).decode()},
    }
    with Stubber(client) as stub:
        stub.add_response("describe_cluster", {"cluster": answer})
        return Eks(client, aws.client("sts"), clock).connection("gpu-prod")


def test_the_connection_of_a_cluster(aws: boto3.Session) -> None:
    expected = Connection(endpoint="https://cluster", ca_pem="-----BEGIN CERTIFICATE-----")
    assert described(aws, b"-----BEGIN CERTIFICATE-----") == expected


def test_a_certificate_that_is_none_is_a_permanent_error(aws: boto3.Session) -> None:
    with pytest.raises(PermanentError, match=r"gpu-prod: certificateAuthority\.data"):
        described(aws, b"\xe5")


def test_a_cluster_that_does_not_exist_is_a_permanent_error(aws: boto3.Session) -> None:
    with pytest.raises(PermanentError, match="cluster gpu-prod of the policy"):
        eks_adapter(aws).connection("gpu-prod")


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ({"status": "CREATING"}, "no endpoint yet .status CREATING"),
        ({"status": "ACTIVE", "endpoint": "https://x"}, "no endpoint yet"),
        ({}, "no endpoint yet .status unknown"),
    ],
)
def test_a_cluster_without_an_endpoint_is_tried_again(
    aws: boto3.Session, answer: dict[str, str], part: str
) -> None:
    client = aws.client("eks")
    eks = Eks(client, aws.client("sts"), clock)
    with Stubber(client) as stub:
        stub.add_response("describe_cluster", {"cluster": answer})
        with pytest.raises(PassingError, match=part):
            eks.connection("gpu-prod")


@pytest.mark.parametrize(
    ("code", "kind"),
    [("AccessDeniedException", PermanentError), ("ThrottlingException", PassingError)],
)
def test_errors_of_eks(aws: boto3.Session, code: str, kind: type[Exception]) -> None:
    client = aws.client("eks")
    eks = Eks(client, aws.client("sts"), clock)
    with Stubber(client) as stub:
        stub.add_client_error("describe_cluster", code)
        with pytest.raises(kind, match=code):
            eks.connection("gpu-prod")


def test_the_token_is_a_presigned_question_of_who_we_are(aws: boto3.Session) -> None:
    token = eks_adapter(aws).token("gpu-prod")
    prefix, _, encoded = token.partition(".")
    assert prefix == "k8s-aws-v1"
    assert "=" not in encoded
    url = base64.urlsafe_b64decode(encoded + "==").decode()
    parts = urllib.parse.urlsplit(url)
    query = urllib.parse.parse_qs(parts.query)
    assert parts.hostname == "sts.eu-west-1.amazonaws.com"
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Expires"] == ["60"]
    assert "ClusterName" not in query


def test_tokens_are_kept_until_shortly_before_they_end(aws: boto3.Session) -> None:
    now = NOW
    eks = Eks(aws.client("eks"), aws.client("sts"), lambda: now)
    signed: list[str] = []
    aws_events = eks._sts.meta.events
    aws_events.register("before-sign.sts", lambda **_: signed.append("signed"))
    first = eks.token("gpu-prod")
    now = NOW + dt.timedelta(minutes=12, seconds=59)
    assert eks.token("gpu-prod") == first
    assert len(signed) == 1
    eks.token("gpu-test")
    assert len(signed) == 2
    now = NOW + dt.timedelta(minutes=13)
    eks.token("gpu-prod")
    assert len(signed) == 3


# Ledger


@pytest.fixture
def ledger(aws: boto3.Session) -> Ledger:
    client = aws.client("dynamodb")
    client.create_table(
        TableName="ledger",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return Ledger(client, "ledger")


def test_an_incident_comes_back_as_it_was_written(ledger: Ledger) -> None:
    assert ledger.records({"i-0123456789abcdef0"}) == {}
    written = ledger.write(incident())
    assert written.version == 1
    assert ledger.records({"i-0123456789abcdef0", "i-other"}) == {
        "i-0123456789abcdef0": Record(version=1, incident=written)
    }


@pytest.mark.parametrize("text", ["", "{}", "garbage", '{"instance_id": 7}'])
def test_a_record_of_a_form_we_do_not_know_can_be_written_over(
    aws: boto3.Session, ledger: Ledger, text: str
) -> None:
    item = {
        "pk": {"S": "interruption#i-0123456789abcdef0"},
        "version": {"N": "3"},
        "incident": {"S": text},
    }
    aws.client("dynamodb").put_item(TableName="ledger", Item=item)
    found = ledger.records({"i-0123456789abcdef0"})["i-0123456789abcdef0"]
    assert found == Record(version=3, incident=None)
    assert ledger.write(msgspec.structs.replace(incident(), version=3)).version == 4


def test_of_two_writers_one_wins(ledger: Ledger) -> None:
    first = ledger.write(incident())
    with pytest.raises(ConflictError, match="another function wrote first"):
        ledger.write(incident())
    second = ledger.write(msgspec.structs.replace(first, thread="1.2"))
    with pytest.raises(ConflictError):
        ledger.write(first)
    assert second.version == 2


def test_items_end_by_themselves(aws: boto3.Session, ledger: Ledger) -> None:
    ledger.write(incident())
    key = {"pk": {"S": "interruption#i-0123456789abcdef0"}}
    item = aws.client("dynamodb").get_item(TableName="ledger", Key=key)["Item"]
    assert int(item["expires"]["N"]) == int(NOW.timestamp()) + 120 + 90 * 86_400


def test_a_ledger_that_does_not_answer_is_a_passing_error(aws: boto3.Session) -> None:
    client = aws.client("dynamodb")
    nowhere = Ledger(client, "no-such-table")
    with pytest.raises(PassingError, match="no-such-table"):
        nowhere.records({"i-1"})
    with pytest.raises(PassingError, match="no-such-table"):
        nowhere.write(incident())


# Inbox


class Queues(msgspec.Struct):
    client: Any
    inbox: Inbox
    url: str
    dead: str


@pytest.fixture
def queues(aws: boto3.Session) -> Queues:
    client = aws.client("sqs")
    url = client.create_queue(QueueName="inbox", Attributes={"VisibilityTimeout": "90"})["QueueUrl"]
    dead = client.create_queue(QueueName="dead")["QueueUrl"]
    return Queues(client=client, inbox=Inbox(client, url, dead), url=url, dead=dead)


def count(queues: Queues, url: str, name: str) -> int:
    attributes = queues.client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return int(attributes["Attributes"][name])


def test_a_continuation_arrives_later(queues: Queues) -> None:
    queues.inbox.send_later("body", dt.timedelta(seconds=5))
    assert count(queues, queues.url, "ApproximateNumberOfMessagesDelayed") == 1


def test_a_buried_body_keeps_its_reason(queues: Queues) -> None:
    queues.inbox.bury("rubbish", "no event: " + "x" * 1000)
    (message,) = queues.client.receive_message(QueueUrl=queues.dead, MessageAttributeNames=["All"])[
        "Messages"
    ]
    assert message["Body"] == "rubbish"
    assert message["MessageAttributes"]["reason"]["StringValue"].startswith("no event: xxx")


def test_a_failed_message_comes_back_when_asked(queues: Queues) -> None:
    queues.client.send_message(QueueUrl=queues.url, MessageBody="body")
    (message,) = queues.client.receive_message(QueueUrl=queues.url)["Messages"]
    assert "Messages" not in queues.client.receive_message(QueueUrl=queues.url)
    letter = Letter(message_id="1", receipt=message["ReceiptHandle"], body="body")
    queues.inbox.again_in(letter, dt.timedelta(0))
    assert queues.client.receive_message(QueueUrl=queues.url)["Messages"]


def test_a_queue_that_is_gone_is_a_passing_error(queues: Queues) -> None:
    queues.client.delete_queue(QueueUrl=queues.url)
    with pytest.raises(PassingError, match="inbox"):
        queues.inbox.send_later("body", dt.timedelta(seconds=5))


def test_letters_are_read_from_the_event_of_the_poller() -> None:
    record = {
        "messageId": "m-1",
        "receiptHandle": "r-1",
        "body": "{}",
        "attributes": {"ApproximateReceiveCount": "3"},
    }
    assert letters({"Records": [record]}) == (
        Letter(message_id="m-1", receipt="r-1", body="{}", receives=3),
    )


# Secrets Manager


@pytest.mark.parametrize("value", ["xoxb-1-2-3", "  xoxb-1-2-3\n"])
def test_the_bot_token_is_read(aws: boto3.Session, value: str) -> None:
    client = aws.client("secretsmanager")
    client.create_secret(Name="slack", SecretString=value)
    assert read_slack_token(client, "slack") == "xoxb-1-2-3"


@pytest.mark.parametrize("value", ["hunter2", '{"token": "xoxb-1"}', "xoxb-1\nX-Evil: 1"])
def test_a_secret_without_a_bot_token_says_what_to_put_there(
    aws: boto3.Session, value: str
) -> None:
    client = aws.client("secretsmanager")
    client.create_secret(Name="slack", SecretString=value)
    with pytest.raises(PermanentError, match=r"slack holds no bot token \(xoxb-…\)") as error:
        read_slack_token(client, "slack")
    assert value not in str(error.value)


def test_a_secret_that_is_not_there_is_a_permanent_error(aws: boto3.Session) -> None:
    with pytest.raises(PermanentError, match="slack"):
        read_slack_token(aws.client("secretsmanager"), "slack")


class Unreachable:
    """A client whose calls never get through."""

    def __getattr__(self, operation: str) -> Any:
        raise ConnectTimeoutError(endpoint_url=f"https://aws/{operation}")


def test_a_secret_out_of_reach_is_a_passing_error() -> None:
    with pytest.raises(PassingError, match="timeout"):
        read_slack_token(Unreachable(), "slack")


def test_a_cluster_out_of_reach_is_a_passing_error(aws: boto3.Session) -> None:
    with pytest.raises(PassingError, match="timeout"):
        Eks(Unreachable(), aws.client("sts"), clock).connection("gpu-prod")
