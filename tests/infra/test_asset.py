"""The functions' asset: what is in it, that it imports on its own, and when it is the same."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from infra import asset
from infra.asset import Target
from infra.policy_file import load
from lambdas.core.policy import Mode, Policy

ROOT = Path(__file__).parents[2]
# With nothing but the standard library and the asset on its path: import every module of ours,
# make a client of every service, and say which parts of the Kubernetes client that takes.
IMPORT_ALL = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root))
for file in sorted((root / "lambdas").rglob("*.py")):
    parts = file.relative_to(root).with_suffix("").parts
    importlib.import_module(".".join(parts).removesuffix(".__init__"))
import boto3
for service in ("dynamodb", "ec2", "eks", "secretsmanager", "sqs", "sts"):
    boto3.client(service, "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
print(*sorted(name for name in sys.modules if name.startswith("kubernetes.")))
"""


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load(ROOT / "shiftwright.yaml")


@pytest.fixture(scope="module")
def host(policy: Policy) -> Path:
    return asset.build(policy, Target.HOST)


def test_it_imports_on_its_own_and_without_the_models(host: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(host)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "kubernetes.client.rest" in loaded
    unwanted = ("kubernetes.client.api", "kubernetes.client.models", "kubernetes.config")
    assert not [name for name in loaded if name.startswith(unwanted)]


def test_it_carries_the_policy(host: Path, policy: Policy) -> None:
    assert msgspec.json.decode((host / "policy.json").read_bytes(), type=Policy) == policy


def test_it_carries_nothing_else(host: Path) -> None:
    expected = asset.PACKAGES | {"lambdas", "policy.json"}
    assert {path.name for path in host.iterdir()} - {"__pycache__"} == expected
    assert {path.name for path in (host / "botocore" / "data").iterdir()} == asset.BOTOCORE_DATA


def test_the_same_inputs_make_the_same_asset(host: Path, policy: Policy) -> None:
    assert asset.build(policy, Target.HOST) == host
    interruptions = msgspec.structs.replace(policy.interruptions, mode=Mode.ACT)
    other = asset.build(msgspec.structs.replace(policy, interruptions=interruptions), Target.HOST)
    assert other.name != host.name
    assert json.loads((other / "policy.json").read_bytes())["interruptions"]["mode"] == "act"


@pytest.mark.parametrize("target", list(Target))
def test_byte_code_is_trusted_and_complete(target: Target, policy: Policy) -> None:
    tag = "cpython-314" if target is Target.LAMBDA else sys.implementation.cache_tag
    built = asset.build(policy, target)
    sources = [path for path in built.rglob("*.py") if "__pycache__" not in path.parts]
    for source in sources:
        compiled = source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc"
        # PEP 552: these flags say "by hash, and do not look at the source".
        assert compiled.read_bytes()[4:8] == b"\x01\0\0\0", compiled


def test_lambda_gets_arm64_and_stays_small(policy: Policy) -> None:
    built = asset.build(policy, Target.LAMBDA)
    machines = {path.read_bytes()[18:20] for path in built.rglob("*.so")}
    assert machines == {b"\xb7\0"}  # EM_AARCH64
    assert asset.zipped_bytes(built) <= asset.LIMIT_MB * 1e6


def test_old_builds_and_abandoned_ones_go(tmp_path: Path) -> None:
    ages = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, ".making-now": 9, ".making-once": 9999}
    for name, age in ages.items():
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    asset._tidy(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1", "2", "3", ".making-now"}


def test_what_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(asset.AssetError, match=r"Could not list the locked packages \(uv failed\)"):
        asset._requirements(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(asset, "ROOT", tmp_path)
    with pytest.raises(asset.AssetError, match="uv is not on PATH; any make target"):
        asset._requirements(tmp_path)
