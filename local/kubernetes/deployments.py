"""Plays the Deployment and ReplicaSet controllers. A changed template is not rolled out."""

import hashlib
import json

from local.kubernetes.facts import (
    is_active,
    is_ready,
    owner_of,
    owner_reference,
    path_of,
)
from local.kubernetes.happenings import Say
from local.kubernetes.resources import DEPLOYMENTS, PODS, REPLICA_SETS, Object, moment_of
from local.kubernetes.store import Store

_HASH_LABEL = "pod-template-hash"
# As the ReplicaSet controller: so many new pods in one round at most.
_BURST = 500


def reconcile_deployments(store: Store, say: Say) -> None:
    """Make pods, or take them away, until each Deployment has its replicas."""
    for deployment in store.list(DEPLOYMENTS):
        replica_set = _replica_set(store, deployment)
        before, wanted = replica_set["spec"]["replicas"], deployment["spec"]["replicas"]
        if before != wanted:
            replica_set = _patch(store, replica_set, {"spec": {"replicas": wanted}})
            say("scaled", path_of(deployment), f"from {before} to {wanted} replicas")
        _reconcile_pods(store, replica_set)


def collect_orphans(store: Store) -> None:
    """Delete what belonged to a Deployment or ReplicaSet that is gone."""
    for resource, owners in ((REPLICA_SETS, DEPLOYMENTS), (PODS, REPLICA_SETS)):
        alive = {owner["metadata"]["uid"] for owner in store.list(owners)}
        for body in store.list(resource):
            owner, metadata = owner_of(body), body["metadata"]
            if owner.get("kind") == owners.kind and owner.get("uid") not in alive:
                store.delete(resource, metadata["name"], metadata["namespace"])


def report_deployments(store: Store) -> None:
    """Write how many replicas there are, and how many are ready."""
    for deployment in store.list(DEPLOYMENTS):
        pods = [pod for pod in _pods_of(store, _replica_set(store, deployment)) if is_active(pod)]
        ready = sum(map(is_ready, pods))
        missing = max(0, deployment["spec"]["replicas"] - ready)
        counts = {
            "replicas": len(pods),
            "updatedReplicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": missing,
        }
        # As the real server writes it: a count of 0 is left out.
        status: Object = {key: count or None for key, count in counts.items()}
        status["observedGeneration"] = deployment["metadata"]["generation"]
        _patch(store, deployment, {"status": status})


def _replica_set(store: Store, deployment: Object) -> Object:
    namespace, uid = deployment["metadata"]["namespace"], deployment["metadata"]["uid"]
    for replica_set in store.list(REPLICA_SETS, namespace):
        if owner_of(replica_set).get("uid") == uid:
            return replica_set
    return store.create(_new_replica_set(deployment))


def _new_replica_set(deployment: Object) -> Object:
    template, metadata = deployment["spec"]["template"], deployment["metadata"]
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]
    template_metadata = template["metadata"]
    labels = template_metadata["labels"] | {_HASH_LABEL: digest}
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": deployment["spec"]["replicas"],
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": template_metadata | {"labels": labels}},
        },
    }


def _reconcile_pods(store: Store, replica_set: Object) -> None:
    pods = [pod for pod in _pods_of(store, replica_set) if is_active(pod)]
    missing = replica_set["spec"]["replicas"] - len(pods)
    for _ in range(min(missing, _BURST)):
        store.create(_new_pod(replica_set))
    for pod in sorted(pods, key=_worth)[: max(0, -missing)]:
        store.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])


def _worth(pod: Object) -> tuple[bool, bool, float]:
    """The order in which a scale-down takes pods: without a node, not ready, newest first."""
    created = moment_of(pod["metadata"]["creationTimestamp"])
    return bool(pod["spec"].get("nodeName")), is_ready(pod), -created.timestamp()


def _new_pod(replica_set: Object) -> Object:
    template, metadata = replica_set["spec"]["template"], replica_set["metadata"]
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **template["metadata"],
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner_reference(replica_set)],
        },
        "spec": template["spec"],
    }


def _pods_of(store: Store, replica_set: Object) -> list[Object]:
    namespace, uid = replica_set["metadata"]["namespace"], replica_set["metadata"]["uid"]
    return [pod for pod in store.list(PODS, namespace) if owner_of(pod).get("uid") == uid]


def _patch(store: Store, body: Object, patch: Object) -> Object:
    resource = DEPLOYMENTS if body["kind"] == DEPLOYMENTS.kind else REPLICA_SETS
    metadata = body["metadata"]
    return store.patch(resource, metadata["name"], patch, metadata["namespace"])
