"""Which cluster an instance belongs to, by its tags."""

import pytest

from lambdas.core.instances import cluster_of

KNOWN = ("gpu-prod", "gpu-test")


@pytest.mark.parametrize(
    ("tags", "cluster"),
    [
        ({"kubernetes.io/cluster/gpu-prod": "owned"}, "gpu-prod"),
        ({"kubernetes.io/cluster/gpu-test": "shared"}, "gpu-test"),
        ({"eks:cluster-name": "gpu-prod"}, "gpu-prod"),
        ({"aws:eks:cluster-name": "gpu-prod"}, "gpu-prod"),
        ({"eks:eks-cluster-name": "gpu-prod"}, "gpu-prod"),
        ({"alpha.eksctl.io/cluster-name": "gpu-test"}, "gpu-test"),
        ({"karpenter.sh/discovery": "gpu-prod"}, "gpu-prod"),
        # A discovery tag need not hold a cluster's name; another tag may.
        ({"karpenter.sh/discovery": "team-a", "eks:cluster-name": "gpu-prod"}, "gpu-prod"),
        ({"karpenter.sh/discovery": "x", "kubernetes.io/cluster/gpu-test": "owned"}, "gpu-test"),
        ({"eks:cluster-name": "somebody-elses"}, None),
        ({"Name": "gpu-prod"}, None),
        ({}, None),
    ],
)
def test_the_cluster_is_found_by_tags(tags: dict[str, str], cluster: str | None) -> None:
    assert cluster_of(tags, KNOWN) == cluster
