"""What a patch may change, and which parts of an object the server keeps to itself."""

from typing import Literal, TypeAlias

from local.kubernetes.patches import merge_patch
from local.kubernetes.resources import Object, Resource
from local.kubernetes.status import bad_request, invalid, modified, unreadable_version

# Which part of an object a patch may change: the status has an endpoint of its own.
Part: TypeAlias = Literal["all", "main", "status"]
_IMMUTABLE = ("uid", "deletionTimestamp")
# A resourceVersion that means any, though not to a custom resource.
_ANY_VERSION = (None, "", "0")
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_SERVER_SET = (*_DELETION, "name", "namespace", "uid", "creationTimestamp", "generation")


def check_identity(resource: Resource, current: Object, patch: Object) -> None:
    """A patch may say which object and which version of it is meant: 400, 422 or 409 otherwise."""
    metadata, wanted = current["metadata"], patch.get("metadata", {})
    check_names(current, patch)
    name = metadata["name"]
    causes = [
        cause_of(f"metadata.{key}", f'"{wanted[key]}": field is immutable')
        for key in _IMMUTABLE
        if wanted.get(key) not in (None, metadata.get(key))
    ]
    if causes:
        raise invalid(resource, name, causes)
    version = wanted.get("resourceVersion")
    if version in _ANY_VERSION and resource.custom and "resourceVersion" in wanted:
        cause = cause_of("metadata.resourceVersion", "0: must be specified for an update")
        raise invalid(resource, name, [cause])
    if version in _ANY_VERSION or version == metadata["resourceVersion"]:
        return
    if isinstance(version, str) and not (version.isascii() and version.isdigit()):
        raise unreadable_version(version)
    raise modified(resource, name)


def check_names(current: Object, patch: Object) -> None:
    """A patch must leave an object its name and its namespace: 400 otherwise."""
    metadata, wanted = current["metadata"], patch.get("metadata", {})
    if wanted is not None and not isinstance(wanted, dict):
        raise bad_request("cannot decode the object: metadata must be an object")
    changed = merge_patch(metadata, wanted) or {}
    name, changed_name = metadata["name"], changed.get("name")
    if not changed_name:
        why = "was undeterminable: name must be provided"
        raise bad_request(f"the name of the object ({name} based on URL) {why}")
    if changed_name != name:
        why = f"does not match the name on the URL ({name})"
        raise bad_request(f"the name of the object ({changed_name}) {why}")
    # An object without a namespace gets none; the server takes no notice.
    namespace = metadata.get("namespace")
    if namespace and changed.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


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
