"""The processes of a control plane, played by programs that every machine has."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from control_plane.ports import free_ports
from control_plane.processes import ProcessError, Processes

_ROOT = Path(__file__).parents[2]
_WAIT = ["/bin/sh", "-c", "echo here; exec sleep 600"]
_SECONDS = 20
# Holds a lock for as long as it lives, which is seen from outside.
_HOLD = [
    sys.executable,
    "-c",
    "import fcntl, pathlib, signal; file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX); "
    "pathlib.Path('ready').touch(); signal.pause()",
]
_OWNER = f"""
import pathlib, sys
from control_plane.processes import Processes
folder = pathlib.Path(sys.argv[1])
processes = Processes(folder)
processes.start("holder", {_HOLD!r}, {{}})
processes.wait("holder", (folder / "ready").exists)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "plane"
    folder.mkdir()
    return folder


@pytest.fixture
def processes(folder: Path) -> Iterator[Processes]:
    processes = Processes(folder)
    yield processes
    processes.stop()


def _until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def _is_free(file: IO[str]) -> bool:
    """Whether the process that held the lock has ended: the kernel takes it from nobody else."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_they_are_stopped_together(folder: Path) -> None:
    processes = Processes(folder)
    processes.start("holder", _HOLD, {})
    processes.wait("holder", (folder / "ready").exists)
    with (folder / "held").open("w") as held:
        assert not _is_free(held)
        processes.stop()
        assert _is_free(held)
    assert not folder.exists()


def test_one_that_ends_by_itself_is_told_with_its_last_words(processes: Processes) -> None:
    processes.start("etcd", ["/bin/sh", "-c", "echo no space left; exit 3"], {})
    with pytest.raises(ProcessError, match=r"etcd ended with status 3(?s:.*)no space left"):
        processes.wait("etcd", lambda: False)


def test_one_that_is_never_ready_is_told_with_its_last_words(processes: Processes) -> None:
    processes.start("etcd", _WAIT, {})
    _until(lambda: (processes.logs / "etcd.log").read_text() == "here\n")
    with pytest.raises(ProcessError, match=r"etcd is not ready after 0 s(?s:.*)here"):
        processes.wait("etcd", lambda: False, seconds=0.1)


def test_one_can_be_ended_and_started_again(processes: Processes) -> None:
    for round_number in (1, 2):
        processes.start("etcd", _WAIT, {})
        log = processes.logs / "etcd.log"
        _until(lambda: log.read_text() == "here\n" * round_number)  # noqa: B023 - waited for here
        processes.end("etcd")
    processes.check()


def test_a_killed_owner_leaves_nothing(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(folder)],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == b"ready\n"
        with (folder / "held").open("w") as held:
            assert not _is_free(held)
            os.kill(owner.pid, signal.SIGKILL)
            owner.wait()
            _until(lambda: _is_free(held))
        _until(lambda: not folder.exists())


def test_ports_are_free_and_different() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    assert all(10_000 <= port < 30_000 for port in ports)
