"""Where the objects are: versions, generations, deletion with grace and finalizers."""

import datetime as dt
import itertools
import threading
import uuid
from typing import Literal, TypeAlias

from local.kubernetes.admission import validate, with_defaults
from local.kubernetes.options import ListOptions
from local.kubernetes.pages import NOW, Page, Snapshots, cut, decode_token, key_of
from local.kubernetes.patches import merge_patch
from local.kubernetes.resources import (
    NAMESPACES,
    PODS,
    RESOURCES,
    Clock,
    Object,
    Resource,
    resource_of,
    rfc3339,
)
from local.kubernetes.selectors import field_test, label_test
from local.kubernetes.shapes import check_shape
from local.kubernetes.status import already_exists, bad_request, conflict, modified, not_found

# Which part of an object a patch may change: the status has an endpoint of its own.
Part: TypeAlias = Literal["all", "main", "status"]
# Makes uids that are the same in every run.
_UIDS = uuid.UUID("6f1c8a52-7f0e-4d5c-9a43-2f6f0d7f2b11")
_SERVER_SET = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "namespace")
_FINISHED = ("Succeeded", "Failed")


class Store:
    """Every object of the cluster. All methods are thread-safe and raise ApiError.

    Objects that are handed out are shared: read them, and write through `patch`.
    """

    def __init__(self, clock: Clock) -> None:
        # Held by whoever reads, decides and writes as one step.
        self.lock = threading.RLock()
        self.clock = clock
        self.snapshots = Snapshots()
        self._version = 0
        self._objects: dict[Resource, dict[tuple[str, str], Object]]
        self._objects = {resource: {} for resource in RESOURCES}
        for name in ("default", "kube-system"):
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def create(self, body: Object) -> Object:
        """Store a new object; its apiVersion and kind say which resource it is."""
        resource = resource_of(body)
        check_shape(resource, body)
        # A null is a field that is not there.
        stored = with_defaults(resource, merge_patch({}, body))
        metadata = stored["metadata"]
        with self.lock:
            self._name(resource, metadata)
            validate(resource, stored)
            namespace = self._namespace(resource, metadata)
            key = (namespace, metadata["name"])
            if key in self._objects[resource]:
                raise already_exists(resource, metadata["name"])
            metadata["uid"] = str(uuid.uuid5(_UIDS, str(self._version + 1)))
            metadata["creationTimestamp"] = rfc3339(self.clock())
            if resource.counts_generations:
                metadata["generation"] = 1
            return self._put(resource, key, stored)

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The object, or None."""
        with self.lock:
            return self._objects[resource].get((namespace, name))

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """The object; 404 if there is none."""
        found = self.find(resource, name, namespace)
        if found is None:
            raise not_found(resource, name)
        return found

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Object, ...]:
        """The objects that the selectors accept, by namespace and name."""
        return self.page(resource, namespace, ListOptions(labels, fields)).items

    def page(self, resource: Resource, namespace: str, options: ListOptions) -> Page:
        """One page of a list; every page of it shows the same moment."""
        accepts_labels = label_test(options.labels)
        accepts_fields = field_test(resource, options.fields)
        with self.lock:
            version, start, objects = self._listed(resource, options.token)
        wanted = tuple(
            body
            for body in objects
            if namespace in ("", body["metadata"].get("namespace"))
            and (not start or key_of(body) > start)
            and accepts_labels(body["metadata"].get("labels") or {})
            and accepts_fields(body)
        )
        counted = not (options.labels or options.fields)
        page = cut(wanted, version, options.limit, counted=counted)
        if page.continue_token:
            self.snapshots.keep(version, resource, objects)
        return page

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str = "",
        *,
        part: Part = "all",
    ) -> Object:
        """Apply a merge patch; a metadata.resourceVersion in it must be the current one."""
        with self.lock:
            current = self.get(resource, name, namespace)
            _check_identity(resource, current, patch)
            changed = _keep_rest(merge_patch(current, patch), current, part)
            check_shape(resource, changed)
            changed = with_defaults(resource, changed)
            _keep_server_set(changed["metadata"], current["metadata"])
            validate(resource, changed)
            if changed == current:
                return current
            if resource.counts_generations and changed["spec"] != current["spec"]:
                changed["metadata"]["generation"] += 1
            if _is_released(current, changed):
                return self.remove(resource, name, namespace)
            return self._put(resource, (namespace, name), changed)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace_seconds: int | None = None,
    ) -> Object:
        """Delete an object, or mark it as terminating where grace or a finalizer holds it."""
        with self.lock:
            current = self.get(resource, name, namespace)
            metadata = current["metadata"]
            if uid and uid != metadata["uid"]:
                why = f"the UID in the precondition ({uid}) does not match ({metadata['uid']})"
                raise conflict(resource, name, why)
            grace = _grace_seconds(resource, current, grace_seconds)
            if grace == 0 and not metadata.get("finalizers"):
                return self.remove(resource, name, namespace)
            began = self.clock()
            if "deletionTimestamp" in metadata:
                left = metadata["deletionGracePeriodSeconds"]
                if grace_seconds is None or grace >= left:
                    return current
                began = dt.datetime.fromisoformat(metadata["deletionTimestamp"])
                began -= dt.timedelta(seconds=left)
            marks = {
                "deletionTimestamp": rfc3339(began + dt.timedelta(seconds=grace)),
                "deletionGracePeriodSeconds": grace,
            }
            marked = {**current, "metadata": metadata | marks}
            return self._put(resource, (namespace, name), marked)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Take an object away at once, whatever holds it."""
        with self.lock:
            removed = self.get(resource, name, namespace)
            del self._objects[resource][(namespace, name)]
            self._version += 1
            return removed

    def _listed(self, resource: Resource, token: str) -> tuple[int, str, tuple[Object, ...]]:
        """The list that a token goes on with: its version, the last key seen, its objects."""
        version, start = decode_token(token) if token else (NOW, "")
        if version != NOW:
            return version, start, self.snapshots.get(version, resource, start)
        objects = sorted(self._objects[resource].values(), key=key_of)
        return self._version, start, tuple(objects)

    def _put(self, resource: Resource, key: tuple[str, str], body: Object) -> Object:
        self._version += 1
        metadata = body["metadata"] | {"resourceVersion": str(self._version)}
        stored = {**body, "metadata": metadata}
        self._objects[resource][key] = stored
        return stored

    def _name(self, resource: Resource, metadata: Object) -> None:
        prefix, namespace = metadata.get("generateName"), metadata.get("namespace", "default")
        if not prefix or metadata.get("name"):
            return
        for attempt in itertools.count():
            digits = uuid.uuid5(_UIDS, f"name {self._version} {attempt}").hex
            name = f"{prefix[:240]}{digits[:5]}"
            if self.find(resource, name, namespace if resource.namespaced else "") is None:
                metadata["name"] = name
                return

    def _namespace(self, resource: Resource, metadata: Object) -> str:
        if not resource.namespaced:
            metadata.pop("namespace", None)
            return ""
        namespace: str = metadata.setdefault("namespace", "default")
        if (home := self.find(NAMESPACES, namespace)) is None:
            raise not_found(NAMESPACES, namespace)
        return str(home["metadata"]["name"])


def _check_identity(resource: Resource, current: Object, patch: Object) -> None:
    """A patch may say which version and which object it means."""
    metadata, wanted = current["metadata"], patch.get("metadata") or {}
    if not isinstance(wanted, dict):
        raise bad_request("cannot decode the object: metadata must be an object")
    name = metadata["name"]
    if (wanted.get("name") or name) != name:
        message = f"the name of the object ({wanted['name']}) does not match the URL ({name})"
        raise bad_request(message)
    if (wanted.get("uid") or metadata["uid"]) != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {wanted['uid']}, "
        raise conflict(resource, name, f"{why}UID in object meta: {metadata['uid']}")
    version = metadata["resourceVersion"]
    if (wanted.get("resourceVersion") or version) != version:
        raise modified(resource, name)


def _keep_rest(changed: Object, current: Object, part: Part) -> Object:
    if part == "all":
        return changed
    if part == "status":
        return {**current, "status": changed.get("status") or {}}
    kept = {key: value for key, value in changed.items() if key != "status"}
    return kept | ({"status": current["status"]} if "status" in current else {})


def _keep_server_set(metadata: Object, current: Object) -> None:
    for key in (*_SERVER_SET, "name", "resourceVersion"):
        metadata.pop(key, None)
        if key in current:
            metadata[key] = current[key]


def _is_released(current: Object, changed: Object) -> bool:
    """Whether the last finalizer of an object in deletion has just gone."""
    before, after = current["metadata"], changed["metadata"]
    held = "deletionTimestamp" in before and bool(before.get("finalizers"))
    return held and not after.get("finalizers") and not before["deletionGracePeriodSeconds"]


def _grace_seconds(resource: Resource, body: Object, asked: int | None) -> int:
    """Only a pod that runs on a node has grace."""
    if resource != PODS or not body["spec"].get("nodeName"):
        return 0
    if body["status"].get("phase") in _FINISHED:
        return 0
    if asked is None:
        return int(body["spec"]["terminationGracePeriodSeconds"])
    return asked if asked >= 0 else 1
