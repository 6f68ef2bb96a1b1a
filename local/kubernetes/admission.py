"""Defaults and the basic validation of objects before they are stored."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from local.kubernetes.resources import (
    BUDGETS,
    DEPLOYMENTS,
    NODE_POOLS,
    NODES,
    PODS,
    REPLICA_SETS,
    Object,
    Resource,
)
from local.kubernetes.status import invalid

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME_RULE = "a lowercase RFC 1123 subdomain of at most 253 characters is expected"


def with_defaults(resource: Resource, body: Object) -> Object:
    """The object with what the server fills in itself."""
    metadata = dict(body.get("metadata") or {})
    spec = dict(body.get("spec") or {})
    filled = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        **body,
        "metadata": metadata,
        "spec": spec,
    }
    if resource in (DEPLOYMENTS, REPLICA_SETS):
        spec.setdefault("replicas", 1)
    if resource == PODS:
        spec.setdefault("terminationGracePeriodSeconds", 30)
        filled["status"] = {"phase": "Pending", **(body.get("status") or {})}
    if resource == NODES and spec.get("unschedulable") is False:
        del spec["unschedulable"]
    return filled


def validate(resource: Resource, body: Object) -> None:
    """422 that names every field that is wrong."""
    causes = list(_name_causes(body["metadata"]))
    if rule := _RULES.get(resource):
        causes += rule(body["spec"])
    if causes:
        raise invalid(resource, body["metadata"].get("name", ""), causes)


def _name_causes(metadata: Object) -> Iterator[Object]:
    name = metadata.get("name") or ""
    if not name:
        yield _required("metadata.name", "name or generateName is required")
    elif len(name) > 253 or not _NAME.fullmatch(name):
        yield _wrong("metadata.name", f'"{name}"', _NAME_RULE)


def _node_causes(spec: Object) -> Iterator[Object]:
    pairs = [(each.get("key"), each.get("effect")) for each in spec.get("taints") or ()]
    for index, (key, effect) in enumerate(pairs):
        # The real server names this path, though the taints are in the spec.
        at = f"metadata.taints[{index}]"
        if not key:
            yield _wrong(f"{at}.key", '""', "name part must be non-empty")
        if not effect:
            yield _required(f"{at}.effect")
        elif effect not in _EFFECTS:
            supported = ", ".join(f'"{each}"' for each in _EFFECTS)
            message = f'Unsupported value: "{effect}": supported values: {supported}'
            yield _cause("FieldValueNotSupported", f"{at}.effect", message)
        elif (key, effect) in pairs[:index]:
            message = "Duplicate value: taints must be unique by key and effect pair"
            yield _cause("FieldValueDuplicate", at, message)


def _pod_causes(spec: Object, at: str = "spec") -> Iterator[Object]:
    if not spec.get("containers"):
        yield _required(f"{at}.containers")
    for index, container in enumerate(spec.get("containers") or ()):
        for key in ("name", "image"):
            if not container.get(key):
                yield _required(f"{at}.containers[{index}].{key}")


def _replica_causes(spec: Object) -> Iterator[Object]:
    if spec["replicas"] < 0:
        rule = "must be greater than or equal to 0"
        yield _wrong("spec.replicas", spec["replicas"], rule)
    selector = (spec.get("selector") or {}).get("matchLabels")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector:
        yield _required("spec.selector")
    elif not selector.items() <= labels.items():
        rule = "`selector` does not match template `labels`"
        yield _wrong("spec.template.metadata.labels", labels, rule)
    yield from _pod_causes(template.get("spec") or {}, "spec.template.spec")


def _budget_causes(spec: Object) -> Iterator[Object]:
    if "minAvailable" in spec and "maxUnavailable" in spec:
        rule = "minAvailable and maxUnavailable cannot be both set"
        yield _wrong("spec", "object", rule)
    for key in ("minAvailable", "maxUnavailable"):
        value = spec.get(key, 0)
        number = isinstance(value, int) and not isinstance(value, bool)
        if number and not 0 <= value < 2**31:
            yield _wrong(f"spec.{key}", value, "must be greater than or equal to 0")
        if not number and not re.fullmatch(r"[0-9]{1,3}%", str(value)):
            yield _wrong(f"spec.{key}", f'"{value}"', "must be a percentage such as 5%")
        elif not number and int(str(value)[:-1]) > 100:
            yield _wrong(f"spec.{key}", f'"{value}"', "must not be greater than 100%")


def _pool_causes(spec: Object) -> Iterator[Object]:
    weight = spec.get("weight")
    if weight is None:
        return
    if not isinstance(weight, int) or isinstance(weight, bool):
        yield _cause("FieldValueTypeInvalid", "spec.weight", "must be of type integer")
    elif weight < 1:
        rule = "spec.weight in body should be greater than or equal to 1"
        yield _wrong("spec.weight", weight, rule)
    elif weight > 100:
        rule = "spec.weight in body should be less than or equal to 100"
        yield _wrong("spec.weight", weight, rule)


def _required(field: str, message: str = "") -> Object:
    return _cause("FieldValueRequired", field, f"Required value: {message}".rstrip(": "))


def _wrong(field: str, value: object, rule: str) -> Object:
    return _cause("FieldValueInvalid", field, f"Invalid value: {value}: {rule}")


def _cause(reason: str, field: str, message: str) -> Object:
    return {"reason": reason, "message": message, "field": field}


_Rule = Callable[[dict[str, Any]], Iterator[Object]]
_RULES: dict[Resource, _Rule] = {
    NODES: _node_causes,
    PODS: _pod_causes,
    DEPLOYMENTS: _replica_causes,
    REPLICA_SETS: _replica_causes,
    BUDGETS: _budget_causes,
    NODE_POOLS: _pool_causes,
}
