"""Paths of the Kubernetes API, taken apart."""

import dataclasses
import urllib.parse

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclasses.dataclass(frozen=True)
class Route:
    """What a path means; without a plural it is no path of a resource."""

    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        """The resource as RBAC rules name it: `pods`, `pods/eviction`."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


def parse_path(path: str) -> Route:
    """`/api/v1/...` or `/apis/<group>/<version>/...`, with or without a namespace."""
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return Route(path)
    namespace = ""
    # /namespaces/<name> and its status are the namespace itself.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or not all(rest):
        return Route(path)
    plural, name, subresource = (*rest, "", "")[:3]
    return Route(path, group, version, namespace, plural, name, subresource)


def verb_of(method: str, route: Route) -> str:
    """The verb that RBAC rules allow or not."""
    if not route.plural:
        return method.lower()
    if method in ("GET", "HEAD"):
        return "get" if route.name else "list"
    if method == "DELETE":
        return "delete" if route.name else "deletecollection"
    return _VERBS.get(method, method.lower())
