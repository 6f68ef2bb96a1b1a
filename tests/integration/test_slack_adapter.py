"""The Slack adapter against the stand-in, which checks as Slack does."""

import datetime as dt
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lambdas.adapters.slack import Slack
from lambdas.core.errors import PassingError, PermanentError
from lambdas.core.messages import Message
from local.slack.stand_in import SlackStandIn

NOW = dt.datetime(2026, 3, 1, 12, 0, 0, tzinfo=dt.UTC)
MESSAGE = Message(
    text="hello", blocks=({"type": "section", "text": {"type": "mrkdwn", "text": "*hello*"}},)
)


@pytest.fixture
def stand_in() -> Iterator[SlackStandIn]:
    one = SlackStandIn(token="xoxb-test", channels={"C01GPUOPS": "gpu-ops"}, clock=lambda: NOW)
    one.start()
    try:
        yield one
    finally:
        one.stop()


TOKEN = "xoxb-test"


def slack(stand_in: SlackStandIn, channel: str = "#gpu-ops", token: str = TOKEN) -> Slack:
    return Slack(channel, stand_in.url, lambda: token)


def test_a_message_and_its_thread(stand_in: SlackStandIn) -> None:
    ts = slack(stand_in).post(MESSAGE)
    (posted,) = stand_in.messages
    assert (posted.ts, posted.text, posted.thread_ts) == (ts, "hello", None)
    assert posted.blocks[0]["type"] == "section"


def test_too_fast_is_a_passing_error(stand_in: SlackStandIn) -> None:
    ts = slack(stand_in).post(MESSAGE)
    with pytest.raises(PassingError, match="ratelimited"):
        slack(stand_in).post(MESSAGE, ts)


@pytest.mark.parametrize(
    ("channel", "token", "part"),
    [
        ("#gpu-ops", "xoxb-wrong", "invalid_auth; put a valid bot token into the Slack secret"),
        ("#nowhere", "xoxb-test", "channel_not_found; check slack.channel in the policy"),
    ],
)
def test_refusals_say_what_to_do(
    stand_in: SlackStandIn, channel: str, token: str, part: str
) -> None:
    with pytest.raises(PermanentError, match=part):
        slack(stand_in, channel, token).post(MESSAGE)


def test_a_message_that_breaks_the_rules_is_a_permanent_error(stand_in: SlackStandIn) -> None:
    broken = Message(text="hello", blocks=({"type": "header"},))
    with pytest.raises(PermanentError, match="invalid_blocks"):
        slack(stand_in).post(broken)


def test_a_new_token_is_taken_after_a_refusal(stand_in: SlackStandIn) -> None:
    tokens = iter(["xoxb-old", "xoxb-test"])
    one = Slack("#gpu-ops", stand_in.url, lambda: next(tokens))
    with pytest.raises(PermanentError):
        one.post(MESSAGE)
    assert one.post(MESSAGE)


def test_nobody_there_is_a_passing_error(stand_in: SlackStandIn) -> None:
    gone = slack(stand_in)
    stand_in.stop()
    with pytest.raises(PassingError, match="Slack at http"):
        gone.post(MESSAGE)


@pytest.mark.parametrize(
    "body", [b"<html>no healthy upstream</html>", b"", b"null", b"[]", b"\xff", b'{"ok": true}']
)
def test_an_answer_that_slack_would_not_give_is_a_passing_error(body: bytes) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        odd = Slack("#gpu-ops", f"http://127.0.0.1:{server.server_port}/api/", lambda: TOKEN)
        with pytest.raises(PassingError, match="Slack"):
            odd.post(MESSAGE)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
