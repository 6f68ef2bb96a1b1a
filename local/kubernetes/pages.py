"""Lists in pages: what `limit` and `continue` give, and what a token is worth later."""

import base64
import binascii
import collections
import dataclasses
import json

from local.kubernetes.resources import Object, Resource
from local.kubernetes.status import ApiError, bad_request, expired

# In a token: whatever the list is when the token is used.
NOW = -1
_KEPT_LISTS = 64


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of a list, as of one resourceVersion."""

    items: tuple[Object, ...]
    resource_version: int
    continue_token: str = ""
    # None where the rest is not known, as with selectors.
    remaining: int | None = None


class Snapshots:
    """The lists that tokens still refer to; the oldest are forgotten and their tokens expire."""

    def __init__(self) -> None:
        self._lists: collections.OrderedDict[tuple[int, Resource], tuple[Object, ...]]
        self._lists = collections.OrderedDict()

    def keep(self, version: int, resource: Resource, objects: tuple[Object, ...]) -> None:
        self._lists[(version, resource)] = objects
        while len(self._lists) > _KEPT_LISTS:
            self._lists.popitem(last=False)

    def get(self, version: int, resource: Resource, start: str) -> tuple[Object, ...]:
        """The list of a token; 410, with a token for the rest as of now, if it is forgotten."""
        objects = self._lists.get((version, resource))
        if objects is None:
            raise expired(encode_token(NOW, start))
        return objects

    def forget(self) -> None:
        """Expire every token given so far, as compaction does."""
        self._lists.clear()


def key_of(body: Object) -> str:
    """The order of a list: by namespace, then by name."""
    metadata = body["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def encode_token(version: int, start: str) -> str:
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def decode_token(text: str) -> tuple[int, str]:
    """The resourceVersion and the last key of a token; 400 if it is not one of ours."""
    try:
        padded = text + "=" * (-len(text) % 4)
        token = json.loads(base64.urlsafe_b64decode(padded))
        version, start = token["rv"], token["start"]
    except (binascii.Error, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _not_a_token() from error
    if not isinstance(version, int) or not isinstance(start, str):
        raise _not_a_token()
    return version, start


def _not_a_token() -> ApiError:
    return bad_request("invalid continue token: continue key is not valid")


def cut(objects: tuple[Object, ...], version: int, limit: int, *, counted: bool) -> Page:
    """The first `limit` objects, and a token for the rest; a limit of 0 is none."""
    if not limit or len(objects) <= limit:
        return Page(objects, version)
    items = objects[:limit]
    remaining = len(objects) - limit if counted else None
    return Page(items, version, encode_token(version, key_of(items[-1])), remaining)
