"""The AWS stand-in as a process: it starts, leads to our cluster, fails clearly, leaves nothing."""

import base64
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.aws import stand_in as aws_module
from local.aws.stand_in import Aws, AwsError, deploy

ROOT = Path(__file__).parents[2]
# Starts the stand-in, says its process and directory, and never stops it.
ABANDON = """
import sys
from local.aws.stand_in import Aws
aws = Aws(kubernetes_port=6443, ca_pem="PEM")
aws.start()
print(aws._process.pid, aws.directory, flush=True)
sys.stdin.read()
"""


def client(aws: Aws, service: str) -> Any:
    environment = aws.environment()
    return boto3.client(  # type: ignore[call-overload]
        service,
        region_name=aws.region,
        endpoint_url=aws.url,
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )


def wait_until(true: Callable[[], bool], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.02)


def group_is_gone(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    aws = Aws(kubernetes_port=6443, ca_pem="PEM")
    aws.start()
    yield aws
    aws.stop()


def test_clusters_lead_to_the_kubernetes_stand_in(aws: Aws) -> None:
    eks = client(aws, "eks")
    role = "arn:aws:iam::000000000000:role/eks-cluster"
    eks.create_cluster(name="gpu", roleArn=role, resourcesVpcConfig={"subnetIds": ["subnet-1"]})
    cluster = eks.describe_cluster(name="gpu")["cluster"]
    assert cluster["endpoint"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificateAuthority"]["data"]) == b"PEM"


def test_nothing_of_a_real_account_reaches_a_command(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "123456789012")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    environment = aws.environment()
    unwanted = {"AWS_PROFILE", "AWS_SESSION_TOKEN", "CDK_DEFAULT_ACCOUNT", "https_proxy"}
    assert not unwanted & set(environment)
    assert environment["AWS_CONFIG_FILE"] == os.devnull


def test_a_wrong_policy_is_told_as_it_is(aws: Aws, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("slack: {}\n")
    heard: list[str] = []
    with pytest.raises(AwsError, match=r"cdk deploy failed with status 1:") as caught:
        deploy(aws, policy, heard.append)
    assert "slack.channel: found nothing" in str(caught.value)
    assert any("slack.channel: found nothing" in line for line in heard)


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AwsError, match=f"Port {port} on 127.0.0.1 is taken"):
            Aws(kubernetes_port=1, ca_pem="PEM", port=port).start()


def test_an_early_end_shows_its_last_words() -> None:
    aws = Aws(kubernetes_port=1, ca_pem="PEM")
    aws._kubernetes.clear()
    with pytest.raises(AwsError, match=r"ended with status 1:(.|\n)*KeyError: .SHIFTWRIGHT_"):
        aws.start()
    assert not aws.directory.exists()


def test_silence_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_module, "START_SECONDS", 0)
    aws = Aws(kubernetes_port=1, ca_pem="PEM")
    with pytest.raises(AwsError, match=r"did not answer on http://127\.0\.0\.1:"):
        aws.start()
    assert not aws.directory.exists()


def test_stop_leaves_nothing_and_may_be_called_twice() -> None:
    aws = Aws(kubernetes_port=1, ca_pem="PEM")
    aws.start()
    assert aws._process is not None
    leader = aws._process.pid
    aws.stop()
    aws.stop()
    assert group_is_gone(leader)
    assert not aws.directory.exists()


def test_a_killed_run_leaves_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ABANDON],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        leader, directory = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    wait_until(lambda: group_is_gone(int(leader)))
    assert not Path(directory).exists()
