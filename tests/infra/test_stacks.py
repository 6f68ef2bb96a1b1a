"""The stacks: what CloudFormation is asked for, and what the function may do."""

import filecmp
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from infra.policy_file import load
from infra.stacks import add_stacks

ROOT = Path(__file__).parents[2]
POLICY = """\
slack: {channel: C0123456789}
clusters:
  gpu_one:
    region: eu-west-1
    endpoint: private
    pools: {}
  gpu-two:
    region: eu-west-1
    pools: {}
  far:
    region: us-east-1
    pools: {}
vpc:
  id: vpc-0123456789abcdef0
  subnets: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]
  securityGroups: [sg-0123456789abcdef0]
"""

Resource = dict[str, Any]


def synthesise(directory: Path, name: str) -> Path:
    """A cloud assembly of the policy. cdk-nag's findings, if any, are an error here."""
    asset = directory / "0123456789abcdef"
    (asset / "lambdas").mkdir(parents=True, exist_ok=True)
    (asset / "lambdas" / "interruptions.py").write_text("")
    policy = directory / "policy.yaml"
    policy.write_text(POLICY)
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(
        outdir=str(directory / name),
        context=context,
        analytics_reporting=False,
        tree_metadata=False,
        stack_traces=False,
    )
    add_stacks(app, load(policy), asset)
    app.synth()
    return directory / name


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stacks")


@pytest.fixture(scope="module")
def assembly(directory: Path) -> Path:
    return synthesise(directory, "first")


def resources(assembly: Path, stack: str) -> dict[str, Resource]:
    template = json.loads((assembly / f"{stack}.template.json").read_text())
    found: dict[str, Resource] = template["Resources"]
    return found


@pytest.fixture(scope="module")
def private(assembly: Path) -> dict[str, Resource]:
    """The region with a private cluster."""
    return resources(assembly, "Shiftwright-eu-west-1")


@pytest.fixture(scope="module")
def public(assembly: Path) -> dict[str, Resource]:
    """The region without one."""
    return resources(assembly, "Shiftwright-us-east-1")


def of_type(stack: dict[str, Resource], kind: str) -> dict[str, Resource]:
    return {name: r["Properties"] for name, r in stack.items() if r["Type"] == kind}


def only(stack: dict[str, Resource], kind: str) -> Resource:
    (found,) = of_type(stack, kind).values()
    return found


def queues(stack: dict[str, Resource]) -> tuple[Resource, Resource, str]:
    """The inbox, the dead letters, and the logical id of the dead letters."""
    found = of_type(stack, "AWS::SQS::Queue")
    (name,) = [n for n, q in found.items() if "RedriveAllowPolicy" in q]
    dead = found.pop(name)
    (inbox,) = found.values()
    return inbox, dead, name


def statements(stack: dict[str, Resource]) -> Iterator[tuple[str, list[str], list[Any]]]:
    """Each statement of the function's role: effect, actions, resources."""
    for statement in only(stack, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]:
        actions, where = statement["Action"], statement["Resource"]
        yield (
            statement["Effect"],
            actions if isinstance(actions, list) else [actions],
            where if isinstance(where, list) else [where],
        )


def test_one_stack_a_region_and_one_access_stack_a_cluster(assembly: Path) -> None:
    assert sorted(path.name.split(".")[0] for path in assembly.glob("*.template.json")) == [
        "Shiftwright-eu-west-1",
        "Shiftwright-us-east-1",
        "ShiftwrightAccess-far",
        "ShiftwrightAccess-gpu-one",
        "ShiftwrightAccess-gpu-two",
    ]


def test_the_same_templates_every_time(assembly: Path, directory: Path) -> None:
    again = synthesise(directory, "again")
    names = sorted(path.name for path in assembly.iterdir() if path.is_file())
    same, different, missing = filecmp.cmpfiles(assembly, again, names, shallow=False)
    assert (different, missing) == ([], [])
    assert len(same) == len(names)


def test_events_reach_the_inbox_real_and_replayed(public: dict[str, Resource]) -> None:
    rule = only(public, "AWS::Events::Rule")
    assert rule["EventPattern"] == {
        "source": ["aws.ec2", "shiftwright.replay"],
        "detail-type": ["EC2 Spot Instance Interruption Warning"],
    }
    (target,) = rule["Targets"]
    _, _, dead_id = queues(public)
    assert target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"] == [dead_id, "Arn"]


def test_the_inbox_retries_and_then_sets_aside(public: dict[str, Resource]) -> None:
    inbox, dead, dead_id = queues(public)
    assert inbox["RedrivePolicy"] == {
        "maxReceiveCount": 8,
        "deadLetterTargetArn": {"Fn::GetAtt": [dead_id, "Arn"]},
    }
    function = only(public, "AWS::Lambda::Function")
    assert inbox["VisibilityTimeout"] > function["Timeout"]
    assert dead["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert dead["RedriveAllowPolicy"]["redrivePermission"] == "byQueue"
    (source,) = dead["RedriveAllowPolicy"]["sourceQueueArns"]
    assert source["Fn::Join"][1][-1] == f":{inbox['QueueName']}"


def test_queues_are_encrypted_and_refuse_plain_http(public: dict[str, Resource]) -> None:
    inbox, dead, _ = queues(public)
    assert inbox["SqsManagedSseEnabled"] is dead["SqsManagedSseEnabled"] is True
    policies = of_type(public, "AWS::SQS::QueuePolicy").values()
    assert len(policies) == 2
    for policy in policies:
        denied = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
        assert [s["Condition"] for s in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


def test_the_function_takes_batches_and_fails_message_by_message(
    public: dict[str, Resource],
) -> None:
    source = only(public, "AWS::Lambda::EventSourceMapping")
    assert source["BatchSize"] == 10
    # With a window, Lambda may wait 20 s for a quiet queue.
    assert "MaximumBatchingWindowInSeconds" not in source
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["ScalingConfig"] == {"MaximumConcurrency": 5}


def test_the_function(public: dict[str, Resource]) -> None:
    function = only(public, "AWS::Lambda::Function")
    assert function["Runtime"] == "python3.14"
    assert function["Architectures"] == ["arm64"]
    assert function["Handler"] == "lambdas.interruptions.handler"
    assert (function["Timeout"], function["MemorySize"]) == (60, 512)
    assert set(function["Environment"]["Variables"]) == {
        "SHIFTWRIGHT_LEDGER_TABLE",
        "SHIFTWRIGHT_INBOX_URL",
        "SHIFTWRIGHT_DEAD_LETTER_URL",
        "SHIFTWRIGHT_SLACK_SECRET",
        "POWERTOOLS_SERVICE_NAME",
        "POWERTOOLS_METRICS_NAMESPACE",
        "POWERTOOLS_LOG_LEVEL",
    }
    logs = only(public, "AWS::Logs::LogGroup")
    assert logs["RetentionInDays"] == 30
    assert logs["LogGroupName"] == f"/aws/lambda/{function['FunctionName']}"


def test_the_ledger_forgets_and_can_be_restored(public: dict[str, Resource]) -> None:
    table = only(public, "AWS::DynamoDB::GlobalTable")
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    (replica,) = table["Replicas"]
    assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_the_role_may_do_this_and_no_more(public: dict[str, Resource]) -> None:
    allowed = {action for _, actions, _ in statements(public) for action in actions}
    assert allowed == {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "ec2:DescribeInstances",
        "eks:DescribeCluster",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "secretsmanager:GetSecretValue",
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:GetQueueUrl",
        "sqs:ReceiveMessage",
        "sqs:SendMessage",
    }
    assert "ManagedPolicyArns" not in only(public, "AWS::IAM::Role")


def test_only_what_takes_no_resource_has_a_wildcard(
    public: dict[str, Resource], private: dict[str, Resource]
) -> None:
    def wild(stack: dict[str, Resource]) -> set[str]:
        return {
            action
            for effect, actions, where in statements(stack)
            for action in actions
            if effect == "Allow" and "*" in where
        }

    assert wild(public) == {"ec2:DescribeInstances"}
    assert wild(private) == {
        "ec2:DescribeInstances",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
    }


def test_each_region_knows_its_own_clusters(
    public: dict[str, Resource], private: dict[str, Resource]
) -> None:
    def clusters(stack: dict[str, Resource]) -> list[str]:
        (where,) = [w for _, actions, w in statements(stack) if "eks:DescribeCluster" in actions]
        return sorted(arn["Fn::Join"][1][-1].rpartition("/")[2] for arn in where)

    assert clusters(public) == ["far"]
    assert clusters(private) == ["gpu-two", "gpu_one"]


def test_only_the_region_of_a_private_cluster_joins_the_vpc(
    public: dict[str, Resource], private: dict[str, Resource]
) -> None:
    assert "VpcConfig" not in only(public, "AWS::Lambda::Function")
    assert only(private, "AWS::Lambda::Function")["VpcConfig"] == {
        "SubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        "SecurityGroupIds": ["sg-0123456789abcdef0"],
    }


def test_only_a_function_in_a_vpc_is_kept_awake(
    public: dict[str, Resource], private: dict[str, Resource]
) -> None:
    def schedules(resources: dict[str, Resource]) -> list[str]:
        rules = of_type(resources, "AWS::Events::Rule").values()
        return [rule["ScheduleExpression"] for rule in rules if "ScheduleExpression" in rule]

    assert schedules(public) == []
    assert schedules(private) == ["rate(1 day)"]


def test_the_functions_code_cannot_use_what_lambda_needs_for_the_vpc(
    private: dict[str, Resource],
) -> None:
    (denied,) = [s for s in statements(private) if s[0] == "Deny"]
    granted = {a for e, actions, _ in statements(private) if e == "Allow" for a in actions}
    assert set(denied[1]) < granted
    assert all(action.startswith("ec2:") for action in denied[1])


def test_alarms(public: dict[str, Resource]) -> None:
    alarms = of_type(public, "AWS::CloudWatch::Alarm").values()
    assert sorted((a["Namespace"], a["MetricName"], a["Threshold"]) for a in alarms) == [
        ("AWS/Lambda", "Errors", 0),
        ("AWS/Lambda", "Throttles", 0),
        ("AWS/SQS", "ApproximateAgeOfOldestMessage", 120),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", 0),
        ("Shiftwright", "Untold", 0),
    ]


def test_access_is_a_group_in_one_cluster(assembly: Path) -> None:
    entry = only(resources(assembly, "ShiftwrightAccess-gpu-one"), "AWS::EKS::AccessEntry")
    assert entry["ClusterName"] == "gpu_one"
    assert entry["KubernetesGroups"] == ["shiftwright"]
    assert "AccessPolicies" not in entry


def test_nothing_is_found_wrong(assembly: Path) -> None:
    report = json.loads((assembly / "validation-report.json").read_text())
    assert [plugin["violations"] for plugin in report["pluginReports"]] == []


def test_an_unacknowledged_finding_fails_synth(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path / "out"))
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    asset = tmp_path / "0123456789abcdef"
    asset.mkdir()
    add_stacks(app, load(policy), asset)
    cdk.aws_sqs.Queue(cdk.Stack(app, "Other"), "Plain")
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()


def test_a_wrong_policy_ends_synth_without_a_traceback(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("slack: {}\n")
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=os.environ | {"CDK_CONTEXT_JSON": json.dumps({"policy": str(policy)})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith(str(policy))]
    assert len(said) == 2
    assert "Traceback" not in done.stderr
