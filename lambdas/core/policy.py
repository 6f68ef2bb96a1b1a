"""The policy: what the user writes in shiftwright.yaml, as types."""

import enum
import math
from typing import Annotated

import msgspec

# A DNS-1123 label or subdomain, as Kubernetes checks object names.
Name = Annotated[
    str,
    msgspec.Meta(
        title="a Kubernetes name (lower-case letters, digits, '-' and '.')",
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        min_length=1,
        max_length=253,
    ),
]
Namespace = Annotated[
    str,
    msgspec.Meta(
        title="a Kubernetes namespace (lower-case letters, digits and '-')",
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        min_length=1,
        max_length=63,
    ),
]
# EKS: letters, digits, hyphens and underscores, at most 100.
ClusterName = Annotated[
    str,
    msgspec.Meta(
        title="an EKS cluster name (letters, digits, '-' and '_')",
        pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]*$",
        min_length=1,
        max_length=100,
    ),
]
Region = Annotated[
    str,
    msgspec.Meta(title="an AWS region, such as eu-west-1", pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$"),
]
Replicas = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
SubnetId = Annotated[
    str,
    msgspec.Meta(
        title="a subnet id, such as subnet-0123456789abcdef0", pattern=r"^subnet-[0-9a-f]{8,17}$"
    ),
]
SecurityGroupId = Annotated[
    str,
    msgspec.Meta(
        title="a security group id, such as sg-0123456789abcdef0", pattern=r"^sg-[0-9a-f]{8,17}$"
    ),
]


class _Section(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A part of the policy: camelCase in the file, unknown keys refused."""


class Mode(enum.Enum):
    """What a capability may do: decide and tell only, or act as well."""

    OBSERVE = "observe"
    ACT = "act"


class Interruptions(_Section, frozen=True, kw_only=True):
    """What to do about spot interruption notices."""

    mode: Annotated[
        Mode,
        msgspec.Meta(description="observe decides and tells, and changes nothing; act acts too."),
    ] = Mode.OBSERVE
    margin_seconds: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=110,
            description="Stop evicting this many seconds before the instance is taken away.",
        ),
    ] = 15


class Slack(_Section, frozen=True, kw_only=True):
    """Where people are told. The bot token is not here: it lives in Secrets Manager."""

    channel: Annotated[
        str,
        msgspec.Meta(
            title='a channel id (C0123456789) or a quoted name ("#gpu-ops")',
            pattern=r"^(#[^\s#@]{1,80}|[CGD][A-Z0-9]{6,20})$",
            description="Where to post. An id survives a renamed channel.",
        ),
    ]
    api_url: Annotated[
        str,
        msgspec.Meta(
            title="an https:// address that ends in /",
            pattern=r"^(https://[^\s/@]+|http://127\.0\.0\.1(:[0-9]+)?)/([^\s]*/)?$",
            description="Base address of Slack's Web API; another one for GovSlack.",
        ),
    ] = "https://slack.com/api/"


class Vpc(_Section, frozen=True, kw_only=True):
    """The network that the functions join to reach private API endpoints, by id."""

    id: Annotated[
        str,
        msgspec.Meta(
            title="a VPC id, such as vpc-0123456789abcdef0", pattern=r"^vpc-[0-9a-f]{8,17}$"
        ),
    ]
    subnets: Annotated[tuple[SubnetId, ...], msgspec.Meta(min_length=1, max_length=16)]
    security_groups: Annotated[
        tuple[SecurityGroupId, ...], msgspec.Meta(min_length=1, max_length=5)
    ]


class Endpoint(enum.Enum):
    """How the cluster's API server is reached."""

    PUBLIC = "public"
    PRIVATE = "private"


class Pool(_Section, frozen=True, kw_only=True):
    """A spot and an on-demand Karpenter NodePool that can stand in for each other."""

    spot: Name
    on_demand: Name


class Workload(_Section, frozen=True, kw_only=True):
    """A pair of Deployments behind one Service: one on spot, one on on-demand nodes."""

    namespace: Namespace
    pool: Annotated[str, msgspec.Meta(description="A name from the cluster's pools.")]
    spot: Annotated[Name, msgspec.Meta(description="The Deployment on the spot NodePool.")]
    on_demand: Annotated[
        Name, msgspec.Meta(description="The Deployment on the on-demand NodePool.")
    ]
    replicas: Annotated[Replicas, msgspec.Meta(description="Both Deployments together.")]
    on_demand_base: Annotated[
        Replicas, msgspec.Meta(description="So many replicas are always on-demand.")
    ] = 0
    on_demand_percent: Annotated[
        int,
        msgspec.Meta(
            ge=0, le=100, description="Share of the replicas above the base that is on-demand."
        ),
    ] = 0

    @property
    def on_demand_share(self) -> int:
        """Replicas that are on-demand while spot is calm.

        The percentage is rounded up, as an Auto Scaling group's mixed instances policy does.
        """
        base = min(self.on_demand_base, self.replicas)
        return base + math.ceil((self.replicas - base) * self.on_demand_percent / 100)


class Cluster(_Section, frozen=True, kw_only=True):
    """One EKS cluster: where it is, how to reach it, and what in it is looked after."""

    region: Region
    endpoint: Annotated[
        Endpoint,
        msgspec.Meta(description="private: the functions join the VPC that the policy names."),
    ] = Endpoint.PUBLIC
    pools: Annotated[dict[Name, Pool], msgspec.Meta(description="By a name of your choice.")]
    workloads: Annotated[
        dict[Name, Workload], msgspec.Meta(description="By a name of your choice.")
    ] = {}


class Policy(_Section, frozen=True, kw_only=True):
    """The whole file."""

    slack: Slack
    clusters: Annotated[
        dict[ClusterName, Cluster],
        msgspec.Meta(min_length=1, description="By the cluster's name in EKS."),
    ]
    interruptions: Interruptions = Interruptions()
    vpc: Vpc | None = None

    def regions(self) -> tuple[str, ...]:
        """The regions of all clusters, sorted: one deployment each."""
        return tuple(sorted({cluster.region for cluster in self.clusters.values()}))

    def vpc_in(self, region: str) -> Vpc | None:
        """The network that a region's functions join: only where a cluster is private."""
        return self.vpc if region in self._private_regions() else None

    def _private_regions(self) -> frozenset[str]:
        return frozenset(
            cluster.region
            for cluster in self.clusters.values()
            if cluster.endpoint is Endpoint.PRIVATE
        )


class Problem(msgspec.Struct, frozen=True):
    """One error in the policy: where, what was found, and what was expected."""

    path: tuple[str | int, ...]
    found: str
    expected: str


def cross_check(policy: Policy) -> tuple[Problem, ...]:
    """What types alone cannot say: names that must exist, and things that must differ."""
    problems = _vpc_problems(policy)
    alike: dict[str, str] = {}
    for name, cluster in policy.clusters.items():
        at: tuple[str | int, ...] = ("clusters", name)
        # A stack's name may hold no underscore, and every cluster has a stack.
        other = alike.setdefault(name.replace("_", "-"), name)
        if other != name:
            problems.append(Problem(at, name, f"a name that differs from {other} by more than _"))
        problems += _pool_problems(at, cluster)
        problems += _workload_problems(at, cluster)
    return tuple(problems)


def _vpc_problems(policy: Policy) -> list[Problem]:
    """A VPC lies in one region, and is there for the clusters that need it."""
    private = {n: c for n, c in policy.clusters.items() if c.endpoint is Endpoint.PRIVATE}
    if policy.vpc is not None and not private:
        return [Problem(("vpc",), policy.vpc.id, "a cluster with endpoint: private to reach")]
    problems: list[Problem] = []
    first = next(iter(private.values()), None)
    for name, cluster in private.items():
        at = ("clusters", name, "endpoint")
        if policy.vpc is None:
            problems.append(Problem(at, "private", "a top-level vpc for the functions to join"))
        elif first is not None and cluster.region != first.region:
            expected = f"private clusters in one region only ({first.region}), where the vpc is"
            problems.append(Problem(at, f"private, in {cluster.region}", expected))
    return problems


def _pool_problems(at: tuple[str | int, ...], cluster: Cluster) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for name, pool in cluster.pools.items():
        for key, node_pool in (("spot", pool.spot), ("onDemand", pool.on_demand)):
            if node_pool in seen:
                expected = f"a NodePool that is not already {seen[node_pool]}"
                problems.append(Problem((*at, "pools", name, key), node_pool, expected))
            seen.setdefault(node_pool, f"pools.{name}.{key}")
    return problems


def _workload_problems(at: tuple[str | int, ...], cluster: Cluster) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[tuple[str, str], str] = {}
    for name, workload in cluster.workloads.items():
        here = (*at, "workloads", name)
        if workload.pool not in cluster.pools:
            known = ", ".join(cluster.pools) or "none"
            problems.append(Problem((*here, "pool"), workload.pool, f"one of the pools: {known}"))
        if workload.on_demand_base > workload.replicas:
            problems.append(
                Problem(
                    (*here, "onDemandBase"),
                    str(workload.on_demand_base),
                    f"at most replicas ({workload.replicas})",
                )
            )
        for key, deployment in (("spot", workload.spot), ("onDemand", workload.on_demand)):
            owner = (workload.namespace, deployment)
            if owner in seen:
                expected = f"a Deployment that is not already {seen[owner]}"
                problems.append(Problem((*here, key), deployment, expected))
            seen.setdefault(owner, f"workloads.{name}.{key}")
    return problems
