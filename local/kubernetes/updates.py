"""What a patch may change, and which parts of an object the server keeps to itself."""

from typing import Literal, TypeAlias

from local.kubernetes.resources import Object, Resource
from local.kubernetes.status import bad_request, conflict, invalid, modified

# Which part of an object a patch may change: the status has an endpoint of its own.
Part: TypeAlias = Literal["all", "main", "status"]
_IMMUTABLE = ("name", "namespace", "creationTimestamp", "deletionTimestamp")
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_SERVER_SET = (*_DELETION, "name", "namespace", "uid", "creationTimestamp", "generation")


def check_identity(resource: Resource, current: Object, patch: Object) -> None:
    """A patch may say which object and which version of it is meant: 422 or 409 otherwise."""
    metadata, wanted = current["metadata"], patch.get("metadata") or {}
    if not isinstance(wanted, dict):
        raise bad_request("cannot decode the object: metadata must be an object")
    name = metadata["name"]
    causes = [
        cause_of(f"metadata.{key}", "field is immutable")
        for key in _IMMUTABLE
        if wanted.get(key) not in (None, metadata.get(key))
    ]
    if causes:
        raise invalid(resource, name, causes)
    if (wanted.get("uid") or metadata["uid"]) != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {wanted['uid']}, "
        raise conflict(resource, name, f"{why}UID in object meta: {metadata['uid']}")
    version = metadata["resourceVersion"]
    if (wanted.get("resourceVersion") or version) != version:
        raise modified(resource, name)


def cause_of(field: str, why: str) -> Object:
    """One field that is wrong."""
    return {"reason": "FieldValueInvalid", "message": f"Invalid value: {why}", "field": field}


def keep_rest(changed: Object, current: Object, part: Part) -> Object:
    """The changed object, with what is outside the part as it was."""
    if part == "all":
        return changed
    if part == "status":
        return {**current, "status": changed.get("status") or {}}
    kept = {key: value for key, value in changed.items() if key != "status"}
    return kept | ({"status": current["status"]} if "status" in current else {})


def with_server_set(changed: Object, current: Object) -> Object:
    """The changed object, with the fields that only the server sets as they were."""
    server_set = (*_SERVER_SET, "resourceVersion")
    metadata = {k: v for k, v in changed["metadata"].items() if k not in server_set}
    metadata |= {k: v for k, v in current["metadata"].items() if k in server_set}
    kept = {key: current[key] for key in ("apiVersion", "kind")}
    return {**changed, **kept, "metadata": metadata}


def is_released(current: Object, changed: Object) -> bool:
    """Whether the last finalizer of an object in deletion has just gone."""
    before, after = current["metadata"], changed["metadata"]
    held = "deletionTimestamp" in before and bool(before.get("finalizers"))
    return held and not after.get("finalizers") and not before.get("deletionGracePeriodSeconds")
