"""Reads one YAML document as plain data, with the line of every entry, and trusts nothing in it."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from lambdas.core.policy import Problem

# libyaml's reader where PyYAML has it: the pure Python one takes 20 s for a mebibyte.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LIMIT_BYTES = 1024 * 1024
LIMIT_DEPTH = 32
_PLAIN_TAGS = ("null", "bool", "int", "float", "str")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

At = tuple[str | int, ...]


class Document:
    """What a file says: its data, the line of each entry, and what is wrong as YAML."""

    def __init__(self) -> None:
        self.data: Any = None
        self.lines: dict[At, int] = {}
        self.problems: list[Problem] = []
        # Entries already found wrong: a later check need not speak of them again.
        self.bad: set[At] = set()

    def refuse(self, at: At, line: int, found: str, expected: str) -> None:
        """Note a problem."""
        self.lines.setdefault(at, line)
        self.bad.add(at)
        self.problems.append(Problem(at, found, expected))


def read(path: Path) -> Document:
    """Read a file; whatever is wrong with it is in the document's problems."""
    document = Document()
    try:
        with path.open("rb") as file:
            raw = file.read(LIMIT_BYTES + 1)
        if len(raw) > LIMIT_BYTES:
            document.refuse((), 1, "a file of more than 1 MiB", "a policy")
            return document
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        document.refuse((), 0, "no such file", "the policy; see shiftwright.yaml for an example")
    except OSError as error:
        document.refuse((), 0, f"a file that cannot be read ({error.strerror})", "the policy")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        document.refuse((), line, f"the byte 0x{raw[error.start]:02x}", "text in UTF-8")
    else:
        _parse(text, document)
    return document


def _parse(text: str, document: Document) -> None:
    try:
        refusal = next(_refusals(text), None)
        if refusal:
            document.refuse((), *refusal)
            return
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        words = ", ".join(part for part in (error.context, error.problem) if part)
        document.refuse((), line, f"broken YAML ({words})", "one YAML document")
    except yaml.YAMLError as error:
        words = " ".join(str(error).split())
        document.refuse((), 1, f"broken YAML ({words})", "one YAML document")
    else:
        if node is None:
            document.refuse((), 1, "an empty file", "the policy; see shiftwright.yaml")
        else:
            document.data = _value(node, (), document)


def _refusals(text: str) -> Iterator[tuple[int, str, str]]:
    """What must not even be composed: aliases, which can grow without bound, and deep nests."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            yield line, f"the alias *{event.anchor}", "the value itself, written out"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > LIMIT_DEPTH:
            yield line, f"more than {LIMIT_DEPTH} levels", "a policy, which has seven"


def _value(node: yaml.Node, at: At, document: Document) -> Any:
    document.lines.setdefault(at, _line(node))
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, at, document)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*at, i), document) for i, item in enumerate(node.value)]
    return _scalar(node, at, document)


def _mapping(node: yaml.MappingNode, at: At, document: Document) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = _line(key_node)
        if key_node.tag != "tag:yaml.org,2002:str":
            raw = key_node.value if isinstance(key_node, yaml.ScalarNode) else "a collection"
            here = (*at, str(raw))
            document.refuse(here, line, f"the key {shorten(str(raw))}", "text; put it in quotes")
            continue
        key: str = key_node.value
        if key in data:
            before = document.lines[(*at, key)]
            document.refuse((*at, key), line, f"{key} again, on line {line}", "it once")
            document.lines[(*at, key)] = before
            continue
        document.lines[(*at, key)] = line
        data[key] = _value(value_node, (*at, key), document)
    return data


def _line(node: yaml.Node | yaml.Event) -> int:
    mark = node.start_mark
    return mark.line + 1 if mark else 1


def _scalar(node: yaml.Node, at: At, document: Document) -> Any:
    """A plain value; one that JSON does not have is refused, and stands as its text."""
    line, raw = document.lines[at], str(node.value)
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind not in _PLAIN_TAGS:
        hint = "text; put it in quotes" if kind == "timestamp" else "text, a number or true/false"
        document.refuse(at, line, f"{shorten(raw)} (YAML's {kind.lstrip('!')})", hint)
        return raw
    try:
        value = yaml.SafeLoader("").construct_object(node)
    except (ValueError, yaml.YAMLError):
        document.refuse(at, line, f"{shorten(raw)} as YAML's {kind}", f"a valid {kind}")
        return raw
    if isinstance(value, float) and not math.isfinite(value):
        document.refuse(at, line, raw, "a finite number")
    if isinstance(value, str) and _CONTROL.search(value):
        document.refuse(at, line, shorten(value), "text on one line, without control characters")
    if isinstance(value, int) and not isinstance(value, bool) and not raw.lstrip("+-").isdecimal():
        document.refuse(at, line, f"{shorten(raw)}, which YAML reads as {value}", "a plain number")
    return value


def shorten(text: str, limit: int = 60) -> str:
    """A quoted text, fit for one line of a message."""
    return repr(text if len(text) <= limit else text[:limit] + "…")
