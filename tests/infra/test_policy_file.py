"""The policy file: what is accepted, and every way in which it can be wrong."""

from pathlib import Path

import pytest

from infra.policy_file import PolicyError, load
from lambdas.core.policy import Endpoint, Mode

GOOD = """\
slack:
  channel: C0123456789
clusters:
  gpu:
    region: eu-west-1
    pools:
      a100:
        spot: gpu-spot
        onDemand: gpu-on-demand
    workloads:
      chat:
        namespace: inference
        pool: a100
        spot: chat-spot
        onDemand: chat-on-demand
        replicas: 6
"""
VPC = """\
vpc:
  id: vpc-0123456789abcdef0
  subnets: [subnet-0123456789abcdef0]
  securityGroups: [sg-0123456789abcdef0]
"""


def said_of(text: str | bytes, directory: Path) -> list[str]:
    """What is said of a file with this content, without the file's own name."""
    file = directory / "policy.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(PolicyError) as caught:
        load(file)
    return [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]


def edited(old: str, new: str) -> str:
    """The good policy with one change."""
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def test_good_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("\ufeff" + GOOD)
    policy = load(file)
    assert policy.interruptions.mode is Mode.OBSERVE
    assert policy.clusters["gpu"].endpoint is Endpoint.PUBLIC
    assert policy.clusters["gpu"].workloads["chat"].replicas == 6


AT_CHAT = "clusters.gpu.workloads.chat"
QUOTE = "put it in quotes"
WHOLE = "a whole number, 0 to 10000"
YES_NO = "(YAML reads on, off, yes and no as true or false)"
KUBERNETES_NAME = "a Kubernetes name (lower-case letters, digits, '-' and '.'), 1 to 253 characters"
VALUES = [
    (
        "replicas: 6",
        'replicas: "6"',
        f"16: {AT_CHAT}.replicas: found the text '6'; expected {WHOLE}",
    ),
    (
        "replicas: 6",
        "replicas: 6.0",
        f"16: {AT_CHAT}.replicas: found the number 6.0; expected {WHOLE}",
    ),
    (
        "replicas: 6",
        "replicas: -1",
        f"16: {AT_CHAT}.replicas: found the number -1; expected {WHOLE}",
    ),
    (
        "replicas: 6",
        "replicas: yes",
        f"16: {AT_CHAT}.replicas: found true {YES_NO}; expected {WHOLE}",
    ),
    (
        "replicas: 6",
        "replicas: .nan",
        f"16: {AT_CHAT}.replicas: found .nan; expected a finite number",
    ),
    (
        "replicas: 6",
        "replicas: 1:30",
        f"16: {AT_CHAT}.replicas: found '1:30', which YAML reads as 90; expected a plain number",
    ),
    (
        "replicas: 6",
        "replicas: " + "9" * 5000,
        f"16: {AT_CHAT}.replicas: found '{'9' * 60}…' as YAML's int; expected a valid int",
    ),
    (
        "replicas: 6",
        "replicas:",
        f"16: {AT_CHAT}.replicas: found nothing (after an unquoted # YAML sees a comment); "
        f"expected {WHOLE}",
    ),
    (
        "replicas: 6",
        "replicas: [6]",
        f"16: {AT_CHAT}.replicas: found a list of 1; expected {WHOLE}",
    ),
    (
        "        replicas: 6\n",
        "",
        f"11: {AT_CHAT}.replicas: found nothing; expected replicas: Both Deployments together",
    ),
    (
        "replicas: 6",
        "replica: 6\n        replicas: 6",
        f"16: {AT_CHAT}.replica: found an unknown key; expected replicas (did you mean that?)",
    ),
    (
        "replicas: 6",
        "on_demand_base: 1\n        replicas: 6",
        f"16: {AT_CHAT}.on_demand_base: found an unknown key; "
        "expected onDemandBase (did you mean that?)",
    ),
    (
        "replicas: 6",
        "replicas: 6\n        replicas: 7",
        f"16: {AT_CHAT}.replicas: found replicas again, on line 17; expected it once",
    ),
    (
        "replicas: 6",
        "replicas: 6\n        7: x",
        f"17: {AT_CHAT}.7: found the key '7'; expected text; put it in quotes",
    ),
    (
        "replicas: 6",
        "replicas: 6\n        ? [a]\n        : x",
        f"17: {AT_CHAT}.a collection: found the key 'a collection'; expected text; {QUOTE}",
    ),
    (
        "spot: chat-spot",
        "spot: 2024-01-01",
        f"14: {AT_CHAT}.spot: found '2024-01-01' (YAML's timestamp); expected text; {QUOTE}",
    ),
    (
        "spot: chat-spot",
        "spot: !!python/name:os.system x",
        f"14: {AT_CHAT}.spot: found 'x' (YAML's python/name:os.system); "
        "expected text, a number or true/false",
    ),
    (
        "spot: chat-spot",
        'spot: "chat-spot\\n"',
        f"14: {AT_CHAT}.spot: found 'chat-spot\\n'; "
        "expected text on one line, without control characters",
    ),
    (
        "spot: chat-spot",
        "spot: Chat_Spot",
        f"14: {AT_CHAT}.spot: found the text 'Chat_Spot'; expected {KUBERNETES_NAME}",
    ),
    (
        "      a100:",
        "      A100:",
        f"7: clusters.gpu.pools.A100: found the key 'A100'; expected {KUBERNETES_NAME}",
    ),
    (
        "region: eu-west-1",
        "region: Ireland",
        "5: clusters.gpu.region: found the text 'Ireland'; "
        "expected an AWS region, such as eu-west-1",
    ),
    (
        "region: eu-west-1",
        "region: eu-west-1\n    endpoint: privat",
        "6: clusters.gpu.endpoint: found the text 'privat'; expected private or public",
    ),
    (
        "channel: C0123456789",
        "channel: #gpu-ops",
        "2: slack.channel: found nothing (after an unquoted # YAML sees a comment); "
        'expected a channel id (C0123456789) or a quoted name ("#gpu-ops")',
    ),
    (
        "channel: C0123456789",
        "channel: C0123456789\n  apiUrl: http://slack.example/api/",
        "3: slack.apiUrl: found the text 'http://slack.example/api/'; "
        "expected an https:// address that ends in /",
    ),
]
CROSS = [
    (
        "pool: a100",
        "pool: h100",
        f"13: {AT_CHAT}.pool: found h100; expected one of the pools: a100",
    ),
    (
        "replicas: 6",
        "replicas: 6\n        onDemandBase: 7",
        f"17: {AT_CHAT}.onDemandBase: found 7; expected at most replicas (6)",
    ),
    (
        "onDemand: chat-on-demand",
        "onDemand: chat-spot",
        f"15: {AT_CHAT}.onDemand: found chat-spot; "
        "expected a Deployment that is not already workloads.chat.spot",
    ),
    (
        "onDemand: gpu-on-demand",
        "onDemand: gpu-spot",
        "9: clusters.gpu.pools.a100.onDemand: found gpu-spot; "
        "expected a NodePool that is not already pools.a100.spot",
    ),
    (
        "region: eu-west-1",
        "region: eu-west-1\n    endpoint: private",
        "6: clusters.gpu.endpoint: found private; "
        "expected a top-level vpc for the functions to join",
    ),
    (
        "        replicas: 6\n",
        "        replicas: 6\n" + VPC,
        "17: vpc: found vpc-0123456789abcdef0; expected a cluster with endpoint: private to reach",
    ),
]


@pytest.mark.parametrize(("old", "new", "said"), VALUES + CROSS)
def test_one_error(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert said_of(edited(old, new), tmp_path) == [said]


FILES = [
    ("", "1: found an empty file; expected the policy; see shiftwright.yaml"),
    ("# nothing yet\n", "1: found an empty file; expected the policy; see shiftwright.yaml"),
    ("- a\n", "1: found a list of 1; expected a section of keys"),
    ("just words", "1: found the text 'just words'; expected a section of keys"),
    (b"slack:\n  channel: \xff", "2: found the byte 0xff; expected text in UTF-8"),
    ("x" * (1024 * 1024 + 1), "1: found a file of more than 1 MiB; expected a policy"),
    (
        "a: &a [x]\nb: *a\n",
        "2: found the alias *a; expected the value itself, written out",
    ),
    ("[" * 1000, "1: found more than 32 levels; expected a policy, which has seven"),
]


@pytest.mark.parametrize(("text", "said"), FILES)
def test_hopeless_files(text: str | bytes, said: str, tmp_path: Path) -> None:
    assert said_of(text, tmp_path) == [said]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("slack: {channel: C0123456789\nclusters: {}\n", 2),
        ("slack:\n\tchannel: x\n", 2),
        ("slack: x\n---\nslack: y\n", 2),
        ("slack: 'open\n", 2),
        ("slack: \x01\n", 1),
        ("%YAML 9.9\n---\na: 1\n", 1),
    ],
)
def test_broken_yaml_names_its_line(text: str, line: int, tmp_path: Path) -> None:
    (said,) = said_of(text, tmp_path)
    assert said.startswith(f"{line}: found broken YAML ("), said
    assert said.endswith("; expected one YAML document")


def test_all_errors_at_once_in_the_files_order(tmp_path: Path) -> None:
    text = GOOD.replace("channel: C0123456789", "chanel: x").replace("eu-west-1", "Ireland")
    text = text.replace("pool: a100", "pool: 7").replace("replicas: 6", "replicas: many")
    said = said_of(text + "vpc: {id: vpc-1, subnets: [], securityGroups: [sg-1]}\n", tmp_path)
    assert [line.partition(": found ")[0] for line in said] == [
        "1: slack.channel",
        "2: slack.chanel",
        "5: clusters.gpu.region",
        f"13: {AT_CHAT}.pool",
        f"16: {AT_CHAT}.replicas",
        "17: vpc.id",
        "17: vpc.subnets",
        "17: vpc.securityGroups[0]",
    ]


def test_private_clusters_of_two_regions_cannot_share_a_vpc(tmp_path: Path) -> None:
    private = edited("region: eu-west-1", "region: eu-west-1\n    endpoint: private")
    other = "  far:\n    region: us-east-1\n    endpoint: private\n    pools: {}\n"
    assert said_of(private + other + VPC, tmp_path) == [
        "20: clusters.far.endpoint: found private, in us-east-1; "
        "expected private clusters in one region only (eu-west-1), where the vpc is"
    ]


def test_a_flood_of_errors_is_cut(tmp_path: Path) -> None:
    said = said_of(GOOD + "".join(f"x{i}: 1\n" for i in range(60)), tmp_path)
    assert len(said) == 51
    assert said[-1].endswith("and 10 more")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none\.yaml: found no such file; expected the policy"):
        load(tmp_path / "none.yaml")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"cannot be read \(Is a directory\)"):
        load(tmp_path)


def test_names_with_dots_and_odd_characters_stay_apart(tmp_path: Path) -> None:
    text = edited("      chat:", '      "a.b":').replace("replicas: 6", 'replicas: "6"')
    (said,) = said_of(text, tmp_path)
    assert said.startswith("16: clusters.gpu.workloads['a.b'].replicas: found")
