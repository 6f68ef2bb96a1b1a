"""One spot interruption, rehearsed on this machine from `cdk deploy` to the Slack message."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from lambdas.core.policy import Mode
from local.aws.stand_in import AwsError
from local.cluster import ClusterError
from local.console import Console
from local.page.render import render
from local.play import play
from local.recording import Recording
from local.rehearsal import Rehearsal, StalledError
from local.stage import BUILD, Stage

OK, FAILED, NOT_SET, STOPPED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit status is 0 only if everything ended as it should."""
    options = _options(arguments)
    console = Console()
    # A polite kill cleans up as Ctrl-C does, and Ctrl-C works in the background of a shell, too.
    for polite in (signal.SIGINT, signal.SIGTERM):
        signal.signal(polite, signal.default_int_handler)
    try:
        return _run(options, console)
    except (AwsError, ClusterError, StalledError, OSError) as error:
        console.line(console.paint(f"\nThe run ended early: {error}", "red"))
        return NOT_SET
    except KeyboardInterrupt:
        console.line("\nStopped; everything is cleaned up.")
        return STOPPED


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.demo", description=__doc__)
    parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.ACT)
    parser.add_argument(
        "--cluster", choices=("stand-in", "real"), default="stand-in", help="what Kubernetes it is"
    )
    parser.add_argument("--page", type=Path, default=BUILD / "demo.html")
    parser.add_argument("--keep", action="store_true", help="keep everything running afterwards")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace, console: Console) -> int:
    console.line(console.paint("Shiftwright: one spot interruption, on this machine", "bold"))
    console.line(
        "A real cdk deploy into stand-ins of AWS, Kubernetes and Slack; no account needed."
    )
    console.heading("Setting the stage")
    options.page.parent.mkdir(parents=True, exist_ok=True)
    with Stage(options.mode, console, real=options.cluster == "real") as stage:
        console.heading("The interruption")
        recording = Rehearsal(stage, console).run()
        _report(recording, options.page, console)
        if options.keep:
            with contextlib.suppress(KeyboardInterrupt):
                play(stage, console)
            console.line("\nCleaning up")
    return OK if all(check.held for check in recording.checks) else FAILED


def _report(recording: Recording, path: Path, console: Console) -> None:
    console.heading("Before and after")
    rows = tuple((row.figure, row.before, row.after) for row in recording.rows)
    console.table(("", "before", "after"), rows)
    console.heading("Checks")
    for check in recording.checks:
        mark = console.paint("ok    ", "green") if check.held else console.paint("FAILED", "red")
        console.line(f"  {mark}  {check.name}" + (f": {check.detail}" if check.detail else ""))
    path.write_text(render(recording), encoding="utf-8")
    failed = sum(not check.held for check in recording.checks)
    console.line()
    result = f"{failed} of {len(recording.checks)} checks failed" if failed else "All checks held"
    console.line(f"{result}, after {console.elapsed:.0f} s. The page of this run: {path}")


if __name__ == "__main__":
    sys.exit(main())
