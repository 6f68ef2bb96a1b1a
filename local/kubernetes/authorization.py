"""Who may do what: RBAC rules as they stand in a manifest."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import yaml

from local.kubernetes.routes import Route
from local.kubernetes.status import ApiError

MASTERS = "system:masters"
# What the real server lets everyone read who is authenticated, and whom it lets read this much.
_OPEN_PATHS = ("/version", "/healthz", "/livez", "/readyz")
_DISCOVERY_PATHS = ("/api", "/apis")


@dataclasses.dataclass(frozen=True)
class User:
    """Who makes a request."""

    name: str
    groups: tuple[str, ...] = ()


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclasses.dataclass(frozen=True)
class ClusterRole:
    """A ClusterRole's rules, and the groups that are bound to it."""

    name: str
    groups: frozenset[str]
    rules: tuple[dict[str, Any], ...]


def read_cluster_roles(manifest: str) -> tuple[ClusterRole, ...]:
    """The ClusterRoles of a YAML manifest, with the groups of their ClusterRoleBindings."""
    documents = [document for document in yaml.safe_load_all(manifest) if document]
    bindings = [each for each in documents if each["kind"] == "ClusterRoleBinding"]
    roles = []
    for role in documents:
        if role["kind"] != "ClusterRole":
            continue
        name = role["metadata"]["name"]
        groups = frozenset(
            subject["name"]
            for binding in bindings
            if binding["roleRef"]["name"] == name
            for subject in binding["subjects"]
            if subject["kind"] == "Group"
        )
        roles.append(ClusterRole(name, groups, tuple(role["rules"])))
    return tuple(roles)


def authorize(roles: Iterable[ClusterRole], user: User, verb: str, route: Route) -> None:
    """Return if a rule allows it; otherwise 403."""
    if MASTERS in user.groups or _is_open(user, verb, route):
        return
    for role in roles:
        if role.groups.isdisjoint(user.groups):
            continue
        if any(_allows(rule, verb, route) for rule in role.rules):
            return
    raise _forbidden(user, verb, route)


def _is_open(user: User, verb: str, route: Route) -> bool:
    if route.plural or verb != "get":
        return False
    if route.path in _OPEN_PATHS:
        return True
    return user != ANONYMOUS and route.path.startswith(_DISCOVERY_PATHS)


def _allows(rule: dict[str, Any], verb: str, route: Route) -> bool:
    if not route.plural or not _has(rule.get("verbs"), verb):
        return False
    names = rule.get("resourceNames")
    if names and route.name not in names:
        return False
    resources = rule.get("resources")
    any_parent = bool(route.subresource) and f"*/{route.subresource}" in (resources or ())
    return _has(rule.get("apiGroups"), route.group) and (
        any_parent or _has(resources, route.resource)
    )


def _has(values: list[str] | None, value: str) -> bool:
    return value in (values or ()) or "*" in (values or ())


def _forbidden(user: User, verb: str, route: Route) -> ApiError:
    if not route.plural:
        why = f'User "{user.name}" cannot {verb} path "{route.path}"'
        return ApiError(403, "Forbidden", f"forbidden: {why}", {})
    qualified = f"{route.plural}.{route.group}" if route.group else route.plural
    subject = f'{qualified} "{route.name}"' if route.name else qualified
    scope = f'in the namespace "{route.namespace}"' if route.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {verb} resource "{route.resource}" '
        f'in API group "{route.group}" {scope}'
    )
    details = {"name": route.name, "group": route.group, "kind": route.plural}
    present = {key: value for key, value in details.items() if value}
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", present)
