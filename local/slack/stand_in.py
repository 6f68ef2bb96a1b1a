"""A stand-in for Slack's Web API that accepts and refuses messages as Slack does.

Strict where Slack is lenient: one message a second per channel with no burst, so that whoever
passes here also passes there. Sources: docs.slack.dev, methods chat.postMessage and chat.update,
and the page on rate limits.
"""

import datetime as dt
import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from local.slack import blocks

TEXT_LIMIT = 40_000
# Not documented: a message whose blocks come to more is answered msg_blocks_too_long
# (slackapi/bolt-js, issue 2509).
BLOCKS_LIMIT = 13_000
BODY_LIMIT = 1_000_000
_SECOND = dt.timedelta(seconds=1)
_TS = re.compile(r"^\d{10}\.\d{6}$")

Arguments = Mapping[str, object]
Clock = Callable[[], dt.datetime]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as the channel shows it."""

    at: dt.datetime
    ts: str
    channel: str
    text: str
    blocks: tuple[dict[str, object], ...] = ()
    thread_ts: str | None = None
    edited: bool = False


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was answered with an error."""

    at: dt.datetime
    method: str
    error: str
    details: tuple[str, ...] = ()


class RefusedError(Exception):
    """Slack's name for what is wrong with a call, and its explanations."""

    def __init__(self, error: str, *details: str) -> None:
        super().__init__(error)
        self.error = error
        self.details = details


class SlackStandIn:
    """One workspace with its channels, over HTTP on 127.0.0.1.

    `channels` maps a channel's id to its name without the number sign. `listener` hears of every
    accepted post and edit, in the thread that serves the request.
    """

    def __init__(
        self,
        *,
        token: str,
        channels: Mapping[str, str],
        clock: Clock,
        listener: Callable[[Message], None] = lambda _message: None,
    ) -> None:
        self._token = token
        self._channels = dict(channels)
        self._clock = clock
        self._listener = listener
        self._lock = threading.Lock()
        self._messages: dict[tuple[str, str], Message] = {}
        self._refusals: list[Refusal] = []
        self._last_post: dict[str, dt.datetime] = {}
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._methods: Mapping[str, Callable[[Arguments], dict[str, object]]] = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post_message,
            "chat.update": self._update,
        }

    @property
    def url(self) -> str:
        """Base address of the Web API, as slack_sdk takes it."""
        if self._server is None:
            raise RuntimeError("the Slack stand-in is not started")
        return f"http://127.0.0.1:{self._server.server_port}/api/"

    @property
    def messages(self) -> tuple[Message, ...]:
        """Accepted messages in the order of their posting, edits applied."""
        with self._lock:
            return tuple(self._messages.values())

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Calls answered with an error, 429 among them."""
        with self._lock:
            return tuple(self._refusals)

    def start(self, port: int = 0) -> None:
        """Serve on this port of 127.0.0.1; 0 takes a free one. Raises OSError if it is in use."""
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop serving; what was received stays readable."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server = None

    def call(self, method: str, arguments: Arguments, token: str | None) -> dict[str, object]:
        """Answer one call as Slack would."""
        with self._lock:
            try:
                self._authenticate(token)
                if method not in self._methods:
                    raise RefusedError("unknown_method")
                answer = self._methods[method](arguments)
            except RefusedError as refused:
                return self.refuse(method, refused)
        if method.startswith("chat."):
            key = (str(answer["channel"]), str(answer["ts"]))
            self._listener(self._messages[key])
        return answer

    def refuse(self, method: str, refused: RefusedError) -> dict[str, object]:
        """Note a refused call, and word the answer."""
        self._refusals.append(
            Refusal(at=self._clock(), method=method, error=refused.error, details=refused.details)
        )
        answer: dict[str, object] = {"ok": False, "error": refused.error}
        if refused.details:
            answer["errors"] = list(refused.details)
            answer["response_metadata"] = {
                "messages": [f"[ERROR] {detail}" for detail in refused.details]
            }
        return answer

    def _authenticate(self, token: str | None) -> None:
        if not token:
            raise RefusedError("not_authed")
        if token != self._token:
            raise RefusedError("invalid_auth")

    def _auth_test(self, _arguments: Arguments) -> dict[str, object]:
        return {
            "ok": True,
            "url": "https://example.slack.com/",
            "team": "Example",
            "user": "shiftwright",
            "team_id": "T00000001",
            "user_id": "U00000001",
            "bot_id": "B00000001",
        }

    def _post_message(self, arguments: Arguments) -> dict[str, object]:
        channel = self._channel(arguments)
        text, layout = _content(arguments)
        thread_ts = arguments.get("thread_ts")
        if thread_ts is not None:
            self._require_thread(channel, thread_ts)
        at = self._clock()
        last = self._last_post.get(channel)
        if last is not None and at - last < _SECOND:
            raise RefusedError("ratelimited")
        self._last_post[channel] = at
        message = Message(
            at=at,
            ts=self._timestamp(channel, at),
            channel=channel,
            text=text,
            blocks=layout,
            thread_ts=None if thread_ts is None else str(thread_ts),
        )
        return self._keep(message)

    def _update(self, arguments: Arguments) -> dict[str, object]:
        channel = self._channel(arguments)
        text, layout = _content(arguments)
        before = self._messages.get((channel, str(arguments.get("ts"))))
        if before is None:
            raise RefusedError("message_not_found")
        return self._keep(msgspec.structs.replace(before, text=text, blocks=layout, edited=True))

    def _keep(self, message: Message) -> dict[str, object]:
        self._messages[message.channel, message.ts] = message
        return {
            "ok": True,
            "channel": message.channel,
            "ts": message.ts,
            "message": {
                "type": "message",
                "text": message.text,
                "blocks": list(message.blocks),
                "ts": message.ts,
                **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
            },
        }

    def _channel(self, arguments: Arguments) -> str:
        wanted = arguments.get("channel")
        for identifier, name in self._channels.items():
            if wanted in (identifier, name, f"#{name}"):
                return identifier
        raise RefusedError("channel_not_found")

    def _require_thread(self, channel: str, thread_ts: object) -> None:
        if not isinstance(thread_ts, str) or not _TS.match(thread_ts):
            raise RefusedError("invalid_thread_ts", f"{thread_ts} is not a valid thread_ts")
        if (channel, thread_ts) not in self._messages:
            raise RefusedError("thread_not_found")

    def _timestamp(self, channel: str, at: dt.datetime) -> str:
        """A message's id: seconds, and a counter that makes it unique in its channel."""
        seconds = int(at.timestamp())
        counter = 1
        while (channel, f"{seconds:010}.{counter:06}") in self._messages:
            counter += 1
        return f"{seconds:010}.{counter:06}"


def _content(arguments: Arguments) -> tuple[str, tuple[dict[str, object], ...]]:
    """The text and blocks of a message, or the refusal."""
    text = arguments.get("text") or ""
    layout = arguments.get("blocks") or []
    if not isinstance(text, str):
        raise RefusedError("invalid_arguments", "text must be a string")
    if isinstance(layout, str):
        layout = _decoded_blocks(layout)
    if not text and not layout:
        raise RefusedError("no_text")
    if len(text) > TEXT_LIMIT:
        raise RefusedError("msg_too_long")
    if not layout:
        return text, ()
    found = blocks.problems(layout)
    if found or not isinstance(layout, list):
        raise RefusedError("invalid_blocks", *found)
    if len(json.dumps(layout)) > BLOCKS_LIMIT:
        raise RefusedError("msg_blocks_too_long")
    return text, tuple(layout)


def _decoded_blocks(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RefusedError("invalid_blocks_format") from error


def _decoded_body(content_type: str, body: bytes) -> Arguments:
    """The arguments of a call, from either of the two encodings Slack takes."""
    if not content_type:
        raise RefusedError("missing_post_type")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return _decoded_json(body)
    if kind != "application/x-www-form-urlencoded":
        raise RefusedError("invalid_post_type")
    try:
        return dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=bool(body)))
    except ValueError as error:
        raise RefusedError("invalid_form_data") from error


def _decoded_json(body: bytes) -> Arguments:
    try:
        arguments = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise RefusedError("invalid_json") from error
    if not isinstance(arguments, dict):
        raise RefusedError("json_not_object")
    return arguments


def _handler(stand_in: SlackStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds for a client to finish its request

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            if not length.isdecimal() or int(length) > BODY_LIMIT:
                self.send_error(413, f"send at most {BODY_LIMIT} bytes, with a Content-Length")
                return
            body = self.rfile.read(int(length))
            method = urllib.parse.urlsplit(self.path).path.removeprefix("/api/")
            self._answer(self._result(method, body))

        def _result(self, method: str, body: bytes) -> dict[str, object]:
            try:
                arguments = _decoded_body(self.headers.get("Content-Type", ""), body)
            except RefusedError as refused:
                return stand_in.refuse(method, refused)
            scheme, _, token = self.headers.get("Authorization", "").partition(" ")
            if scheme != "Bearer":
                # A form may carry its token as an argument; a JSON body may not.
                form = "json" not in self.headers.get("Content-Type", "")
                token = str(arguments.get("token", "")) if form else ""
            return stand_in.call(method, arguments, token or None)

        def _answer(self, answer: dict[str, object]) -> None:
            limited = answer.get("error") == "ratelimited"
            payload = json.dumps(answer).encode()
            self.send_response(429 if limited else 200)
            if limited:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_arguments: object) -> None:
            """Keep the terminal for the run's own lines."""

    return Handler
