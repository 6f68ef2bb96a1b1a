"""The demo on a real control plane, as a user starts it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 240


def test_the_demo_ends_as_it_should(tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    command = [sys.executable, "-m", "local.demo", "--cluster", "real"]
    answer = subprocess.run(
        [*command, "--page", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "All checks held" in answer.stdout
    assert "kwok-gpu-spot-" in page.read_text(encoding="utf-8")
