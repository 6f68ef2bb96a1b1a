"""Prints one JSON line a figure; docs/benchmarks.md says what each must reach."""

import json
import statistics
import sys
from collections.abc import Iterator
from typing import Any

from bench.harness import PODS_PER_NODE, WORKLOADS, Harness, harness
from bench.latency import NOTICES, notice_to_surge
from infra import asset
from infra.policy_file import load
from lambdas.core.policy import Mode

# Odd, so that the median is a run that took place.
RUNS = 7
BATCH = 100
NODES = 1000

Figure = dict[str, Any]


def main() -> int:
    """Measure everything; 1 if a figure misses its limit."""
    missed = 0
    for figure in _figures():
        value, limit = figure["value"], figure.get("limit")
        missed += limit is not None and value > limit
        print(json.dumps(figure), flush=True)
    return 1 if missed else 0


def _figures() -> Iterator[Figure]:
    yield _asset_size()
    with harness(nodes=BATCH) as small:
        yield _calls(small)
    with harness(nodes=BATCH) as small:
        yield _lists(small)
    with harness(nodes=BATCH, mode=Mode.OBSERVE) as small:
        yield _cold_start(small)
    with harness(nodes=NODES) as large:
        yield _memory(large, "one notice", 1)
        yield _memory(large, f"{BATCH} notices", BATCH)
    with harness(nodes=NOTICES) as deployed:
        yield notice_to_surge(deployed)


def _asset_size() -> Figure:
    directory = asset.build(load(asset.ROOT / "shiftwright.yaml"), asset.Target.LAMBDA)
    megabytes = asset.zipped_bytes(directory) / 1e6
    return {
        "figure": "asset, zipped",
        "unit": "MB",
        "value": round(megabytes, 1),
        "limit": asset.LIMIT_MB,
    }


def _calls(bench: Harness) -> Figure:
    bench.new_run()
    bench.handle(bench.instances[:1])
    return {
        "figure": f"Kubernetes calls for one notice, {PODS_PER_NODE} pods of {WORKLOADS} workloads",
        "unit": "calls",
        "value": len(bench.kubernetes.journal),
        "limit": 4 + PODS_PER_NODE + 2 * WORKLOADS,
    }


def _lists(bench: Harness) -> Figure:
    """In a calm cluster: where somebody has surged before, the nodes are read once more."""
    bench.new_run()
    bench.handle(bench.instances)
    lists = sum(one.path.startswith("/api/v1/nodes?") for one in bench.kubernetes.journal)
    what = f"lists of nodes for a batch of {BATCH} notices"
    return {"figure": what, "unit": "calls", "value": lists, "limit": 1}


def _cold_start(bench: Harness) -> Figure:
    """CPU of import and first event: with the Kubernetes client against bare urllib3, in turn."""
    milliseconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(RUNS):
        for plain, figures in milliseconds.items():
            bench.new_run()
            result = bench.handle(bench.instances[:1], plain=plain)
            figures.append(result["import_ms"] + result["first_event_ms"])
    with_client, without = (statistics.median(milliseconds[plain]) for plain in (False, True))
    return {
        "figure": "CPU of import and first event, with the Kubernetes client to without",
        "unit": "ratio",
        "value": round(with_client / without, 2),
        "limit": 1.3,
        "with_ms": round(with_client),
        "without_ms": round(without),
        "runs": RUNS,
    }


def _memory(bench: Harness, what: str, notices: int) -> Figure:
    bench.new_run()
    result = bench.handle(bench.instances[-notices:])
    pods = NODES * PODS_PER_NODE
    return {
        "figure": f"peak memory, {what}, {NODES} nodes, {pods} pods",
        "unit": "MB",
        "value": round(result["peak_memory_mb"]),
        "limit": 180,
    }


if __name__ == "__main__":
    sys.exit(main())
