"""The scale of a Deployment: its replicas and nothing else."""

from local.kubernetes.patches import merge_patch
from local.kubernetes.resources import DEPLOYMENTS, Object, Resource
from local.kubernetes.status import ApiError, conflict, invalid, undecodable
from local.kubernetes.store import Store
from local.kubernetes.updates import cause_of, check_names

_SCALE = Resource(group="autoscaling", plural="scales", kind="Scale")
_SUBRESOURCE = Resource(group="apps", plural="deployments/scale", kind="Deployment")


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
    """Set the replicas; 409 if the patch names an older resourceVersion or another uid."""
    with store.lock:
        current = get_scale(store, namespace, name)
        check_names(current, patch)
        scale = merge_patch(current, patch)
        wanted = {
            "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion")},
            "spec": {"replicas": _replicas(name, scale)},
        }
        _check_uid(name, current["metadata"]["uid"], scale["metadata"].get("uid"))
        store.patch(DEPLOYMENTS, name, wanted, namespace, part="main")
        return get_scale(store, namespace, name)


def _replicas(name: str, scale: Object) -> int:
    """What the Scale asks for; nothing is 0. Raises ApiError if it is no Scale."""
    if (scale.get("apiVersion"), scale.get("kind")) != ("autoscaling/v1", "Scale"):
        raise undecodable(f"no kind {scale.get('kind')} is registered for the Scale's version")
    # A null leaves the spec out, and with it the replicas.
    spec = scale.get("spec", {})
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool) or abs(replicas) >= 2**31:
        raise undecodable("spec.replicas must be an int32")
    if replicas < 0:
        rule = f"{replicas}: must be greater than or equal to 0"
        raise invalid(_SCALE, name, [cause_of("spec.replicas", rule)])
    return replicas


def _check_uid(name: str, found: str, wanted: str | None) -> None:
    if wanted and wanted != found:
        raise _another_uid(name, found, wanted)


def _another_uid(name: str, found: str, wanted: str) -> ApiError:
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(_SUBRESOURCE, name, why)
