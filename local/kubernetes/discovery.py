"""What the server says about itself: version, health, and the resources it has."""

from local.kubernetes.resources import RESOURCES, Object, Resource

_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}
_VERBS = ["create", "delete", "get", "list", "patch"]


def document_at(path: str) -> Object | str | None:
    """The document at a path that is no resource's, or None."""
    if path in ("/readyz", "/livez", "/healthz"):
        return "ok"
    if path == "/version":
        return dict(_VERSION)
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups()}
    group_version = path.removeprefix("/apis/").removeprefix("/api/")
    resources = [each for each in RESOURCES if each.api_version == group_version]
    if not resources:
        return None
    listed = [entry for each in resources for entry in _entries(each)]
    document = {"kind": "APIResourceList", "groupVersion": group_version, "resources": listed}
    # The core group is older than the apiVersion of this kind.
    return document if group_version == "v1" else document | {"apiVersion": "v1"}


def _groups() -> list[Object]:
    groups = []
    for group in sorted({each.group for each in RESOURCES if each.group}):
        version = {"groupVersion": f"{group}/v1", "version": "v1"}
        groups.append({"name": group, "versions": [version], "preferredVersion": version})
    return groups


def _entries(resource: Resource) -> list[Object]:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    # A subresource takes its verbs from what it is for: an eviction is only created.
    subresources = [
        {
            **entry,
            "name": f"{resource.plural}/{each}",
            "verbs": ["create"] if each == "eviction" else ["get", "patch"],
        }
        for each in resource.subresources
    ]
    return [entry, *subresources]
