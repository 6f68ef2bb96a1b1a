"""A pair of Deployments and the NodePools below it, apart from every other test's."""

import dataclasses
import datetime as dt
from typing import Any

from control_plane.api import Api
from lambdas.core.policy import Cluster, Pool, Workload
from local.kubernetes.facts import GPU
from local.kubernetes.resources import Object
from tests.cluster.observer import BUDGETS, CAPACITY_LABEL, DEPLOYMENTS, Observer

TYPE_LABEL = "node.kubernetes.io/instance-type"
SCENE_LABEL = "scene.example.com/name"
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
NODE_CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODE_CLASS = "default"
# Pods ask for two of its four GPUs: two replicas a node.
FOUR_GPUS = "g4dn.12xlarge"
ONE_GPU = "g4dn.xlarge"
APP = "chat"
HALVES = ("spot", "on-demand")


@dataclasses.dataclass(frozen=True)
class Scene:
    """Names and objects of one test. Everything is in the namespace and the pools of its name."""

    api: Api
    observer: Observer
    name: str

    def pool(self, half: str) -> str:
        return f"{self.name}-{half}"

    def policy(self, replicas: int, base: int) -> Cluster:
        """The policy for the pair."""
        return Cluster(
            region="eu-west-1",
            pools={"gpu": Pool(spot=self.pool("spot"), on_demand=self.pool("on-demand"))},
            workloads={
                APP: Workload(
                    namespace=self.name,
                    pool="gpu",
                    spot=f"{APP}-spot",
                    on_demand=f"{APP}-on-demand",
                    replicas=replicas,
                    on_demand_base=base,
                )
            },
        )

    # Making

    def make_pool(self, half: str, instance_type: str, weight: int, **spec: Any) -> None:
        """A NodePool; its nodes stay unless `disruption` says otherwise."""
        requirements = {
            CAPACITY_LABEL: half,
            TYPE_LABEL: instance_type,
            "kubernetes.io/arch": "amd64",
        }
        template = {
            "metadata": {"labels": {SCENE_LABEL: self.name, **spec.pop("labels", {})}},
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.kwok.sh",
                    "kind": "KWOKNodeClass",
                    "name": NODE_CLASS,
                },
                "requirements": [
                    {"key": key, "operator": "In", "values": [value]}
                    for key, value in requirements.items()
                ],
            },
        }
        disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
        body = {"disruption": disruption, "weight": weight, "template": template, **spec}
        self._create(NODE_POOLS, "karpenter.sh/v1", "NodePool", self.pool(half), spec=body)

    def weigh(self, spot: int, on_demand: int) -> None:
        """Set the weights of the two pools."""
        for half, weight in zip(HALVES, (spot, on_demand), strict=True):
            self.api.merge(f"{NODE_POOLS}/{self.pool(half)}", {"spec": {"weight": weight}})

    def make_deployment(self, name: str, replicas: int, gpus: int, half: str = "") -> None:
        """Replicas that ask for GPUs on one half of the pair's nodes, or on any of the scene."""
        labels = {"app": APP, "deployment": name}
        selector = {SCENE_LABEL: self.name, **({CAPACITY_LABEL: half} if half else {})}
        container = {
            "name": "model",
            "image": "registry.example.com/model:1",
            "resources": {"limits": {GPU: str(gpus)}},
        }
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "nodeSelector": selector},
            },
        }
        self._create(self._in("apps/v1", "deployments"), "apps/v1", "Deployment", name, spec=spec)

    def make_pair(self, spot: int, on_demand: int, gpus: int) -> None:
        for half, replicas in zip(HALVES, (spot, on_demand), strict=True):
            self.make_deployment(f"{APP}-{half}", replicas, gpus, half)

    def make_entrance(self) -> None:
        """The Service over both halves, and an Ingress before it."""
        port = {"port": 80, "targetPort": 8080}
        service = {"selector": {"app": APP}, "ports": [port]}
        self._create(f"/api/v1/namespaces/{self.name}/services", "v1", "Service", APP, spec=service)
        backend = {"service": {"name": APP, "port": {"number": 80}}}
        paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
        rule = {"host": f"{APP}.example.com", "http": {"paths": paths}}
        version = "networking.k8s.io/v1"
        where = self._in(version, "ingresses")
        self._create(where, version, "Ingress", APP, spec={"rules": [rule]})

    def make_budget(self, floor: int) -> None:
        """The floor of ready replicas, both halves together."""
        selector = {"matchLabels": {"app": APP}}
        spec = {"minAvailable": floor, "selector": selector}
        where = self._in("policy/v1", "poddisruptionbudgets")
        self._create(where, "policy/v1", "PodDisruptionBudget", APP, spec=spec)

    def scale(self, deployment: str, replicas: int) -> None:
        path = f"{self._in('apps/v1', 'deployments')}/{deployment}/scale"
        self.api.merge(path, {"spec": {"replicas": replicas}})

    def make_namespace(self) -> None:
        self._create("/api/v1/namespaces", "v1", "Namespace", self.name)

    def clear(self) -> None:
        """Let everything go; Karpenter takes the nodes with their pools."""
        self.api.delete(f"/api/v1/namespaces/{self.name}")
        for pool in self.api.get(NODE_POOLS)["items"]:
            name = pool["metadata"]["name"]
            if name.startswith(f"{self.name}-"):
                self.api.delete(f"{NODE_POOLS}/{name}")

    # Seeing

    def machines(self, half: str) -> list[Object]:
        """What a pool still has: its nodes, and the claims behind them."""
        pool = self.pool(half)
        return [*self.observer.nodes(pool=pool), *self.observer.claims(pool)]

    def spread(self) -> dict[str, int]:
        """How many spot replicas are on each node."""
        counts: dict[str, int] = {}
        for pod in self.observer.pods(self.name, deployment=f"{APP}-spot"):
            node = pod["spec"].get("nodeName", "")
            counts[node] = counts.get(node, 0) + 1
        return counts

    def until_ready(self, replicas: int, seconds: float = 60, **labels: str) -> None:
        """Wait until exactly so many replicas are there, all of them ready."""
        what = f"{replicas} ready replicas in {self.name} {labels or ''}"
        self.observer.until(
            lambda: (
                len(self.observer.pods(self.name, **labels))
                == len(self.observer.ready_pods(self.name, **labels))
                == replicas
            ),
            what,
            seconds,
        )

    def until_reachable(self, replicas: int) -> None:
        """Wait until so many addresses stand behind the Service."""
        self.observer.until(
            lambda: self.observer.ready_endpoints(self.name, APP) == replicas,
            f"{replicas} addresses behind the Service of {self.name}",
        )

    def until_settled(self, allowed: int) -> None:
        """Wait until the Deployments' and the budget's status have caught up with the pods."""
        self.observer.until(
            lambda: (
                all(self._is_settled(f"{APP}-{half}") for half in HALVES)
                and self._allowed() == allowed
            ),
            f"{self.name} to settle with {allowed} disruptions allowed",
        )

    def _is_settled(self, deployment: str) -> bool:
        body = self.observer.named(DEPLOYMENTS, deployment, self.name) or {}
        ready: int = (body.get("status") or {}).get("readyReplicas", 0)
        return bool(body) and ready == body["spec"]["replicas"]

    def _allowed(self) -> int | None:
        body = self.observer.named(BUDGETS, APP, self.name) or {}
        allowed: int | None = (body.get("status") or {}).get("disruptionsAllowed")
        return allowed

    def replicas(self, half: str) -> int:
        body = self.api.get(f"{self._in('apps/v1', 'deployments')}/{APP}-{half}")
        return int(body["spec"]["replicas"])

    def fewest_ready(self, since: dt.datetime) -> int:
        return self.observer.fewest_ready(self.name, APP, since)

    def _in(self, version: str, plural: str) -> str:
        return f"/apis/{version}/namespaces/{self.name}/{plural}"

    def _create(self, path: str, version: str, kind: str, name: str, **body: Any) -> None:
        metadata = {"name": name}
        self.api.create(path, {"apiVersion": version, "kind": kind, "metadata": metadata, **body})
