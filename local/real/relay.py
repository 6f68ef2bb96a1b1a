"""Passes authenticated requests on to the real API server, as the user who makes them.

EKS does the same before its API server: it checks the token with STS, and what the user may do
is the API server's to say.
"""

import contextlib
import http.client
import json
import ssl
import urllib.parse

from control_plane.run import ControlPlane
from local.kubernetes.api import Call, Reply
from local.kubernetes.resources import Object
from local.real.fleet import Fleet

_NODES = "/api/v1/nodes"
_TIMEOUT_SECONDS = 30


class Relay:
    """One API server, whose nodes seem to run on EC2."""

    def __init__(self, plane: ControlPlane, fleet: Fleet) -> None:
        self._plane = plane
        self._fleet = fleet
        self._context = ssl.create_default_context(cadata=plane.ca_pem)

    def handle(self, call: Call) -> Reply:
        """The API server's own answer."""
        host = urllib.parse.urlsplit(self._plane.url).netloc
        connection = http.client.HTTPSConnection(
            host, context=self._context, timeout=_TIMEOUT_SECONDS
        )
        with contextlib.closing(connection):
            connection.putrequest(call.method, call.target)
            connection.putheader("Authorization", f"Bearer {self._plane.admin_token}")
            connection.putheader("Impersonate-User", call.user.name)
            for group in call.user.groups:
                connection.putheader("Impersonate-Group", group)
            connection.putheader("Accept", "application/json")
            if call.body:
                connection.putheader("Content-Type", call.content_type)
                connection.putheader("Content-Length", str(len(call.body)))
            connection.endheaders(call.body or None)
            response = connection.getresponse()
            return self._reply(call, response.status, response.read())

    def _reply(self, call: Call, status: int, content: bytes) -> Reply:
        try:
            body = json.loads(content)
        except ValueError:
            return Reply(status, content.decode(errors="replace"))
        if status == 200 and call.target.partition("?")[0] == _NODES:
            body = self._dressed(body)
        return Reply(status, body)

    def _dressed(self, answer: Object) -> Object:
        items = [self._fleet.dress(node) for node in answer.get("items") or ()]
        return {**answer, "items": items}
