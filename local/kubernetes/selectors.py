"""Label selectors and field selectors, parsed into tests of one object."""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from local.kubernetes.resources import Object, Resource
from local.kubernetes.status import ApiError, bad_request

Labels: TypeAlias = Mapping[str, str]
Requirement: TypeAlias = Callable[[Labels], bool]
ObjectTest: TypeAlias = Callable[[Object], bool]

_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?P<key>([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_WORD})"
_VALUE = rf"(?P<value>(?:{_WORD})?)"
_EXISTS = re.compile(rf"(?P<not>!?)\s*{_KEY}")
_SET = re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(rf"{_KEY}\s*(?P<operator>==|=|!=)\s*{_VALUE}")
_COMPARE = re.compile(rf"{_KEY}\s*(?P<operator>[<>])\s*(?P<value>-?[0-9]+)")
# A comma that is not between the parentheses of a set.
_COMMA = re.compile(r",(?![^(]*\))")


def label_test(text: str) -> Requirement:
    """The test of a labelSelector parameter; an empty one accepts everything."""
    if not text.strip():
        return lambda _: True
    requirements = [_requirement(part.strip()) for part in _COMMA.split(text)]
    return lambda labels: all(accepts(labels) for accepts in requirements)


def _requirement(text: str) -> Requirement:
    if found := _EXISTS.fullmatch(text):
        return _exists(found["key"], wanted=not found["not"])
    if found := _SET.fullmatch(text):
        values = frozenset(value.strip() for value in found["values"].split(","))
        if not all(re.fullmatch(_VALUE, value) for value in values):
            raise _no_requirement(text)
        return _among(found["key"], values, wanted=found["operator"] == "in")
    if found := _EQUAL.fullmatch(text):
        return _among(found["key"], frozenset({found["value"]}), wanted=found["operator"] != "!=")
    if found := _COMPARE.fullmatch(text):
        return _compare(found["key"], int(found["value"]), above=found["operator"] == ">")
    raise _no_requirement(text)


def _no_requirement(text: str) -> ApiError:
    return bad_request(f"unable to parse requirement: found '{text}', expected a label selector")


def _exists(key: str, *, wanted: bool) -> Requirement:
    return lambda labels: (key in labels) is wanted


def _among(key: str, values: frozenset[str], *, wanted: bool) -> Requirement:
    # A label that is not there is not equal to anything: `!=` and `notin` accept it.
    return lambda labels: (key in labels and labels[key] in values) is wanted


def _compare(key: str, bound: int, *, above: bool) -> Requirement:
    def accepts(labels: Labels) -> bool:
        value = labels.get(key, "")
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            return False
        return int(value) > bound if above else int(value) < bound

    return accepts


def selector_test(selector: Object | None) -> Requirement:
    """The test of a selector inside an object: no selector accepts nothing, {} everything."""
    if selector is None:
        return lambda _: False
    requirements = [
        _among(key, frozenset({value}), wanted=True)
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    requirements += [_expression(each) for each in selector.get("matchExpressions") or ()]
    return lambda labels: all(accepts(labels) for accepts in requirements)


def _expression(expression: Object) -> Requirement:
    key, operator = expression.get("key", ""), expression.get("operator")
    if operator in ("Exists", "DoesNotExist"):
        return _exists(key, wanted=operator == "Exists")
    return _among(key, frozenset(expression.get("values") or ()), wanted=operator == "In")


def field_test(resource: Resource, text: str) -> ObjectTest:
    """The test of a fieldSelector parameter; only the fields that the real server indexes."""
    known = ("metadata.name", "metadata.namespace", *resource.fields)
    tests = [_field(part, known) for part in text.split(",") if part]
    return lambda body: all(accepts(body) for accepts in tests)


def _field(text: str, known: tuple[str, ...]) -> ObjectTest:
    found = re.fullmatch(r"([^=!]+)(==|=|!=)([^=!]*)", text)
    if not found:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    path, operator, value = found.groups()
    if path not in known:
        raise bad_request(f"field label not supported: {path}")
    wanted = operator != "!="
    return lambda body: (_at(body, path) == value) is wanted


def _at(body: Object, path: str) -> str:
    value: object = body
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    # spec.unschedulable is left out of the object while it is false.
    return str(value) if value is not None else ("false" if path == "spec.unschedulable" else "")
