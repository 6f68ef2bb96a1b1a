"""Sees everything that moves in a cluster: a mirror by list and watch, and every pod's life.

Tests wait for what they expect to see, and judge afterwards what happened in between.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import TypeVar

from local.kubernetes.facts import is_active, is_ready
from local.kubernetes.resources import Object
from local.real.mirror import Change, Mirror

_T = TypeVar("_T")

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
DEPLOYMENTS = "/apis/apps/v1/deployments"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
ENDPOINTS = "/apis/discovery.k8s.io/v1/endpointslices"
OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
_KINDS = (PODS, NODES, CLAIMS, DEPLOYMENTS, BUDGETS, ENDPOINTS, OVERLAYS)

POOL_LABEL = "karpenter.sh/nodepool"
CAPACITY_LABEL = "karpenter.sh/capacity-type"
APP_LABEL = "app"
# A restarted server is asked again this often, until it answers.
_AGAIN_SECONDS = 0.1


@dataclasses.dataclass
class Life:
    """When a pod was first seen, had a node, and was ready."""

    namespace: str
    name: str
    labels: dict[str, str]
    created: dt.datetime
    node: str = ""
    scheduled: dt.datetime | None = None
    ready: dt.datetime | None = None
    gone: bool = False


@dataclasses.dataclass(frozen=True)
class Count:
    """How many replicas of an application were ready from a moment on."""

    at: dt.datetime
    ready: int


class Observer(Mirror):
    """The mirror, questions to it, and what happened since it was started."""

    def __init__(self, url: str, ca_pem: str, token: str) -> None:
        super().__init__(url, ca_pem, token, _KINDS, self._note)
        self._lives: dict[str, Life] = {}
        self._counts: dict[tuple[str, str], list[Count]] = {}

    # What tests ask

    def until(self, found: Callable[[], _T], what: str, seconds: float = 60) -> _T:
        """Wait until `found` gives something true, and return that. It is called under the lock."""
        with self.changed:
            result = self.wait(found, seconds)
            assert result, f"waited {seconds:g} s for {what}\n{self._summary()}"
            return result

    def until_seen(self, kind: str, written: Object) -> None:
        """Wait until the mirror has what a write gave back, or something later."""
        metadata = written["metadata"]
        self.until(lambda: self.has_seen(kind, written), f"{metadata['name']} as it was written")

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    def since(self, began: dt.datetime) -> float:
        """Seconds since then."""
        return (self.now() - began).total_seconds()

    def pods(self, namespace: str, **labels: str) -> list[Object]:
        """The pods of a namespace that count as replicas."""
        with self.changed:
            return [
                pod
                for pod in self.all(PODS)
                if pod["metadata"]["namespace"] == namespace
                and is_active(pod)
                and labels.items() <= (pod["metadata"].get("labels") or {}).items()
            ]

    def ready_pods(self, namespace: str, **labels: str) -> list[Object]:
        return [pod for pod in self.pods(namespace, **labels) if is_ready(pod)]

    def nodes(self, **labels: str) -> list[Object]:
        """Nodes by labels; `pool` is short for Karpenter's."""
        wanted = {POOL_LABEL if key == "pool" else key: value for key, value in labels.items()}
        with self.changed:
            return [
                node
                for node in self.all(NODES)
                if wanted.items() <= (node["metadata"].get("labels") or {}).items()
            ]

    def node(self, name: str) -> Object | None:
        return self.named(NODES, name)

    def claims(self, pool: str) -> list[Object]:
        with self.changed:
            return [
                claim
                for claim in self.all(CLAIMS)
                if (claim["metadata"].get("labels") or {}).get(POOL_LABEL) == pool
            ]

    def ready_endpoints(self, namespace: str, service: str) -> int:
        """How many addresses stand behind a Service."""
        with self.changed:
            return sum(
                bool((endpoint.get("conditions") or {}).get("ready"))
                for one in self.all(ENDPOINTS)
                if one["metadata"]["namespace"] == namespace
                and one["metadata"]["labels"].get("kubernetes.io/service-name") == service
                for endpoint in one.get("endpoints") or ()
            )

    def lives(self, namespace: str, since: dt.datetime, **labels: str) -> list[Life]:
        """The pods that were made since a moment, gone or not."""
        with self.changed:
            return [
                dataclasses.replace(life)
                for life in self._lives.values()
                if life.namespace == namespace
                and life.created >= since
                and labels.items() <= life.labels.items()
            ]

    def fewest_ready(self, namespace: str, app: str, since: dt.datetime) -> int:
        """The fewest ready replicas of an application from a moment on, at any event."""
        with self.changed:
            counts = self._counts.get((namespace, app), [])
            before = [count.ready for count in counts if count.at <= since][-1:]
            return min(before + [count.ready for count in counts if count.at > since], default=0)

    def _note(self, kind: str, change: Change, pod: Object, now: dt.datetime) -> None:
        if kind != PODS:
            return
        metadata = pod["metadata"]
        labels = metadata.get("labels") or {}
        life = self._lives.setdefault(
            metadata["uid"], Life(metadata["namespace"], metadata["name"], labels, now)
        )
        life.gone = change == "DELETED"
        life.node = pod["spec"].get("nodeName", "")
        if life.node and life.scheduled is None:
            life.scheduled = now
        if is_ready(pod) and life.ready is None:
            life.ready = now
        if app := labels.get(APP_LABEL):
            ready = len(self.ready_pods(metadata["namespace"], **{APP_LABEL: app}))
            self._counts.setdefault((metadata["namespace"], app), []).append(Count(now, ready))

    def _summary(self) -> str:
        lines = [
            f"  node {one['metadata']['name']}"
            f" {(one['metadata'].get('labels') or {}).get(POOL_LABEL, '')}"
            f" ready={is_ready(one)} {[taint['key'] for taint in one['spec'].get('taints') or ()]}"
            for one in self.all(NODES)
        ]
        lines += [
            f"  claim {one['metadata']['name']} {_conditions(one)}" for one in self.all(CLAIMS)
        ]
        lines += [
            f"  pod {one['metadata']['namespace']}/{one['metadata']['name']}"
            f" on {one['spec'].get('nodeName', 'no node')} ready={is_ready(one)}"
            f" {'leaving' if not is_active(one) else ''}"
            for one in self.all(PODS)
        ]
        return "\n".join(lines)


def _conditions(item: Object) -> dict[str, str]:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return {each["type"]: each["status"] for each in conditions}
