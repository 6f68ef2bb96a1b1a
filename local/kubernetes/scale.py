"""The scale of a Deployment: its replicas and nothing else."""

from local.kubernetes.patches import merge_patch
from local.kubernetes.resources import DEPLOYMENTS, Object
from local.kubernetes.status import bad_request
from local.kubernetes.store import Store


def get_scale(store: Store, namespace: str, name: str) -> Object:
    """The Scale object; as with the real server, a count of 0 is left out of the spec."""
    deployment = store.get(DEPLOYMENTS, name, namespace)
    replicas = deployment["spec"]["replicas"]
    labels = deployment["spec"]["selector"]["matchLabels"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: deployment["metadata"][key] for key in kept},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {
            "replicas": (deployment.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }


def patch_scale(store: Store, namespace: str, name: str, patch: Object) -> Object:
    """Set the replicas; 409 if the patch names an older resourceVersion."""
    with store.lock:
        scale = merge_patch(get_scale(store, namespace, name), patch)
        if not isinstance(scale.get("metadata"), dict) or not isinstance(scale.get("spec"), dict):
            raise bad_request("cannot decode the Scale: metadata and spec must be objects")
        wanted = {
            "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion")},
            "spec": {"replicas": scale["spec"].get("replicas", 0)},
        }
        store.patch(DEPLOYMENTS, name, wanted, namespace, part="main")
        return get_scale(store, namespace, name)
