"""Instance types for Karpenter's kwok provider: GPU machines of AWS in eu-west-1."""

from typing import Any, NamedTuple

ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")


class _Type(NamedTuple):
    name: str
    cpus: int
    memory_gib: int
    gpus: int
    # Dollars an hour.
    on_demand: float


# On-demand list prices for Linux, about those of us-east-1: what matters is which is cheaper.
_TYPES = (
    _Type("g4dn.xlarge", 4, 16, 1, 0.526),
    _Type("g4dn.2xlarge", 8, 32, 1, 0.752),
    _Type("g4dn.12xlarge", 48, 192, 4, 3.912),
    _Type("g5.xlarge", 4, 16, 1, 1.006),
    _Type("g5.2xlarge", 8, 32, 1, 1.212),
    _Type("g5.12xlarge", 48, 192, 4, 5.672),
    _Type("p3.2xlarge", 8, 61, 1, 3.06),
    _Type("p3.8xlarge", 32, 244, 4, 12.24),
)
# A spot price relative to on demand; it differs a little from zone to zone.
_SPOT = {"eu-west-1a": 0.36, "eu-west-1b": 0.38, "eu-west-1c": 0.4}


def gpu_instance_types() -> list[dict[str, Any]]:
    """The list as the kwok provider reads it, spot and on demand in every zone."""
    return [_instance_type(each) for each in _TYPES]


def _instance_type(one: _Type) -> dict[str, Any]:
    spot = [_offering("spot", zone, one.on_demand * _SPOT[zone]) for zone in ZONES]
    on_demand = [_offering("on-demand", zone, one.on_demand) for zone in ZONES]
    return {
        "name": one.name,
        "offerings": [*spot, *on_demand],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {
            "cpu": str(one.cpus),
            "memory": f"{one.memory_gib}Gi",
            "ephemeral-storage": "100Gi",
            "pods": "58",
            "nvidia.com/gpu": str(one.gpus),
        },
    }


def _offering(capacity_type: str, zone: str, price: float) -> dict[str, Any]:
    return {
        "Price": round(price, 4),
        "Available": True,
        "Requirements": [
            _requirement("karpenter.sh/capacity-type", capacity_type),
            _requirement("topology.kubernetes.io/zone", zone),
        ],
    }


def _requirement(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}
