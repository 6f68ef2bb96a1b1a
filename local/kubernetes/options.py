"""What a request asks for besides the object: its query, its DeleteOptions, its body."""

import dataclasses
import json
import re
import urllib.parse
from typing import Any

from local.kubernetes.resources import Object
from local.kubernetes.status import bad_request


@dataclasses.dataclass(frozen=True)
class ListOptions:
    """The parameters of a list."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""


@dataclasses.dataclass(frozen=True)
class Preconditions:
    """Which object, and which version of it, is meant; empty is any."""

    uid: str = ""
    resource_version: str = ""


@dataclasses.dataclass(frozen=True)
class DeleteOptions:
    """The conditions of a deletion or an eviction."""

    expected: Preconditions = Preconditions()
    grace_seconds: int | None = None


def parse_query(query: str) -> dict[str, str]:
    """The parameters, the last of each name; what would change the meaning is refused."""
    parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True, max_num_fields=50))
    for name in ("dryRun", "watch"):
        if parameters.get(name) not in (None, "", "false", "0"):
            raise bad_request(f"{name} is not part of this stand-in of the API")
    return parameters


def list_options(parameters: dict[str, str]) -> ListOptions:
    limit = parameters.get("limit", "0")
    if not re.fullmatch(r"-?[0-9]{1,18}", limit):
        raise bad_request(f'strconv.ParseInt: parsing "{limit}": invalid syntax')
    return ListOptions(
        labels=parameters.get("labelSelector", ""),
        fields=parameters.get("fieldSelector", ""),
        # Below nothing is no limit.
        limit=max(int(limit), 0),
        token=parameters.get("continue", ""),
    )


def delete_options(body: Object, parameters: dict[str, str]) -> DeleteOptions:
    """From the body, or for the grace period from the query."""
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise bad_request("cannot decode the object: preconditions must be an object")
    uid, version = (preconditions.get(key) or "" for key in ("uid", "resourceVersion"))
    asked = body.get("gracePeriodSeconds", parameters.get("gracePeriodSeconds"))
    if not isinstance(uid, str) or not isinstance(version, str):
        raise bad_request("cannot decode the object: preconditions must be strings")
    expected = Preconditions(uid, version)
    if asked is None:
        return DeleteOptions(expected)
    if isinstance(asked, bool) or not re.fullmatch(r"-?[0-9]{1,9}", str(asked)):
        raise bad_request("cannot decode the object: gracePeriodSeconds must be an integer")
    return DeleteOptions(expected, int(asked))


def parse_body(body: bytes) -> Object:
    """The JSON object of a body; an empty body is an empty object."""
    if not body:
        return {}
    try:
        value: Any = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise bad_request("the body must be a JSON object")
    return value


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
