"""One request of the Kubernetes API, from who may do it to the object that comes back."""

import dataclasses
from collections.abc import Callable, Sequence

from local.kubernetes.authorization import ANONYMOUS, ClusterRole, User, authorize
from local.kubernetes.discovery import document_at
from local.kubernetes.eviction import evict
from local.kubernetes.options import (
    delete_options,
    list_options,
    parse_body,
    parse_query,
)
from local.kubernetes.patches import MERGE_PATCH, merge_patch
from local.kubernetes.resources import NAMESPACES, NODES, PODS, Object, Resource, find_resource
from local.kubernetes.routes import Route, parse_path, verb_of
from local.kubernetes.scale import get_scale, patch_scale
from local.kubernetes.status import (
    bad_request,
    invalid,
    method_not_allowed,
    success,
    unauthorized,
    unknown_group,
    unknown_media_type,
    unknown_path,
    unsupported_media_type,
)
from local.kubernetes.store import Store
from local.kubernetes.updates import Part

# Groups whose server answers for what it does not have, too.
_BUILT_IN = ("", "apps", "policy")
# What the real server takes for a custom resource.
_CUSTOM_PATCHES = ("application/json-patch+json", MERGE_PATCH, "application/apply-patch+yaml")
_PATCHES = (*_CUSTOM_PATCHES, "application/strategic-merge-patch+json")


@dataclasses.dataclass(frozen=True)
class Call:
    """A request as it came over the wire. The target is a path with its query."""

    method: str
    target: str
    user: User
    content_type: str = ""
    body: bytes = b""


@dataclasses.dataclass(frozen=True)
class Reply:
    """What goes back: the HTTP status and a JSON value, or a plain word."""

    status: int
    body: Object | str


@dataclasses.dataclass(frozen=True)
class _Subject:
    """What a call is about, once its path is known to mean something."""

    resource: Resource
    namespace: str
    name: str
    parameters: dict[str, str]
    call: Call


class Api:
    """The API over one store. `handle` raises ApiError."""

    def __init__(self, store: Store, roles: Sequence[ClusterRole]) -> None:
        self._store = store
        self._roles = roles
        self._endpoints: dict[tuple[str, str], Callable[[_Subject], Reply]] = {
            ("get", ""): self._get,
            ("list", ""): self._list,
            ("create", ""): self._create,
            ("patch", ""): self._patch,
            ("delete", ""): self._delete,
            ("get", "status"): self._get,
            ("patch", "status"): self._patch_status,
            ("get", "scale"): self._get_scale,
            ("patch", "scale"): self._patch_scale,
            ("create", "eviction"): self._evict,
        }

    def handle(self, call: Call) -> Reply:
        """Authorize the call, find what it is about, and carry it out."""
        path, _, query = call.target.partition("?")
        route = parse_path(path)
        verb = verb_of(call.method, route)
        authorize(self._roles, call.user, verb, route)
        if not route.plural:
            return self._document(call.method, path)
        resource = _resource_of(route)
        endpoint = self._endpoints.get((verb, route.subresource))
        if endpoint is None or not _is_allowed(verb, route, resource):
            raise method_not_allowed()
        subject = _Subject(resource, route.namespace, route.name, parse_query(query), call)
        return endpoint(subject)

    def _document(self, method: str, path: str) -> Reply:
        document = document_at(path)
        if document is None:
            raise unknown_group()
        if method != "GET":
            raise method_not_allowed()
        return Reply(200, document)

    def _get(self, subject: _Subject) -> Reply:
        return Reply(200, self._store.get(subject.resource, subject.name, subject.namespace))

    def _list(self, subject: _Subject) -> Reply:
        options = list_options(subject.parameters)
        page = self._store.page(subject.resource, subject.namespace, options)
        metadata: Object = {"resourceVersion": str(page.resource_version)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        body = {
            "kind": f"{subject.resource.kind}List",
            "apiVersion": subject.resource.api_version,
            "metadata": metadata,
            # As with the real server, a custom resource says its kind in each item.
            "items": [_item(subject.resource, each) for each in page.items],
        }
        return Reply(200, body)

    def _create(self, subject: _Subject) -> Reply:
        resource, body = subject.resource, _object(subject.call)
        if (body.get("apiVersion"), body.get("kind")) != (resource.api_version, resource.kind):
            expected = f"{resource.api_version} {resource.kind}"
            raise bad_request(f"the object provided is unrecognized (must be {expected})")
        metadata = _new_metadata(subject, body.get("metadata") or {})
        # Of the kinds here, only a node brings its status along: the kubelet registers with it.
        kept = {key: value for key, value in body.items() if key != "status" or resource == NODES}
        return Reply(201, self._store.create({**kept, "metadata": metadata}))

    def _patch(self, subject: _Subject) -> Reply:
        patch = _merge_patch(subject)
        if subject.resource == PODS and self._changes_spec(subject, patch):
            cause = {"reason": "FieldValueForbidden", "field": "spec"}
            message = "Forbidden: pod updates may not change the spec"
            raise invalid(PODS, subject.name, [cause | {"message": message}])
        return self._patched(subject, patch, "main")

    def _changes_spec(self, subject: _Subject, patch: Object) -> bool:
        current = self._store.get(subject.resource, subject.name, subject.namespace)
        return bool(merge_patch(current, patch).get("spec") != current["spec"])

    def _patch_status(self, subject: _Subject) -> Reply:
        return self._patched(subject, _merge_patch(subject), "status")

    def _patched(self, subject: _Subject, patch: Object, part: Part) -> Reply:
        patched = self._store.patch(
            subject.resource, subject.name, patch, subject.namespace, part=part
        )
        return Reply(200, patched)

    def _delete(self, subject: _Subject) -> Reply:
        options = delete_options(parse_body(subject.call.body), subject.parameters)
        where = (subject.resource, subject.name, subject.namespace)
        with self._store.lock:
            deleted = self._store.delete(
                *where,
                expected=options.expected,
                grace_seconds=options.grace_seconds,
            )
            gone = self._store.find(*where) is None
        if not gone or subject.resource == PODS:
            return Reply(200, deleted)
        details = {
            "name": subject.name,
            "group": subject.resource.group,
            "kind": subject.resource.plural,
            "uid": deleted["metadata"]["uid"],
        }
        return Reply(200, success(200, {key: value for key, value in details.items() if value}))

    def _get_scale(self, subject: _Subject) -> Reply:
        return Reply(200, get_scale(self._store, subject.namespace, subject.name))

    def _patch_scale(self, subject: _Subject) -> Reply:
        patch = _merge_patch(subject)
        return Reply(200, patch_scale(self._store, subject.namespace, subject.name, patch))

    def _evict(self, subject: _Subject) -> Reply:
        body = _object(subject.call)
        return Reply(201, evict(self._store, subject.namespace, subject.name, body))


def authenticated(user: User | None, *, anonymous: bool) -> User:
    """Who a request is from: nobody is somebody, but a wrong token is a 401."""
    if user is not None:
        return user
    if anonymous:
        return ANONYMOUS
    raise unauthorized()


def _resource_of(route: Route) -> Resource:
    resource = find_resource(route.group, route.version, route.plural)
    # A namespaced object has a namespace in its path, and no other object has.
    if resource is None and route.group not in _BUILT_IN:
        raise unknown_group()
    if resource is None or (route.name and resource.namespaced != bool(route.namespace)):
        raise unknown_path()
    if route.namespace and not resource.namespaced:
        raise unknown_path()
    if route.subresource and route.subresource not in resource.subresources:
        raise unknown_path()
    return resource


def _is_allowed(verb: str, route: Route, resource: Resource) -> bool:
    """Whether the method goes with the path: an object is created in a collection of its own."""
    if verb == "create" and not route.subresource:
        return not route.name and resource.namespaced == bool(route.namespace)
    # Namespaces stay: taking one away is a controller's work, and nothing here needs it.
    return verb != "delete" or resource != NAMESPACES


def _new_metadata(subject: _Subject, metadata: object) -> Object:
    if not isinstance(metadata, dict):
        raise bad_request("cannot decode the object: metadata must be an object")
    deletion = ("deletionTimestamp", "deletionGracePeriodSeconds")
    kept = {key: value for key, value in metadata.items() if key not in deletion}
    if not subject.resource.namespaced:
        return kept
    if kept.get("namespace") not in (None, "", subject.namespace):
        message = "the namespace of the object does not match the namespace of the request"
        raise bad_request(message)
    return kept | {"namespace": subject.namespace}


def _item(resource: Resource, body: Object) -> Object:
    if resource.custom:
        return body
    return {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}


def _media_type(call: Call) -> str:
    return call.content_type.partition(";")[0].strip().lower()


def _object(call: Call) -> Object:
    if _media_type(call) not in ("application/json", ""):
        raise unsupported_media_type(["application/json"])
    return parse_body(call.body)


def _merge_patch(subject: _Subject) -> Object:
    """The product patches with merge patches only; the real server knows more of them."""
    media_type = _media_type(subject.call)
    if media_type not in _PATCHES:
        raise unknown_media_type()
    if media_type != MERGE_PATCH:
        raise unsupported_media_type(_CUSTOM_PATCHES if subject.resource.custom else [MERGE_PATCH])
    return parse_body(subject.call.body)
