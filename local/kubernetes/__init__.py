"""A small Kubernetes API server, and a loop that plays the controllers behind it."""

from local.kubernetes.authentication import eks_authenticator, sts_caller
from local.kubernetes.authorization import MASTERS, User, read_cluster_roles
from local.kubernetes.happenings import Happening
from local.kubernetes.server import Request, StandIn
from local.kubernetes.simulation import Delays, Simulation
from local.kubernetes.store import Store

__all__ = [
    "MASTERS",
    "Delays",
    "Happening",
    "Request",
    "Simulation",
    "StandIn",
    "Store",
    "User",
    "eks_authenticator",
    "read_cluster_roles",
    "sts_caller",
]
