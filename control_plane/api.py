"""The API server as an administrator speaks to it: plain JSON, and what a new cluster needs."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
_TIMEOUT_SECONDS = 30
_ESTABLISHED_SECONDS = 60
_PATHS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


class RefusalError(Exception):
    """The API server did not do what it was asked; the message holds its words."""


class Api:
    """Calls of one user. A connection each: the server may be another one the next time."""

    def __init__(self, url: str, ca_pem: str, token: str) -> None:
        context = ssl.create_default_context(cadata=ca_pem)
        # No proxy from the environment: the server is on this machine.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        self._url = url
        self._token = token

    def call(
        self, method: str, path: str, body: object = None, content_type: str = JSON
    ) -> tuple[int, Any]:
        """The status, and the JSON of the answer (or its text). OSError if nobody answers."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        request = urllib.request.Request(  # noqa: S310 - the URL is our own
            self._url + path, content, headers, method=method
        )
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return answer.status, _content(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _content(error.read())

    def get(self, path: str) -> Any:
        """The JSON of a 200. Raises RefusalError."""
        return self._accepted("GET", path)

    def create(self, path: str, body: object) -> Any:
        """The created object. Raises RefusalError."""
        return self._accepted("POST", path, body)

    def merge(self, path: str, patch: object) -> Any:
        """The object after a merge patch. Raises RefusalError."""
        return self._accepted("PATCH", path, patch, MERGE_PATCH)

    def delete(self, path: str) -> None:
        """Delete; nothing if it is not there. Raises RefusalError."""
        status, answer = self.call("DELETE", path)
        if status not in (200, 202, 404):
            raise RefusalError(f"DELETE {path}: {status} {answer}")

    def install(self, documents: Iterable[dict[str, Any]]) -> None:
        """Create definitions and roles, and wait until the definitions are served."""
        definitions = []
        for document in documents:
            created = self.create(_PATHS[document["kind"]], document)
            if document["kind"] == "CustomResourceDefinition":
                definitions.append(created)
        until = time.monotonic() + _ESTABLISHED_SECONDS
        while not all(self._is_served(definition) for definition in definitions):
            if time.monotonic() > until:
                raise RefusalError(f"The definitions are not served after {_ESTABLISHED_SECONDS} s")
            time.sleep(0.05)

    def _is_served(self, definition: dict[str, Any]) -> bool:
        spec = definition["spec"]
        version = next(each["name"] for each in spec["versions"] if each["served"])
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1"
        return self.call("GET", path)[0] == 200

    def _accepted(
        self, method: str, path: str, body: object = None, content_type: str = JSON
    ) -> Any:
        status, answer = self.call(method, path, body, content_type)
        if status >= 300:
            words = answer.get("message", answer) if isinstance(answer, dict) else answer
            raise RefusalError(f"{method} {path}: {status} {words}")
        return answer


def _content(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
