"""What the programs of a control plane are told."""

import json
from pathlib import Path

import pytest

from control_plane import commands
from control_plane.commands import Layout, Ports
from control_plane.instance_types import ZONES, gpu_instance_types

_PORTS = Ports(*range(10_001, 10_009))
_LAYOUT = Layout(Path("/data"))
_PROGRAM = Path("/bin/program")
_COMMANDS = {
    "etcd": commands.etcd(_PROGRAM, _LAYOUT, _PORTS),
    "api server": commands.api_server(_PROGRAM, _LAYOUT, _PORTS),
    "controller manager": commands.controller_manager(_PROGRAM, _LAYOUT, _PORTS),
    "scheduler": commands.scheduler(_PROGRAM, _LAYOUT, _PORTS),
    "kwok": commands.kwok(_PROGRAM, _LAYOUT, _PORTS, [Path("/stage.yaml")]),
}


@pytest.mark.parametrize("name", _COMMANDS)
def test_everything_listens_on_loopback_only(name: str) -> None:
    addresses = ("listen-client-urls", "listen-peer-urls", "bind-address", "server-address")
    told = [each for each in _COMMANDS[name] if each.lstrip("-").startswith(addresses)]
    assert told
    assert all("127.0.0.1" in each for each in told)


def test_karpenter_is_told_its_gates() -> None:
    told = commands.karpenter(_LAYOUT, _PORTS, {"NodeOverlay": True, "NodeRepair": False})
    assert told["FEATURE_GATES"] == "NodeOverlay=true,NodeRepair=false"
    assert "FEATURE_GATES" not in commands.karpenter(_LAYOUT, _PORTS, {})


def test_a_kubeconfig_is_whole() -> None:
    text = commands.kubeconfig("https://127.0.0.1:10003", _LAYOUT, "secret")
    document = json.loads(text)
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:10003"
    assert document["users"][0]["user"] == {"token": "secret"}


def test_every_instance_type_is_offered_spot_and_on_demand_in_every_zone() -> None:
    for one in gpu_instance_types():
        offers = {
            tuple(requirement["values"][0] for requirement in offering["Requirements"])
            for offering in one["offerings"]
        }
        assert offers == {(kind, zone) for kind in ("spot", "on-demand") for zone in ZONES}
        assert int(one["resources"]["nvidia.com/gpu"]) > 0


def test_spot_is_cheaper() -> None:
    for one in gpu_instance_types():
        prices = [offering["Price"] for offering in one["offerings"]]
        assert max(prices[:3]) < min(prices[3:])
