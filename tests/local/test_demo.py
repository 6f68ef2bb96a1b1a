"""The whole of it, end to end: the demo itself, as a user starts it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 170


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A directory for everything temporary; nothing may be left in it, nor know of it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    yield scratch
    assert list(scratch.glob("shiftwright-*")) == []
    assert processes_that_know(scratch) == []


def processes_that_know(path: Path) -> list[str]:
    """Command lines of the processes with this path in their environment (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(path).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # another user's, or gone meanwhile
    return found


def start(scratch: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "local.demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("act", ("surge inference/chat-on-demand 1 → 3", "held back by a disruption budget")),
        ("observe", ("would surge inference/chat-on-demand 1 → 3", "calls, all of them GET")),
    ],
)
def test_demo(scratch: Path, tmp_path: Path, mode: str, words: tuple[str, ...]) -> None:
    page = tmp_path / "pages" / "demo.html"
    with start(scratch, "--mode", mode, "--page", str(page)) as demo:
        output, _ = demo.communicate(timeout=TIMEOUT_SECONDS)

    assert demo.returncode == 0, output
    assert "All checks held" in output
    assert all(each in output for each in words), output
    assert f"{mode} mode" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_cleans_up(scratch: Path, tmp_path: Path, ending: int) -> None:
    with start(scratch, "--page", str(tmp_path / "demo.html")) as demo:
        lines = iter(demo.stdout or ())
        assert any("cdk bootstrap" in line for line in lines)
        demo.send_signal(ending)
        output, _ = demo.communicate(timeout=TIMEOUT_SECONDS)

    assert demo.returncode == 130, output
    assert "Stopped" in output
