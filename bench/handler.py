"""A child process that runs the handler on one event, as a cold function does, and measures itself.

Reads {"event": ..., "plain": bool} on standard input; prints one JSON line. The asset is on
PYTHONPATH. With `plain`, the Kubernetes client is replaced by bare urllib3.
"""

import json
import pathlib
import sys
import time


class Context:
    """What Lambda tells a function about its invocation."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def main() -> None:
    """Import the handler, run it once, and print CPU milliseconds, peak memory and the answer."""
    order = json.loads(sys.stdin.read())
    began = time.process_time()
    if order["plain"]:
        from bench import plain_client  # noqa: PLC0415 (only where it is measured)

        plain_client.install()
    from lambdas.interruptions import handler  # noqa: PLC0415 (the import is what is measured)

    imported = time.process_time()
    answer = handler(order["event"], Context())
    done = time.process_time()
    print(
        json.dumps(
            {
                "import_ms": (imported - began) * 1000,
                "first_event_ms": (done - imported) * 1000,
                "peak_memory_mb": _peak_memory_mb(),
                "failures": answer["batchItemFailures"],
            }
        )
    )


def _peak_memory_mb() -> float:
    """This program's own: getrusage counts what the parent held before exec, too."""
    status = pathlib.Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
