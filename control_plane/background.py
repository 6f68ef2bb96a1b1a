"""A control plane to play with: `python -m control_plane.background up` and `down`.

One a user: a process of its own runs it, holds a lock for as long, and ends it when told to.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from control_plane.api import RefusalError
from control_plane.build import BuildError, build
from control_plane.cache import cache_root
from control_plane.instance_types import gpu_instance_types
from control_plane.processes import READY_SECONDS, ProcessError
from control_plane.run import ControlPlane, Karpenter
from local.console import Console

_ROOT = Path(__file__).resolve().parent.parent
# Every part may take its time.
_START_SECONDS = 4 * READY_SECONDS
_STOP_SECONDS = 30
_TAKE_SECONDS = 1
_POLL_SECONDS = 0.1


class Background:
    """The one control plane of a cache folder."""

    def __init__(self, cache: Path) -> None:
        self._lock = cache / "cluster.lock"
        self._state = cache / "cluster.json"
        self._log = cache / "cluster.log"

    def is_running(self) -> bool:
        """Whether a process holds the lock: the file alone may be a killed one's."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def up(self) -> str:
        """Start it unless it runs; the path of its kubeconfig. Raises ProcessError."""
        if not self.is_running():
            self._state.unlink(missing_ok=True)
            with self._log.open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "control_plane.background", "serve"],
                    cwd=_ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._wait(process)
        return str(self._read()["kubeconfig"])

    def down(self) -> bool:
        """End it; whether there was one. Raises ProcessError."""
        if not self.is_running():
            return False
        os.kill(int(self._read()["pid"]), signal.SIGTERM)
        until = time.monotonic() + _STOP_SECONDS
        while self.is_running():
            if time.monotonic() > until:
                raise ProcessError(f"The control plane still runs after {_STOP_SECONDS} s")
            time.sleep(_POLL_SECONDS)
        return True

    def serve(self) -> None:
        """Run it in this process until a SIGTERM."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with self._lock.open("a") as file:
            if not _taken(file):
                return  # another one was quicker
            karpenter = Karpenter(gpu_instance_types(), {"NodeOverlay": True})
            with ControlPlane(controllers=True, karpenter=karpenter) as plane:
                state = {"pid": os.getpid(), "kubeconfig": str(plane.kubeconfig)}
                whole = self._state.with_suffix(".making")
                whole.write_text(json.dumps(state))
                whole.rename(self._state)
                while True:
                    signal.pause()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _START_SECONDS
        while not self._state.exists():
            ended = process.poll() is not None
            if ended and not self.is_running():
                raise ProcessError(f"The control plane did not start:\n{self._log.read_text()}")
            if time.monotonic() > until:
                process.terminate()
                raise ProcessError(
                    f"The control plane is not ready after {_START_SECONDS} s; see {self._log}"
                )
            time.sleep(_POLL_SECONDS)

    def _read(self) -> dict[str, Any]:
        """What the running one has noted, which may take a moment after it has the lock."""
        until = time.monotonic() + _START_SECONDS
        while self.is_running() and time.monotonic() < until:
            with contextlib.suppress(FileNotFoundError):
                return dict(json.loads(self._state.read_text()))
            time.sleep(_POLL_SECONDS)
        raise ProcessError("The control plane has ended meanwhile; run make cluster-up again")


def _taken(file: IO[str]) -> bool:
    """Take the lock for good; who only looks whether it is taken has it for a moment."""
    until = time.monotonic() + _TAKE_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_POLL_SECONDS)
    return False


def main(command: str) -> int:
    """Do it, and say what to do next."""
    background = Background(cache_root())
    try:
        if command == "serve":
            background.serve()
        elif command == "up":
            # Here, where its progress is seen.
            build(Console())
            kubeconfig = background.up()
            print(
                f"A control plane with Karpenter is running.\n"
                f"  export KUBECONFIG={kubeconfig}\n"
                f"  kubectl get nodepools\n"
                f"End it with: make cluster-down"
            )
        else:
            print("Ended." if background.down() else "No control plane is running.")
    except (BuildError, ProcessError, RefusalError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
