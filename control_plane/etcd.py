"""What is asked of etcd itself, over its JSON gateway."""

import base64
import json
import urllib.request
from typing import Any

# Where API servers note up to which revision they have compacted, and look for what others did.
_NOTE = "compact_rev_key"
_TIMEOUT_SECONDS = 10


class Etcd:
    """The store behind an API server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @property
    def is_healthy(self) -> bool:
        try:
            with self._opener.open(f"{self._url}/health", timeout=_TIMEOUT_SECONDS) as answer:
                return bool(json.load(answer).get("health") == "true")
        except OSError:
            return False

    def compact(self) -> int:
        """Forget every revision up to now, as an API server does it; the revision."""
        revision = self._put(_NOTE, "0")
        self._put(_NOTE, str(revision))
        self._call("kv/compaction", {"revision": revision})
        return revision

    def _put(self, key: str, value: str) -> int:
        answer = self._call("kv/put", {"key": _encoded(key), "value": _encoded(value)})
        return int(answer["header"]["revision"])

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        content = json.dumps(body).encode()
        url = f"{self._url}/v3/{path}"
        request = urllib.request.Request(url, content, method="POST")  # noqa: S310 - ours
        with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            return json.load(answer)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
