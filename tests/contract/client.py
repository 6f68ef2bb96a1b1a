"""A client with no opinion: it sends what a test says and shows what came back."""

import dataclasses
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Callable
from typing import Any

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclasses.dataclass(frozen=True)
class Answer:
    """An HTTP answer. The body is JSON, or text as it came."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclasses.dataclass(frozen=True)
class Server:
    """An API server under test."""

    url: str
    ca_pem: str
    admin_token: str
    # In the group `shiftwright`, with our manifest applied.
    product_token: str
    # A user that no role names.
    stranger_token: str
    # Makes every continue token given so far expire.
    expire_tokens: Callable[[], None]


class Client:
    """Requests of one user over one connection."""

    def __init__(self, server: Server, token: str | None) -> None:
        context = ssl.create_default_context(cadata=server.ca_pem)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        host = urllib.parse.urlsplit(server.url).netloc
        self._connection = http.client.HTTPSConnection(host, context=context, timeout=10)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send a JSON value, or bytes as they are."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": content_type} if content else {})
        self._connection.request(method, path, content, headers)
        response = self._connection.getresponse()
        text = response.read().decode()
        is_json = response.headers.get_content_type() == "application/json"
        answer_headers = {key.lower(): value for key, value in response.getheaders()}
        return Answer(response.status, answer_headers, json.loads(text) if is_json else text)

    def get(self, path: str, **query: object) -> Answer:
        return self.call("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path)

    def create(self, path: str, body: object) -> Answer:
        return self.call("POST", path, body)

    def merge(self, path: str, patch: object) -> Answer:
        return self.call("PATCH", path, patch, MERGE)

    def delete(self, path: str, options: object = None) -> Answer:
        return self.call("DELETE", path, options)

    def close(self) -> None:
        self._connection.close()
