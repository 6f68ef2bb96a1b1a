"""The cluster of a local run on a real control plane with a real Karpenter."""

from local.real.cluster import RealCluster

__all__ = ["RealCluster"]
