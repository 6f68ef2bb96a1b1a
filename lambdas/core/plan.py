"""A plan: actions as data, each with its reason, and what became of them."""

import enum

import msgspec


class Surge(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Raise the on-demand Deployment of a workload to an absolute number of replicas."""

    workload: str
    namespace: str
    deployment: str
    spot_deployment: str  # whose replicas it makes up for
    before: int
    after: int
    resource_version: str
    nodes: tuple[str, ...]  # the interrupted nodes that make it necessary
    reason: str


class Cordon(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Keep new pods off a node, and mark when it is taken away (RFC 3339)."""

    node: str
    interrupted_at: str
    reason: str


class Evict(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ask for a pod's eviction; its disruption budgets may refuse."""

    node: str
    namespace: str
    pod: str
    uid: str
    deployment: str | None
    reason: str


class Leave(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Do nothing about a node or pod, and say why."""

    subject: str
    nodes: tuple[str, ...]
    reason: str


Action = Surge | Cordon | Evict | Leave


class Status(enum.Enum):
    """What became of an action."""

    DONE = "done"
    OBSERVED = "observed"  # observe mode: decided and told, not carried out
    UNNEEDED = "unneeded"  # already so when we came
    BLOCKED = "blocked"  # a disruption budget refused; tried again until the deadline
    OVERTAKEN = "overtaken"  # somebody wrote in between: decided anew
    RETRY = "retry"  # a passing failure: worth another try
    FAILED = "failed"  # a permanent failure


# What another pass, or another round of this one, may still bring about.
TRY_AGAIN = frozenset({Status.OVERTAKEN, Status.RETRY})


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """An action, what became of it, and the server's words where it refused."""

    action: Action
    status: Status
    detail: str = ""
