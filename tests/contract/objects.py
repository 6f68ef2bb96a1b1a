"""Objects that a real API server accepts too, and the paths where they live."""

from typing import Any

NODES = "/api/v1/nodes"
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_REQUIREMENT = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


def budgets(namespace: str) -> str:
    return f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def pod(name: str, *, node_name: str = "", **labels: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "model", "image": "registry.example/model"}],
        "automountServiceAccountToken": False,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": spec | ({"nodeName": node_name} if node_name else {}),
    }


def deployment(name: str, replicas: int) -> dict[str, Any]:
    template = pod("", app=name)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
        },
    }


def budget(name: str, **match_labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": match_labels}},
    }


def budget_status(allowed: int, healthy: int = 2) -> dict[str, Any]:
    counts = {"currentHealthy": healthy, "desiredHealthy": healthy - allowed, "expectedPods": 2}
    return {"status": {"observedGeneration": 1, "disruptionsAllowed": allowed, **counts}}


def node_pool(name: str, **spec: object) -> dict[str, Any]:
    template = {"spec": {"nodeClassRef": _CLASS, "requirements": [_REQUIREMENT]}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def node_claim(name: str, finalizers: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "finalizers": finalizers},
        "spec": {"nodeClassRef": _CLASS, "requirements": [_REQUIREMENT]},
    }


def eviction(name: str, *, uid: str = "") -> dict[str, Any]:
    options = {"preconditions": {"uid": uid}} if uid else {}
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": options,
    }
