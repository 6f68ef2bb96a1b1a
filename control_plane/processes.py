"""The processes of one control plane: started, watched and ended together."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# On two cores that do other things too, the slowest is there after 10 s.
READY_SECONDS = 120
# An API server waits for the watches of its clients, who do not go.
_GRACE_SECONDS = 3
_POLL_SECONDS = 0.05
_TAIL_LINES = 15
_ROOT = Path(__file__).resolve().parent.parent


class ProcessError(Exception):
    """A process ended, or is not ready in time; the message has the last lines of its log."""


class Processes:
    """Named processes in one process group, with their logs in a folder.

    A watchdog leads the group. It ends the others and removes `folder` when this process is
    gone, however that came about; Ctrl-C in a terminal reaches none of them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "control_plane.watchdog", str(folder)],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            process_group=0,
        )

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it; a log that is there already is written on."""
        with self._log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=self._watchdog.pid,
            )

    def wait(self, name: str, is_ready: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
        """Wait until it is ready. Raises ProcessError."""
        until = time.monotonic() + seconds
        while not is_ready():
            self.check()
            if time.monotonic() > until:
                raise ProcessError(f"{name} is not ready after {seconds:.0f} s{self._tail(name)}")
            time.sleep(_POLL_SECONDS)

    def check(self) -> None:
        """Raise ProcessError if one has ended by itself."""
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                raise ProcessError(f"{name} ended with status {code}{self._tail(name)}")

    def end(self, name: str) -> None:
        """End one in order, or by force if it takes too long."""
        process = self._running.pop(name)
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """End all at once and remove the folder: there is nothing to save."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._watchdog.pid, signal.SIGKILL)
        for process in (*self._running.values(), self._watchdog):
            process.wait()
        if self._watchdog.stdin:
            self._watchdog.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def _tail(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").splitlines()
        return "; the last lines of its log:\n" + "\n".join(lines[-_TAIL_LINES:])
