"""The scene, its policy, its notice, and what a person can do with it."""

import datetime as dt
import io
import itertools
import json
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from infra.policy_file import load
from lambdas.core.events import Notice, parse_event
from lambdas.core.policy import Mode
from local import play, scene
from local.checks import figures
from local.clock import SceneClock
from local.console import Console
from local.kubernetes import Delays, Happening, Simulation, Store
from local.narrator import EVENT, moved_to
from local.stage import Stage, _say_what_matters
from local.watch import sightings

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


class FakeEc2:
    """Hands out instance ids, and knows those."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.known: set[str] = set()

    def run_instances(self, **_: Any) -> dict[str, Any]:
        instance = f"i-{next(self._numbers):017x}"
        self.known.add(instance)
        return {"Instances": [{"InstanceId": instance}]}

    def describe_instances(self, *, Filters: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        return {"Reservations": [one for one in Filters[0]["Values"] if one in self.known]}


@pytest.fixture
def stage() -> Stage:
    """A stage with a cluster on it, and nothing else."""
    clock, ec2 = SceneClock(lambda: NOW), FakeEc2()
    store = Store(clock)
    simulation = Simulation(
        store, clock, delays=Delays(), tell=lambda _: None, daemons=scene.DAEMONS
    )
    filled = scene.fill(store, simulation, clock, ec2)
    parts = SimpleNamespace(
        store=store,
        machines=simulation,
        scene=filled,
        clock=clock,
        client=lambda _service: ec2,
        aws=SimpleNamespace(url="http://127.0.0.1:1"),
        slack=SimpleNamespace(url="http://127.0.0.1:2/api/"),
        kubernetes=SimpleNamespace(url="https://127.0.0.1:3", ca_pem="PEM"),
        admin_token="secret",
    )
    return cast(Stage, parts)


@pytest.fixture
def typed(stage: Stage) -> Callable[[str], str]:
    """Types a line, and gives what was printed."""
    stream = io.StringIO()
    player = play.Player(stage, Console(stream))

    def obey(line: str) -> str:
        stream.truncate(stream.seek(0))
        player.obey(line)
        return stream.getvalue()

    return obey


def test_the_scene(stage: Stage) -> None:
    assert figures(stage.store, stage.scene.node) == {
        "chat-on-demand, replicas": "1",
        "chat-spot, replicas": "3",
        "chat, replicas ready": "4",
        "Nodes in gpu-spot": "2",
        "Nodes in gpu-on-demand": "1",
        "The interrupted node": "ready",
        "Pods on it, but for daemons": "3",
    }
    there = [one for one in sightings(stage.store) if one.place == stage.scene.node]
    assert sorted((one.role.value, one.workload, one.state.value) for one in there) == [
        ("daemon", "", "ready"),
        ("other", "", "ready"),
        ("spot", "chat", "ready"),
        ("spot", "chat", "ready"),
    ]
    assert stage.clock() == NOW


@pytest.mark.parametrize("mode", list(Mode))
def test_the_policy_is_valid(tmp_path: Path, mode: Mode) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(scene.policy(mode.value, "http://127.0.0.1:9/api/"))
    policy = load(path)
    workloads = policy.clusters[scene.CLUSTER].workloads
    assert policy.interruptions.mode is mode
    assert {name: one.on_demand_share for name, one in workloads.items()} == {
        "chat": 1,
        "embed": 2,
    }


def test_the_notice_is_the_sample_moved() -> None:
    instance = "i-00000000000000001"
    event = moved_to(EVENT, instance, NOW)
    assert event["resources"] == [f"arn:aws:ec2:eu-west-1a:instance/{instance}"]
    notice = parse_event(json.dumps(event), NOW)
    assert isinstance(notice, Notice)
    assert (notice.instance_id, notice.noticed_at) == (instance, NOW)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("", ""),
        ("help", "notice <node>"),
        ("notice nope", "there is no node nope"),
        ("notice ip-10-0-0-6.eu-west-1.compute.internal", "is no spot node"),
        ("nodes", "ip-10-0-0-5.eu-west-1.compute.internal  gpu-spot  g5.12xlarge"),
        ("node", "ip-10-0-0-8.eu-west-1.compute.internal is there, with instance i-"),
    ],
)
def test_what_can_be_typed(typed: Callable[[str], str], line: str, answer: str) -> None:
    printed = typed(line)
    assert answer in printed
    assert bool(answer) == bool(printed)


def test_a_node_without_an_instance_gets_no_notice(
    stage: Stage, typed: Callable[[str], str]
) -> None:
    node = stage.machines.add_node(scene.SPOT_POOL, instance_id="")
    assert "has no instance in EC2" in typed(f"notice {node['metadata']['name']}")


def test_the_kubeconfig_is_the_users_alone(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig.yaml"
    play._write_kubeconfig(path, stage)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert yaml.safe_load(path.read_text())["users"][0]["user"] == {"token": "secret"}


def test_happenings_without_a_notice_are_not_told(stage: Stage) -> None:
    player = play.Player(stage, Console(io.StringIO()))
    player.happened(Happening(NOW, "ready", "a/b", "on c"))
    player.look()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("✨  Synthesis time: 3.04s", ["Synthesis time: 3.04s"]),
        (
            "S |   1 | 4:15:46 AM | CREATE_COMPLETE | AWS::SQS::Queue | Inbox/Queue (InboxQueue9)",
            ["created AWS::SQS::Queue                  Inbox/Queue"],
        ),
        ("S |   1 | 4:15:46 AM | CREATE_IN_PROGRESS | AWS::CloudWatch::Alarm | ErrorsAlarm", []),
        (
            "S |   1 | 4:15:46 AM | CREATE_FAILED | AWS::SQS::Queue | Inbox (InboxQueue9)",
            ["S |   1 | 4:15:46 AM | CREATE_FAILED | AWS::SQS::Queue | Inbox (InboxQueue9)"],
        ),
        ("Outputs:", []),
    ],
)
def test_what_is_said_of_the_deployment(line: str, said: list[str]) -> None:
    heard: list[str] = []
    _say_what_matters(line, heard.append)
    assert heard == said
