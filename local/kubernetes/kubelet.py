"""Plays the kubelets: pods that start, pods that end, and a daemon pod on each node."""

import datetime as dt
from collections.abc import Sequence

from local.kubernetes.facts import is_active, is_ready, is_terminating, path_of
from local.kubernetes.happenings import Say
from local.kubernetes.resources import NODES, PODS, Object, moment_of, rfc3339
from local.kubernetes.store import Store

_DAEMON_NAMESPACE = "kube-system"


def start_pods(store: Store, say: Say, start_seconds: float) -> None:
    """Make pods on a node Ready once their start is over."""
    now = store.clock()
    for pod in store.list(PODS):
        if not pod["spec"].get("nodeName") or not is_active(pod) or is_ready(pod):
            continue
        began = pod["status"].get("startTime")
        if began is None:
            _patch(store, pod, {"status": {"startTime": rfc3339(now)}})
        elif now >= moment_of(began) + dt.timedelta(seconds=start_seconds):
            conditions = [
                {"type": kind, "status": "True", "lastTransitionTime": rfc3339(now)}
                for kind in ("PodScheduled", "ContainersReady", "Ready")
            ]
            _patch(store, pod, {"status": {"phase": "Running", "conditions": conditions}})
            say("ready", path_of(pod), f"on {pod['spec']['nodeName']}")


def end_pods(store: Store, say: Say, stop_seconds: float) -> None:
    """Take terminating pods away after what they need to stop, at most their grace."""
    now = store.clock()
    for pod in filter(is_terminating, store.list(PODS)):
        metadata = pod["metadata"]
        grace = metadata["deletionGracePeriodSeconds"]
        began = moment_of(metadata["deletionTimestamp"]) - dt.timedelta(seconds=grace)
        if now >= began + dt.timedelta(seconds=min(grace, stop_seconds)):
            store.remove(PODS, metadata["name"], metadata["namespace"])
            say("gone", path_of(pod), f"from {pod['spec'].get('nodeName', 'no node')}")


def run_daemons(store: Store, daemons: Sequence[str]) -> None:
    """See to it that each Ready node has its daemon pods."""
    there = {pod["metadata"]["name"] for pod in store.list(PODS, _DAEMON_NAMESPACE)}
    for node in filter(is_ready, store.list(NODES)):
        for daemon in daemons:
            pod = _daemon_pod(daemon, node)
            if pod["metadata"]["name"] not in there:
                store.create(pod)


def _daemon_pod(daemon: str, node: Object) -> Object:
    node_name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon, "controller": True}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": f"{daemon}-{uid[:5]}",
            "namespace": _DAEMON_NAMESPACE,
            "labels": {"app.kubernetes.io/name": daemon},
            "ownerReferences": [{**owner, "uid": f"daemon-{daemon}"}],
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": daemon, "image": f"local/{daemon}"}],
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _patch(store: Store, pod: Object, patch: Object) -> None:
    store.patch(PODS, pod["metadata"]["name"], patch, pod["metadata"]["namespace"])
