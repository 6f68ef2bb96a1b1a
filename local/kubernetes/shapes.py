"""The types of the fields that are read somewhere, so that a wrong one is no crash."""

import datetime as dt
from typing import Any

from local.kubernetes.resources import (
    BUDGETS,
    DEPLOYMENTS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    REPLICA_SETS,
    Object,
    Resource,
    moment_of,
)


class ShapeError(ValueError):
    """A field of a type that its kind does not have."""


# A shape is a type, [shape] for a list, {key: shape} for an object, {str: type} for a map.
_STRINGS = {str: str}
_METADATA = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "labels": _STRINGS,
    "annotations": _STRINGS,
    "finalizers": [str],
    "ownerReferences": [{"kind": str, "name": str, "uid": str, "controller": bool}],
}
_CONDITIONS = [{"type": str, "status": str, "lastTransitionTime": dt.datetime}]
_SELECTOR = {
    "matchLabels": _STRINGS,
    "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
}
_TAINTS = [{"key": str, "value": str, "effect": str}]
_POD_SPEC = {
    "nodeName": str,
    "nodeSelector": _STRINGS,
    "terminationGracePeriodSeconds": int,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
    "containers": [
        {"name": str, "image": str, "resources": {"requests": {str: object}, "limits": {}}}
    ],
}
_TEMPLATE = {"metadata": {"labels": _STRINGS}, "spec": _POD_SPEC}
_REPLICAS = {"replicas": int, "selector": _SELECTOR, "template": _TEMPLATE}
_CLAIM_SPEC = {
    "taints": _TAINTS,
    "requirements": [{"key": str, "operator": str, "values": [str]}],
}
_SPECS: dict[Resource, Any] = {
    NODES: {"taints": _TAINTS, "unschedulable": bool, "providerID": str},
    PODS: _POD_SPEC,
    DEPLOYMENTS: _REPLICAS,
    REPLICA_SETS: _REPLICAS,
    BUDGETS: {"selector": _SELECTOR},
    NODE_POOLS: {"template": {"metadata": {"labels": _STRINGS}, "spec": _CLAIM_SPEC}},
    NODE_CLAIMS: _CLAIM_SPEC,
}
_STATUSES: dict[Resource, Any] = {
    NODES: {"conditions": _CONDITIONS, "allocatable": {str: object}},
    PODS: {"phase": str, "startTime": dt.datetime, "conditions": _CONDITIONS},
    BUDGETS: {
        "observedGeneration": int,
        "disruptionsAllowed": int,
        "currentHealthy": int,
        "desiredHealthy": int,
        "expectedPods": int,
        "disruptedPods": _STRINGS,
    },
}


def check_shape(resource: Resource, body: Object) -> None:
    """ShapeError for an object that could not be decoded into its kind."""
    shape = {
        "metadata": _METADATA,
        "spec": _SPECS.get(resource, {}),
        "status": _STATUSES.get(resource, {}),
    }
    _check(body, shape, "")


def _check(value: Any, shape: Any, path: str) -> None:
    if value is None:
        return
    if isinstance(shape, list):
        for index, item in enumerate(_expect(value, list, path)):
            _check(_expect(item, object, f"{path}[{index}]"), shape[0], f"{path}[{index}]")
    elif isinstance(shape, dict):
        for key, item in _expect(value, dict, path).items():
            below = shape.get(key, shape.get(str, object))
            _check(item, below, f"{path}.{key}".lstrip("."))
    else:
        _expect(value, shape, path)


def _expect(value: Any, kind: type, path: str) -> Any:
    # A bool is an int to Python, but not in JSON; nothing in a list may be null.
    wrong = kind is int and (isinstance(value, bool) or not _is_int32(value))
    if kind is dt.datetime:
        wrong, kind = not _is_time(value), str
    if wrong or value is None or not isinstance(value, kind):
        found = type(value).__name__
        raise ShapeError(f"cannot decode the object: {path} cannot be this {found}")
    return value


def _is_int32(value: object) -> bool:
    return isinstance(value, int) and -(2**31) <= value < 2**31


def _is_time(value: object) -> bool:
    try:
        return moment_of(str(value)).tzinfo is not None
    except ValueError:
        return False
