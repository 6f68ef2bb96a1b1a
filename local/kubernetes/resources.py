"""The kinds that the stand-in knows, and how Kubernetes names them."""

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any, TypeAlias

# A stored object is never changed in place: every write stores a new one.
Object: TypeAlias = dict[str, Any]
Clock: TypeAlias = Callable[[], dt.datetime]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource:
    """One kind, with the names under which paths, errors and RBAC rules know it."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    # Field selectors besides metadata.name and metadata.namespace.
    fields: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ("status",)
    # Whether the server counts changes of the spec in metadata.generation.
    counts_generations: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in messages: `nodes`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition would stand behind it."""
        return self.group == "karpenter.sh"


NAMESPACES = Resource(
    plural="namespaces", kind="Namespace", namespaced=False, counts_generations=False
)
NODES = Resource(
    plural="nodes",
    kind="Node",
    namespaced=False,
    fields=("spec.unschedulable",),
    counts_generations=False,
)
PODS = Resource(
    plural="pods",
    kind="Pod",
    fields=("spec.nodeName", "status.phase"),
    subresources=("status", "eviction"),
)
DEPLOYMENTS = Resource(
    group="apps", plural="deployments", kind="Deployment", subresources=("status", "scale")
)
REPLICA_SETS = Resource(group="apps", plural="replicasets", kind="ReplicaSet")
BUDGETS = Resource(group="policy", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
NODE_POOLS = Resource(group="karpenter.sh", plural="nodepools", kind="NodePool", namespaced=False)
NODE_CLAIMS = Resource(
    group="karpenter.sh", plural="nodeclaims", kind="NodeClaim", namespaced=False
)

RESOURCES = (
    NAMESPACES,
    NODES,
    PODS,
    DEPLOYMENTS,
    REPLICA_SETS,
    BUDGETS,
    NODE_POOLS,
    NODE_CLAIMS,
)


def find_resource(group: str, version: str, plural: str) -> Resource | None:
    """The resource of an API path, or None."""
    wanted = (group, version, plural)
    matches = (r for r in RESOURCES if (r.group, r.version, r.plural) == wanted)
    return next(matches, None)


def resource_of(body: Object) -> Resource:
    """The resource of an object by its apiVersion and kind; LookupError if there is none."""
    wanted = (body.get("apiVersion"), body.get("kind"))
    for resource in RESOURCES:
        if (resource.api_version, resource.kind) == wanted:
            return resource
    raise LookupError(f"no resource with apiVersion {wanted[0]!r} and kind {wanted[1]!r}")


def rfc3339(moment: dt.datetime) -> str:
    """A time as the API writes it: UTC, whole seconds."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(text: str) -> dt.datetime:
    """A time as the API writes it, read back."""
    return dt.datetime.fromisoformat(text)
