"""What a decision knows of a cluster: frozen, only the fields that decisions read."""

import datetime as dt

import msgspec

# Put on a node whose spot interruption we have seen, with the time it is taken away (RFC 3339).
INTERRUPTED_ANNOTATION = "shiftwright.dev/interrupted-at"
# An instance that is still there so long after its time was stopped and came back, or the
# notice was a rehearsal: notice and mark say nothing any more.
NOTICE_LASTS = dt.timedelta(minutes=10)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node, found by the EC2 instance in its spec.providerID."""

    name: str
    instance_id: str
    unschedulable: bool = False
    # When it is taken away, if we have marked it.
    interrupted_at: dt.datetime | None = None
    # Karpenter takes it down already: its taint, or its NodeClaim is being deleted.
    disrupted: bool = False
    # EKS Auto Mode owns it.
    auto_mode: bool = False

    def is_marked(self, now: dt.datetime) -> bool:
        """Whether an earlier notice for it still holds."""
        return self.interrupted_at is not None and now < self.interrupted_at + NOTICE_LASTS

    def is_leaving(self, now: dt.datetime) -> bool:
        """Whether its pods cannot be counted on."""
        return self.disrupted or self.is_marked(now)


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on a node that is leaving."""

    namespace: str
    name: str
    uid: str
    node: str
    ready: bool = True
    # The Deployment behind its ReplicaSet, or None.
    deployment: str | None = None
    # Why it needs no eviction (daemon, mirror, finished, terminating), or None.
    exempt: str | None = None
    do_not_disrupt: bool = False


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """One half of a workload's pair. Counts are replicas."""

    namespace: str
    name: str
    replicas: int
    ready: int
    resource_version: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of one cluster."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    deployments: tuple[Deployment, ...] = ()
