"""From the notice on the queue to the surge accepted by the API server, as deployed."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.harness import PODS_PER_NODE, TOKEN, WORKLOADS, Harness, client, notice
from local.aws import deployed
from local.aws.stand_in import bootstrap, deploy
from local.kubernetes.resources import DEPLOYMENTS, NODES, PODS

NOTICES = 20
_WAIT_SECONDS = 30.0


def notice_to_surge(bench: Harness) -> dict[str, Any]:
    """Deploy, then send one notice after the other; the first one finds a cold function."""
    queue = _deploy(bench)
    sqs = client(bench.aws, "sqs")
    seconds = []
    for instance in bench.instances[:NOTICES]:
        _calm_down(bench)
        seen = len(bench.kubernetes.journal)
        began = time.monotonic()
        sqs.send_message(QueueUrl=queue, MessageBody=notice(instance))
        _until(bench, "/scale", 1, seen)
        seconds.append(time.monotonic() - began)
        _until(bench, "/eviction", PODS_PER_NODE, seen)
    return {
        "figure": f"notice on the queue to surge accepted, {NOTICES} notices, first one cold",
        "unit": "s",
        "value": round(statistics.median(seconds), 2),
        "min": round(min(seconds), 2),
        "max": round(max(seconds), 2),
    }


def _deploy(bench: Harness) -> str:
    """Deploy the stack for the bench's policy; returns the address of its inbox."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shiftwright.yaml"
        path.write_bytes(msgspec.json.encode(bench.policy))  # JSON is YAML
        bootstrap(bench.aws, lambda _line: None)
        deploy(bench.aws, path, lambda _line: None)
    found = deployed.find(client(bench.aws, "lambda"))
    secrets = client(bench.aws, "secretsmanager")
    secrets.put_secret_value(SecretId=found.slack_secret, SecretString=TOKEN)
    return found.inbox_url


def _calm_down(bench: Harness) -> None:
    """Take the nodes with a notice away, and the replicas that made up for them."""
    store = bench.kubernetes.store
    for node in store.list(NODES):
        name = node["metadata"]["name"]
        if node["spec"].get("unschedulable"):
            for pod in store.list(PODS, fields=f"spec.nodeName={name}"):
                store.remove(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
            store.remove(NODES, name)
    for number in range(WORKLOADS):
        store.patch(DEPLOYMENTS, "on-demand", {"spec": {"replicas": 0}}, f"team-{number}")


def _until(bench: Harness, ending: str, times: int, seen: int) -> None:
    """Wait until so many requests whose path ends like this have come since."""
    gives_up = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < gives_up:
        paths = (one.path.partition("?")[0] for one in bench.kubernetes.journal[seen:])
        if sum(path.endswith(ending) for path in paths) >= times:
            return
        time.sleep(0.005)
    raise TimeoutError(f"no {times} of {ending} within {_WAIT_SECONDS:.0f} s of the notice")
