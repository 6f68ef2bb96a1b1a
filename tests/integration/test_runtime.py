"""The composition and the handler, as Lambda starts them."""

import datetime as dt
import json
import pathlib
from typing import Any

import boto3
import msgspec
import pytest

from lambdas import interruptions, runtime
from lambdas.adapters.eks import Connection, Eks
from lambdas.core.policy import Cluster, Policy, Pool, Slack

ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "SHIFTWRIGHT_LEDGER_TABLE": "ledger",
    "SHIFTWRIGHT_SLACK_SECRET": "slack",
}


class Context:
    """What Lambda tells a function about its invocation."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@pytest.fixture
def environment(
    aws: boto3.Session, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> dict[str, str]:
    policy = Policy(
        slack=Slack(channel="#gpu-ops", api_url="http://127.0.0.1:9/api/"),
        clusters={
            "gpu-prod": Cluster(
                region="eu-west-1",
                pools={"gpu": Pool(spot="gpu-spot", on_demand="gpu-on-demand")},
            )
        },
    )
    (tmp_path / "policy.json").write_bytes(msgspec.json.encode(policy))
    sqs = aws.client("sqs")
    variables = {
        **ENVIRONMENT,
        "LAMBDA_TASK_ROOT": str(tmp_path),
        "SHIFTWRIGHT_INBOX_URL": sqs.create_queue(QueueName="inbox")["QueueUrl"],
        "SHIFTWRIGHT_DEAD_LETTER_URL": sqs.create_queue(QueueName="dead")["QueueUrl"],
        "POWERTOOLS_METRICS_NAMESPACE": "Shiftwright",
        "POWERTOOLS_SERVICE_NAME": "interruptions",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def event(body: str) -> dict[str, Any]:
    record = {
        "messageId": "m-1",
        "receiptHandle": "r-1",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
    }
    return {"Records": [record]}


@pytest.mark.usefixtures("environment")
def test_the_handler_acknowledges_and_counts_an_unknown_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runtime.runtime.cache_clear()
    body = json.dumps({"source": "aws.ec2", "detail-type": "Something", "detail": {}})
    assert interruptions.handler(event(body), Context()) == {"batchItemFailures": []}
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert [one["UnknownEvents"] for one in metrics] == [[1.0]]


@pytest.mark.usefixtures("environment")
def test_the_handler_names_what_is_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIFTWRIGHT_DEAD_LETTER_URL", "https://sqs/gone")
    runtime.runtime.cache_clear()
    answer = interruptions.handler(event("rubbish"), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    runtime.runtime.cache_clear()


@pytest.mark.parametrize(
    "name", ["AWS_REGION", "SHIFTWRIGHT_INBOX_URL", "SHIFTWRIGHT_LEDGER_TABLE", "LAMBDA_TASK_ROOT"]
)
def test_a_missing_setting_is_named(environment: dict[str, str], name: str) -> None:
    settings = {**ENVIRONMENT, **environment}
    del settings[name]
    with pytest.raises(KeyError, match=name):
        runtime.Settings.from_environment(settings)


def test_connections_are_kept_for_a_while(
    aws: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)
    monkeypatch.setattr(runtime, "utc_now", lambda: now)
    eks = Eks(aws.client("eks"), aws.client("sts"), lambda: now)
    found = Connection(endpoint="https://127.0.0.1:9", ca_pem="")
    monkeypatch.setattr(eks, "connection", {"gpu-prod": found}.__getitem__)
    clusters = runtime.Clusters(eks)
    first = clusters.connect("gpu-prod")
    assert clusters.connect("gpu-prod") is first
    now += dt.timedelta(minutes=16)
    assert clusters.connect("gpu-prod") is not first
