"""The API over HTTPS on 127.0.0.1, in threads of this process."""

import dataclasses
import datetime as dt
import http.server
import json
import socket
import socketserver
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from local.kubernetes.api import Api, Call, Reply, authenticated
from local.kubernetes.authorization import ClusterRole, User
from local.kubernetes.certificates import Certificates, make_certificates
from local.kubernetes.resources import Clock
from local.kubernetes.status import ApiError, bad_request, internal_error, too_large
from local.kubernetes.store import Store

# The real server's limit for one object.
_BODY_LIMIT_BYTES = 3 * 1024 * 1024
# A connection on which nothing comes for so long is closed.
_IDLE_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Request:
    """One answered request. The path has its query; the user is empty if nobody was."""

    at: dt.datetime
    user: str
    method: str
    path: str
    status: int


# Gets the bearer token and gives the user, or None for a 401.
Authenticate: TypeAlias = Callable[[str], User | None]


class Front:
    """HTTPS, the check of tokens and a journal, before whatever handles a request.

    `handle` may raise ApiError.
    """

    def __init__(
        self, *, authenticate: Authenticate, handle: Callable[[Call], Reply], clock: Clock
    ) -> None:
        self._journal: list[Request] = []
        self._certificates = make_certificates()
        self._authenticate = authenticate
        self._handle = handle
        self._clock = clock
        self._server: _Server | None = None

    @property
    def ca_pem(self) -> str:
        """What a client must trust."""
        return self._certificates.ca_pem

    @property
    def url(self) -> str:
        """`https://127.0.0.1:<port>`, once started."""
        if self._server is None:
            raise RuntimeError("the Kubernetes stand-in is not running: call start() first")
        return f"https://127.0.0.1:{self._server.server_port}"

    @property
    def journal(self) -> tuple[Request, ...]:
        """The requests answered so far, oldest first. Appending and copying are atomic."""
        return tuple(self._journal)

    def start(self, port: int = 0) -> None:
        """Listen; port 0 takes a free one. OSError if the port is in use."""
        self._server = _Server(port, self._certificates, self._answer)
        self._server.start()

    def stop(self) -> None:
        """Close every connection and wait for the threads. Nothing if it is not running."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _answer(self, call: Call, token: str | None) -> tuple[Reply, int]:
        """The reply, and after how many seconds to come back (0: not said)."""
        user: User | None = None
        retry_after_seconds = 0
        try:
            user = self._authenticate(token) if token else None
            user = authenticated(user, anonymous=token is None)
            reply = self._handle(dataclasses.replace(call, user=user))
        except ApiError as error:
            reply = Reply(error.code, error.body())
            retry_after_seconds = error.retry_after_seconds
        name = user.name if user else ""
        self._journal.append(Request(self._clock(), name, call.method, call.target, reply.status))
        return reply, retry_after_seconds


class StandIn(Front):
    """A Kubernetes API server with only the kinds and verbs that the local run uses."""

    def __init__(
        self, *, authenticate: Authenticate, cluster_roles: Sequence[ClusterRole], clock: Clock
    ) -> None:
        self.store = Store(clock)
        api = Api(self.store, cluster_roles)
        super().__init__(authenticate=authenticate, handle=api.handle, clock=clock)


_Answer = Callable[[Call, str | None], tuple[Reply, int]]
_NOBODY = User("")


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, port: int, certificates: Certificates, answer: _Answer) -> None:
        self.answer = answer
        self._open: dict[socket.socket, threading.Thread] = {}
        self._open_lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        # The handshake is left to the connection's own thread: a client that never
        # finishes one must not keep others waiting.
        self.socket = _context(certificates).wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.05,), name="kubernetes-stand-in", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
        with self._open_lock:
            connections = list(self._open.items())
        for connection, thread in connections:
            _hang_up(connection)
            thread.join()

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the resolver for the name of 127.0.0.1.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self.process_request_thread,
            args=(request, client_address),
            name="kubernetes-stand-in connection",
            daemon=True,
        )
        with self._open_lock:
            self._open[request] = thread
        thread.start()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._open_lock:
                del self._open[request]

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients hang up, and some do not trust us: that is theirs to report.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _hang_up(connection: socket.socket) -> None:
    try:
        # Not SSLSocket.shutdown, which takes the TLS state from under the reading thread.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        return  # already closed


def _context(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The ssl module loads a chain from files only.
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "server.pem"
        chain.touch(mode=0o600)
        chain.write_text(certificates.certificate_pem + certificates.key_pem)
        context.load_cert_chain(chain)
    return context


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    server: _Server

    def _handle(self) -> None:
        try:
            body = self._body()
        except ApiError as error:
            # The rest of the request is still on its way: this connection is of no more use.
            self.close_connection = True
            self._send(Reply(error.code, error.body()), 0)
            return
        content_type = self.headers.get("Content-Type", "")
        call = Call(self.command, self.path, _NOBODY, content_type, body)
        try:
            reply, retry_after_seconds = self.server.answer(call, self._token())
        except Exception as error:
            # The client gets a 500 as from the real server; the trace goes to stderr.
            problem = internal_error(repr(error))
            self._send(Reply(problem.code, problem.body()), 0)
            raise
        self._send(reply, retry_after_seconds)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _handle  # noqa: N815

    def _token(self) -> str | None:
        """The bearer token; None if the client does not say who it is."""
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else None

    def _body(self) -> bytes:
        if "Transfer-Encoding" in self.headers:
            raise bad_request("a body needs a Content-Length here")
        length = self.headers.get("Content-Length", "0")
        if not length.isascii() or not length.isdigit():
            raise bad_request(f"Content-Length {length!r} is not a number")
        # No need to make a number of a thousand digits to know that it is too much.
        size = int(length[:10])
        if size > _BODY_LIMIT_BYTES:
            # A client that is cut off while it writes never sees the answer.
            if size <= 2 * _BODY_LIMIT_BYTES:
                self.rfile.read(size)
            raise too_large(_BODY_LIMIT_BYTES)
        return self.rfile.read(size)

    def _send(self, reply: Reply, retry_after_seconds: int) -> None:
        text = isinstance(reply.body, str)
        content = str(reply.body) if text else json.dumps(reply.body, separators=(",", ":"))
        encoded = content.encode()
        self.send_response(reply.status)
        self.send_header(
            "Content-Type", "text/plain; charset=utf-8" if text else "application/json"
        )
        self.send_header("Content-Length", str(len(encoded)))
        if retry_after_seconds:
            self.send_header("Retry-After", str(retry_after_seconds))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(encoded)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the HTTP layer itself refuses, as a Status too."""
        self.close_connection = True
        problem = ApiError(code, "BadRequest", message or explain or "bad request")
        self._send(Reply(code, problem.body()), 0)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """The journal says what is worth saying."""
