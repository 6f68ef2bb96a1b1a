"""A real Kubernetes control plane with a real Karpenter, built from Go modules, for tests."""
