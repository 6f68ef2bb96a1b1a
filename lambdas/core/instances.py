"""EC2 instances as far as we need them: which cluster one belongs to."""

from collections.abc import Collection, Mapping

import msgspec

# Tags whose value is the cluster's name: managed node groups, Karpenter, eksctl.
_NAME_TAGS = (
    "eks:cluster-name",
    "aws:eks:cluster-name",
    "eks:eks-cluster-name",
    "alpha.eksctl.io/cluster-name",
    "karpenter.sh/discovery",
)
# A tag whose key ends in the cluster's name; its value is owned or shared.
_KEY_PREFIX = "kubernetes.io/cluster/"


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """What DescribeInstances says of an instance."""

    instance_id: str
    instance_type: str = ""
    zone: str = ""
    tags: Mapping[str, str] = {}


def cluster_of(tags: Mapping[str, str], known: Collection[str]) -> str | None:
    """The cluster that an instance's tags name, if the policy knows it."""
    named = [tags[tag] for tag in _NAME_TAGS if tag in tags]
    named += [tag.removeprefix(_KEY_PREFIX) for tag in sorted(tags) if tag.startswith(_KEY_PREFIX)]
    return next((name for name in named if name in known), None)
