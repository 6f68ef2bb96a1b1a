"""Builds the one directory that all functions run from: packages, our code, the policy. No Docker.

A build is keyed by a hash of everything that goes into it and kept under .build/, so that a
second one is a look-up and CDK sees the same asset every time. Packages and code are two
stages: most changes touch the code or the policy alone.
"""

import argparse
import compileall
import contextlib
import enum
import hashlib
import json
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from infra.policy_file import PolicyError, load
from lambdas.core.policy import Policy

ROOT = Path(__file__).resolve().parent.parent
LAMBDA_PYTHON = "3.14"
LIMIT_MB = 35
# Earlier builds that stay, so that going back and forth between two policies is quick.
KEEP = 4
_SCRATCH = ".making-"
# A build takes seconds; one that is older was killed.
ABANDONED_SECONDS = 3600

# The packages that the functions import, directly or not. The official Kubernetes client names
# more as requirements (aiohttp, requests, pydantic, ...) that its transport never touches.
PACKAGES = frozenset(
    {
        "aws_lambda_powertools",
        "boto3",
        "botocore",
        "dateutil",
        "jmespath",
        "kubernetes",
        "msgspec",
        "s3transfer",
        "six.py",
        "slack_sdk",
        "typing_extensions.py",
        "urllib3",
    }
)
# Of the Kubernetes client, the transport alone. Its package's own __init__ imports everything
# else, which costs some 450 ms at a cold start, and the models weigh 30 MB.
KUBERNETES_PARTS = ("client", "utils", "__init__.py")
KUBERNETES_CLIENT_DROPS = ("api", "models")
KUBERNETES_EMPTIED = ("__init__.py", "utils/__init__.py")
# botocore describes some 400 services; these are the ones that the functions call.
BOTOCORE_DATA = frozenset(
    {
        "dynamodb",
        "ec2",
        "eks",
        "secretsmanager",
        "sqs",
        "sts",
        "_retry.json",
        "endpoints.json",
        "partitions.json",
        "sdk-default-configuration.json",
    }
)


class AssetError(Exception):
    """The asset cannot be built; the message says what to do."""


class Target(enum.Enum):
    """Where the asset runs: in AWS Lambda (arm64), or on this machine in the local run."""

    LAMBDA = "lambda"
    HOST = "host"


def build(policy: Policy, target: Target, *, root: Path = ROOT) -> Path:
    """The asset's directory, named by the hash of its inputs. Raises AssetError."""
    packages = _packages(target, root)
    sources = sorted((root / "lambdas").rglob("*.py"))
    document = msgspec.json.encode(policy)
    key = _digest(packages.name, document, *(part for s in sources for part in _named(s, root)))

    def fill(directory: Path) -> None:
        shutil.copytree(packages, directory, dirs_exist_ok=True)
        code = directory / "lambdas"
        shutil.copytree(root / "lambdas", code, ignore=shutil.ignore_patterns("__pycache__"))
        (directory / "policy.json").write_bytes(document)
        _compile(code, "/var/task/lambdas", target)

    return _kept(root / ".build" / f"asset-{target.value}" / key, fill)


def _packages(target: Target, root: Path) -> Path:
    """The installed, pruned and compiled packages."""
    requirements = _requirements(root)
    key = _digest(requirements, *_builder(target, root))

    def fill(directory: Path) -> None:
        _install(requirements, target, directory)
        _prune(directory)
        _compile(directory, "/var/task", target)

    return _kept(root / ".build" / f"packages-{target.value}" / key, fill)


def _requirements(root: Path) -> str:
    """The locked packages of the functions alone, with their hashes."""
    return _run(
        [
            *(_tool("uv"), "export", "--frozen", "--no-default-groups", "--no-emit-project"),
            *("--no-header", "--no-annotate", "--quiet", "--directory", str(root)),
        ],
        "list the locked packages",
    )


def _builder(target: Target, root: Path) -> Iterator[str | bytes]:
    """What else shapes the packages: this module, and the Python that compiles them."""
    yield from (Path(__file__).read_bytes(), target.value)
    if target is Target.HOST:
        yield f"{sys.implementation.cache_tag} {platform.platform()}"
        return
    yield Path(__file__).with_name("compile.mjs").read_bytes()
    yield json.loads((root / "package.json").read_text())["devDependencies"]["pyodide"]


def _install(requirements: str, target: Target, directory: Path) -> None:
    if target is Target.LAMBDA:
        which = ["--python-platform", "aarch64-manylinux_2_28", "--python-version", LAMBDA_PYTHON]
    else:
        which = ["--python", sys.executable]
    _run(
        [
            *(_tool("uv"), "pip", "install", "--quiet", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--target", str(directory), *which, "--requirements", "-"),
        ],
        "install the functions' packages from the Python package index",
        stdin=requirements,
    )


def _prune(directory: Path) -> None:
    """Keep what the functions import."""
    _keep_only(directory, PACKAGES)
    _keep_only(directory / "botocore" / "data", BOTOCORE_DATA)
    for unused in ("boto3/data", "boto3/examples"):
        _remove(directory / unused)
    kubernetes = directory / "kubernetes"
    _keep_only(kubernetes, KUBERNETES_PARTS)
    for drop in KUBERNETES_CLIENT_DROPS:
        _keep_only(kubernetes / "client" / drop, ("__init__.py",))
    for module in KUBERNETES_EMPTIED:
        (kubernetes / module).write_text('"""Emptied: see infra/asset.py."""\n')
    for cache in [*directory.rglob("__pycache__"), *directory.rglob("tests")]:
        _remove(cache)


def _compile(directory: Path, path_there: str, target: Target) -> None:
    """Byte-code that Python trusts without a look at the source's time.

    CDK's zip sets every time to 1980, so that time-stamped byte-code would be thrown away.
    """
    if target is Target.LAMBDA:
        _run(
            [
                _tool("node"),
                str(Path(__file__).with_name("compile.mjs")),
                str(directory),
                path_there,
            ],
            "compile the functions' byte-code",
        )
        return
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(directory, quiet=2, invalidation_mode=mode):
        raise AssetError(f"Some Python files under {directory} do not compile")


def _kept(final: Path, fill: Callable[[Path], None]) -> Path:
    """The directory if it is there already, else a new one, renamed into place when whole."""
    if final.is_dir():
        os.utime(final)
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=final.parent) as scratch:
        whole = Path(scratch) / "asset"
        whole.mkdir()
        fill(whole)
        # Another process may have made the same one meanwhile: theirs is as good.
        if not final.is_dir():
            whole.rename(final)
    os.utime(final)
    _tidy(final.parent)
    return final


def _tidy(directory: Path) -> None:
    """Keep the newest builds, and what another process may be making now."""
    ages: dict[Path, float] = {}
    for path in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):  # that other process has just finished
            ages[path] = time.time() - path.stat().st_mtime
    whole = sorted((p for p in ages if not p.name.startswith(_SCRATCH)), key=ages.__getitem__)
    abandoned = [p for p in ages if p.name.startswith(_SCRATCH) and ages[p] > ABANDONED_SECONDS]
    for old in [*whole[KEEP:], *abandoned]:
        _remove(old)


def _keep_only(directory: Path, names: frozenset[str] | tuple[str, ...]) -> None:
    for path in directory.iterdir():
        if path.name not in names:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _named(path: Path, root: Path) -> tuple[str, bytes]:
    return str(path.relative_to(root)), path.read_bytes()


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _tool(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=str(ROOT / ".cache" / "tools" / "bin"))
    if not found:
        raise AssetError(f"{name} is not on PATH; any make target, such as `make synth`, brings it")
    return found


def _run(command: list[str], purpose: str, stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        detail = (done.stderr or done.stdout).strip()
        raise AssetError(f"Could not {purpose} ({Path(command[0]).name} failed):\n{detail}")
    return done.stdout


def zipped_bytes(directory: Path) -> int:
    """The size of the directory as CDK would zip it."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in directory.rglob("*"):
                archive.write(path, path.relative_to(directory))
        return file.tell()


def main() -> int:
    """Build the asset and print where it is and what it weighs."""
    parser = argparse.ArgumentParser(prog="python -m infra.asset", description=main.__doc__)
    parser.add_argument("--policy", type=Path, default=ROOT / "shiftwright.yaml")
    parser.add_argument("--target", type=Target, choices=list(Target), default=Target.LAMBDA)
    arguments = parser.parse_args()
    try:
        directory = build(load(arguments.policy), arguments.target)
    except (PolicyError, AssetError) as error:
        sys.exit(str(error))
    files = [path for path in directory.rglob("*") if path.is_file()]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    zipped = zipped_bytes(directory) / 1e6
    print(f"{directory}\n{len(files)} files, {megabytes:.1f} MB, {zipped:.1f} MB zipped")
    return 0 if zipped <= LIMIT_MB else 1


if __name__ == "__main__":
    sys.exit(main())
