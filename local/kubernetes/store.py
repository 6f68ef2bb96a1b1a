"""Where the objects are: versions, generations, deletion with grace and finalizers."""

import datetime as dt
import itertools
import threading
import uuid

from local.kubernetes.admission import validate, with_defaults
from local.kubernetes.options import ListOptions, Preconditions
from local.kubernetes.pages import NOW, Page, Snapshots, cut, decode_token, key_of
from local.kubernetes.patches import merge_patch
from local.kubernetes.resources import (
    NAMESPACES,
    PODS,
    RESOURCES,
    Clock,
    Object,
    Resource,
    moment_of,
    resource_of,
    rfc3339,
)
from local.kubernetes.selectors import field_test, label_test
from local.kubernetes.shapes import ShapeError, check_shape
from local.kubernetes.status import (
    ApiError,
    already_exists,
    bad_request,
    invalid,
    not_found,
    precondition_failed,
    undecodable,
)
from local.kubernetes.updates import (
    Part,
    cause_of,
    check_identity,
    is_released,
    keep_rest,
    with_server_set,
)

# Makes uids that are the same in every run.
_UIDS = uuid.UUID("6f1c8a52-7f0e-4d5c-9a43-2f6f0d7f2b11")
_ANY = Preconditions()
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
        try:
            check_shape(resource, body)
        except ShapeError as error:
            raise bad_request(str(error)) from error
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
            check_identity(resource, current, patch)
            changed = keep_rest(merge_patch(current, patch), current, part)
            try:
                check_shape(resource, changed)
            except ShapeError as error:
                raise _no_longer_a(resource, name, str(error)) from error
            changed = with_server_set(with_defaults(resource, changed), current)
            validate(resource, changed)
            if changed == current:
                return current
            if resource.counts_generations and changed["spec"] != current["spec"]:
                changed["metadata"]["generation"] += 1
            if is_released(current, changed):
                return self.remove(resource, name, namespace)
            return self._put(resource, (namespace, name), changed)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        expected: Preconditions = _ANY,
        grace_seconds: int | None = None,
    ) -> Object:
        """Delete an object, or mark it as terminating where grace or a finalizer holds it."""
        with self.lock:
            current = self.get(resource, name, namespace)
            metadata = current["metadata"]
            _check_preconditions(resource, metadata, expected)
            grace = _grace_seconds(resource, current, grace_seconds)
            if grace == 0 and not metadata.get("finalizers"):
                return self.remove(resource, name, namespace)
            began = self.clock()
            if "deletionTimestamp" in metadata:
                # Grace that has begun can only be shortened.
                left = metadata.get("deletionGracePeriodSeconds", 0)
                if grace_seconds is None or grace >= left:
                    return current
                began = moment_of(metadata["deletionTimestamp"]) - dt.timedelta(seconds=left)
            elif resource.counts_generations:
                metadata = metadata | {"generation": metadata["generation"] + 1}
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


def _no_longer_a(resource: Resource, name: str, why: str) -> ApiError:
    """A custom resource is held against its schema, any other is decoded into its type."""
    if resource.custom:
        return invalid(resource, name, [cause_of("patch", why)])
    return undecodable(why)


def _check_preconditions(resource: Resource, metadata: Object, expected: Preconditions) -> None:
    """409 if another object or another version of it is meant."""
    for what, wanted, found, then in (
        ("UID", expected.uid, metadata["uid"], "deleted and then recreated"),
        (
            "ResourceVersion",
            expected.resource_version,
            metadata["resourceVersion"],
            "modified",
        ),
    ):
        if wanted and wanted != found:
            why = (
                f"the {what} in the precondition ({wanted}) does not match the {what} in record "
                f"({found}). The object might have been {then}"
            )
            raise precondition_failed(resource, metadata["name"], why)


def _grace_seconds(resource: Resource, body: Object, asked: int | None) -> int:
    """Only a pod that runs on a node has grace."""
    if resource != PODS or not body["spec"].get("nodeName"):
        return 0
    if body["status"].get("phase") in _FINISHED:
        return 0
    if asked is None:
        return int(body["spec"]["terminationGracePeriodSeconds"])
    return asked if asked >= 0 else 1
