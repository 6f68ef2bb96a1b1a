"""The shiftwright command."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.policy_file import PolicyError, load
from lambdas.core.policy import Policy
from lambdas.core.words import counted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Exit status: 0 fine, 1 something is wrong, 2 used wrongly."""
    parser = argparse.ArgumentParser(
        prog="shiftwright", description="An assistant for GPU clusters that run on spot capacity."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="say all that is wrong with a policy file")
    check.add_argument("file", nargs="?", type=Path, default=Path("shiftwright.yaml"))
    chosen = parser.parse_args(arguments)
    return _check(chosen.file)


def _check(file: Path) -> int:
    try:
        policy = load(file)
    except PolicyError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{file}: {_summary(policy)}")
    return 0


def _summary(policy: Policy) -> str:
    workloads = sum(len(cluster.workloads) for cluster in policy.clusters.values())
    return (
        f"{counted(len(policy.clusters), 'cluster')} in {', '.join(policy.regions())}, "
        f"{counted(workloads, 'workload')}; interruptions: {policy.interruptions.mode.value}"
    )
