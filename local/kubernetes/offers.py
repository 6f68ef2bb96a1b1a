"""The nodes that a NodePool could start."""

import itertools
from collections.abc import Iterator

from local.kubernetes.facts import GPU
from local.kubernetes.placement import Room
from local.kubernetes.resources import NODES, Object

POOL_LABEL = "karpenter.sh/nodepool"
CAPACITY_LABEL = "karpenter.sh/capacity-type"
TYPE_LABEL = "node.kubernetes.io/instance-type"
ZONE_LABEL = "topology.kubernetes.io/zone"
# What a NodePool leaves open.
_DEFAULTS = {CAPACITY_LABEL: "on-demand", TYPE_LABEL: "m7i.xlarge", ZONE_LABEL: "us-east-1a"}
# GPUs of the EC2 instance types that a scene may name; any other type has none.
_GPUS = {
    "g4dn.xlarge": 1,
    "g4dn.12xlarge": 4,
    "g5.xlarge": 1,
    "g5.2xlarge": 1,
    "g5.12xlarge": 4,
    "g6.xlarge": 1,
    "g6.2xlarge": 1,
    "g6.12xlarge": 4,
    "g6e.xlarge": 1,
    "g6e.12xlarge": 4,
    "p4d.24xlarge": 8,
    "p5.48xlarge": 8,
}


def offers(pool: Object, turn: int) -> Iterator[Room]:
    """Nodes without a name yet, by instance type and zone in the order of the requirements.

    The turn moves the first zone on, so that the nodes of a pool spread.
    """
    template = pool["spec"].get("template") or {}
    spec = template.get("spec") or {}
    allowed = {
        each.get("key"): each.get("values") or []
        for each in spec.get("requirements") or ()
        if each.get("operator") == "In"
    }
    capacity, types, zones = (allowed.get(key) or [default] for key, default in _DEFAULTS.items())
    first = turn % len(zones)
    for instance_type, zone in itertools.product(types, zones[first:] + zones[:first]):
        labels = {
            **((template.get("metadata") or {}).get("labels") or {}),
            POOL_LABEL: pool["metadata"]["name"],
            # As Karpenter does: spot, where the pool allows both.
            CAPACITY_LABEL: "spot" if "spot" in capacity else capacity[0],
            TYPE_LABEL: instance_type,
            ZONE_LABEL: zone,
            "topology.kubernetes.io/region": zone[:-1],
        }
        yield _room(labels, spec.get("taints") or [], _GPUS.get(instance_type, 0))


def _room(labels: dict[str, str], taints: list[Object], gpus: int) -> Room:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "58"} | ({GPU: str(gpus)} if gpus else {})
    node: Object = {
        "apiVersion": NODES.api_version,
        "kind": NODES.kind,
        "metadata": {"name": "", "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    return Room(node, gpus)
