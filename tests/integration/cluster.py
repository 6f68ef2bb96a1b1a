"""A cluster on the Kubernetes stand-in, filled by hand: no controller moves anything."""

import datetime as dt
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lambdas.adapters.kube import Kube
from local.kubernetes import Request, StandIn, User, read_cluster_roles

MANIFEST = pathlib.Path(__file__).parents[2] / "manifests" / "shiftwright-rbac.yaml"
NOW = dt.datetime(2026, 3, 1, 12, 0, 20, tzinfo=dt.UTC)
TOKEN = "function-token"
USER = "function"


class ClusterUnderTest:
    """Objects by short calls, and what the function asked of the API."""

    def __init__(self, stand_in: StandIn, name: str = "gpu-prod") -> None:
        self.stand_in = stand_in
        self.name = name
        for namespace in ("inference", "team-b"):
            self.create("v1", "Namespace", namespace)

    def kube(self, token: str = TOKEN) -> Kube:
        return Kube(self.name, self.stand_in.url, self.stand_in.ca_pem, lambda **_: token)

    def create(self, version: str, kind: str, name: str, **body: Any) -> dict[str, Any]:
        metadata = {"name": name, **body.pop("metadata", {})}
        return self.stand_in.store.create(
            {"apiVersion": version, "kind": kind, "metadata": metadata, **body}
        )

    def node(self, name: str, instance_id: str, **spec: Any) -> None:
        labels = spec.pop("labels", {})
        provider = f"aws:///eu-west-1a/{instance_id}"
        self.create(
            "v1", "Node", name, metadata={"labels": labels}, spec={"providerID": provider, **spec}
        )

    def pod(self, name: str, node: str, owner: str = "", **metadata: Any) -> None:
        """A running, ready pod; `owner` is a Deployment, or Kind/name."""
        kind, _, owner_name = owner.rpartition("/")
        labels = {"app": owner_name or name, **metadata.pop("labels", {})}
        references = []
        if owner:
            hashed = "" if kind else "-5d9c7b8f6d"
            labels |= {} if kind else {"pod-template-hash": "5d9c7b8f6d"}
            references = [
                {
                    "apiVersion": "apps/v1",
                    "kind": kind or "ReplicaSet",
                    "name": owner_name + hashed,
                    "uid": "0",
                    "controller": True,
                }
            ]
        phase = metadata.pop("phase", "Running")
        self.create(
            "v1",
            "Pod",
            name,
            metadata={
                "namespace": "inference",
                "labels": labels,
                "ownerReferences": references,
                **metadata,
            },
            spec={"nodeName": node, "containers": [{"name": "main", "image": "main"}]},
            status={"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
        )

    def deployment(
        self, name: str, replicas: int, ready: int, namespace: str = "inference"
    ) -> None:
        self.create(
            "apps/v1",
            "Deployment",
            name,
            metadata={"namespace": namespace},
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "main", "image": "main"}]},
                },
            },
            status={"readyReplicas": ready},
        )

    def budget(self, name: str, app: str, allowed: int) -> None:
        self.create(
            "policy/v1",
            "PodDisruptionBudget",
            name,
            metadata={"namespace": "inference"},
            spec={"selector": {"matchLabels": {"app": app}}, "maxUnavailable": 1},
            status={
                "disruptionsAllowed": allowed,
                "currentHealthy": 1 + allowed,
                "desiredHealthy": 1,
                "expectedPods": 2,
                "observedGeneration": 1,
            },
        )

    def requests(self) -> tuple[Request, ...]:
        """What the function asked, without the handling of its token."""
        return tuple(one for one in self.stand_in.journal if one.user == USER)

    def writes(self) -> list[str]:
        return [
            f"{one.method} {one.path.partition('?')[0]} {one.status}"
            for one in self.requests()
            if one.method != "GET"
        ]


def clock() -> dt.datetime:
    return NOW


@contextmanager
def running_cluster(name: str = "gpu-prod") -> Iterator[ClusterUnderTest]:
    users = {TOKEN: User(USER, ("shiftwright",)), "stranger": User("stranger")}
    stand_in = StandIn(
        authenticate=users.get,
        cluster_roles=read_cluster_roles(MANIFEST.read_text()),
        clock=clock,
    )
    stand_in.start()
    try:
        yield ClusterUnderTest(stand_in, name)
    finally:
        stand_in.stop()
