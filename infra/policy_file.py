"""Reads shiftwright.yaml into the policy's types, or says everything that is wrong with it."""

import copy
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema
import msgspec

from infra import policy_schema, yaml_file
from lambdas.core.policy import Policy, Problem, cross_check

At = tuple[str | int, ...]
# A file with more errors than this is not a policy with mistakes; the first ones will do.
SHOWN = 50
_KINDS = {
    "object": "a section of keys",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "nothing",
}


def _is_integer(_checker: object, value: object) -> bool:
    """Neither true nor 3.0 is a whole number here, as with msgspec."""
    return isinstance(value, int) and not isinstance(value, bool)


_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


class PolicyError(Exception):
    """Everything that is wrong with a policy file, one line each, in the file's order."""

    def __init__(self, file: str, problems: list[Problem], lines: dict[At, int]) -> None:
        self.problems = sorted(problems, key=lambda problem: _line(problem.path, lines))
        said = [_sentence(file, problem, lines) for problem in self.problems[:SHOWN]]
        if len(problems) > SHOWN:
            said.append(f"{file}: and {len(problems) - SHOWN} more")
        super().__init__("\n".join(said))


def load(path: Path) -> Policy:
    """The policy in a file. Raises PolicyError with all that is wrong with it."""
    document = yaml_file.read(path)
    problems = list(document.problems)
    if document.data is not None:
        found = _schema_problems(document.data)
        problems += [problem for problem in found if problem.path not in document.bad]
    try:
        # What is wrong is left out, so that the rest is still checked as a whole.
        policy = msgspec.convert(_without(document.data, problems), Policy, strict=True)
    except msgspec.ValidationError as error:
        expected = "a policy as docs/shiftwright.schema.json says"
        problems = problems or [Problem((), str(error), expected)]
        raise PolicyError(str(path), problems, document.lines) from error
    problems += cross_check(policy)
    if problems:
        raise PolicyError(str(path), problems, document.lines)
    return policy


def _without(data: Any, problems: list[Problem]) -> Any:
    """A copy of the document without the values that the problems are about.

    Whole sections stay, so that what refers to one is not wrong on top of it.
    """
    kept = copy.deepcopy(data)
    for problem in filter(lambda problem: problem.path, problems):
        parent = kept
        for part in problem.path[:-1]:
            parent = parent.get(part) if isinstance(parent, dict) else None
        if isinstance(parent, dict) and not isinstance(parent.get(problem.path[-1]), dict):
            parent.pop(problem.path[-1], None)
    return kept


def _schema_problems(data: Any) -> list[Problem]:
    validator = _Validator(policy_schema.schema())
    return [problem for error in validator.iter_errors(data) for problem in _problems(error)]


def _problems(error: jsonschema.ValidationError) -> Iterator[Problem]:
    """One validation error in plain words; the schema library's own are for programmers."""
    at: At = tuple(error.absolute_path)
    rule, value = error.validator, cast(Any, error.instance)
    schema = cast(dict[str, Any], error.schema)
    if rule == "required":
        # jsonschema reports each missing key on its own; only its message says which.
        yield from _missing(at, error)
    elif rule == "additionalProperties":
        yield from (
            _unknown_key(at, key, schema) for key in value if key not in schema["properties"]
        )
    elif rule == "anyOf":
        yield from _any_of(error)
    elif error.parent is None and "propertyNames" in error.absolute_schema_path:
        yield Problem((*at, value), f"the key {yaml_file.shorten(value)}", _expected(schema))
    else:
        yield Problem(at, _found(value), _expected(schema))


def _missing(at: At, error: jsonschema.ValidationError) -> Iterator[Problem]:
    properties = cast(dict[str, Any], error.schema)["properties"]
    for key in cast(list[str], error.validator_value):
        if error.message.startswith(f"{key!r} is "):
            described = properties[key].get("description", "")
            expected = f"{key}: {described}" if described else f"the key {key}"
            yield Problem((*at, key), "nothing", expected.rstrip("."))


def _unknown_key(at: At, key: str, schema: dict[str, Any]) -> Problem:
    known = list(schema["properties"])
    plain = {name.lower(): name for name in known}
    close = difflib.get_close_matches(key.lower().replace("_", "").replace("-", ""), plain, n=1)
    expected = f"{plain[close[0]]} (did you mean that?)" if close else "one of " + ", ".join(known)
    return Problem((*at, key), "an unknown key", expected)


def _any_of(error: jsonschema.ValidationError) -> Iterator[Problem]:
    """The errors of the branch that has the right kind: here, always "a section, or nothing"."""
    at = tuple(error.absolute_path)
    branches: dict[int, list[jsonschema.ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(int(inner.relative_schema_path[0]), []).append(inner)
    for branch in branches.values():
        if not any(e.validator == "type" and tuple(e.absolute_path) == at for e in branch):
            for inner in branch:
                yield from _problems(inner)
            return
    yield Problem(at, _found(error.instance), "a section of keys, or no such key at all")


def _found(value: Any) -> str:
    if value is None:
        return "nothing (after an unquoted # YAML sees a comment)"
    if isinstance(value, bool):
        return f"{str(value).lower()} (YAML reads on, off, yes and no as true or false)"
    if isinstance(value, str):
        return f"the text {yaml_file.shorten(value)}"
    if isinstance(value, dict):
        return "a section of keys" if value else "an empty section"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"the number {value}"


def _expected(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(str(choice) for choice in schema["enum"])
    words = schema["title"] if "pattern" in schema else _KINDS[schema["type"]]
    bounds = (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " entries"),
        ("minProperties", "maxProperties", " entries"),
    )
    for low, high, unit in bounds:
        if low in schema and high in schema:
            words += f", {schema[low]} to {schema[high]}{unit}"
        elif low in schema:
            words += f", {schema[low]} or more{unit}"
    return words


def _line(at: At, lines: dict[At, int]) -> int:
    """The line of an entry, or of the nearest one around it."""
    while at not in lines and at:
        at = at[:-1]
    return lines.get(at, 0)


def _sentence(file: str, problem: Problem, lines: dict[At, int]) -> str:
    line = _line(problem.path, lines)
    place = f"{file}:{line}" if line else file
    path = _dotted(problem.path)
    where = f"{place}: {path}" if path else place
    return f"{where}: found {problem.found}; expected {problem.expected}"


def _dotted(at: At) -> str:
    path = ""
    for part in at:
        if isinstance(part, int):
            path += f"[{part}]"
        elif "." in part or not part.isprintable() or not part:
            path += f"[{yaml_file.shorten(part)}]"
        else:
            path += f".{yaml_file.shorten(part)[1:-1]}" if path else yaml_file.shorten(part)[1:-1]
    return path
