"""The Slack stand-in, spoken to by Slack's own client."""

import datetime as dt
import http.client
import json
import urllib.parse
from collections.abc import Iterator

import pytest
import slack_sdk
from slack_sdk.errors import SlackApiError

from local.slack import blocks
from local.slack.stand_in import BODY_LIMIT, Message, SlackStandIn

START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
TOKEN = "xoxb-test"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> dt.datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heard() -> list[Message]:
    return []


@pytest.fixture
def slack(clock: Clock, heard: list[Message]) -> Iterator[SlackStandIn]:
    stand_in = SlackStandIn(
        token=TOKEN, channels={"C0GPUOPS001": "gpu-ops"}, clock=clock, listener=heard.append
    )
    stand_in.start()
    yield stand_in
    stand_in.stop()


@pytest.fixture
def client(slack: SlackStandIn) -> slack_sdk.WebClient:
    return slack_sdk.WebClient(token=TOKEN, base_url=slack.url, timeout=5)


def section(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(text: str, action_id: str = "a") -> dict[str, object]:
    return {
        "type": "button",
        "text": {"type": "plain_text", "text": text},
        "action_id": action_id,
    }


def test_auth_test(client: slack_sdk.WebClient) -> None:
    assert client.auth_test()["user"] == "shiftwright"


@pytest.mark.parametrize("channel", ["C0GPUOPS001", "#gpu-ops", "gpu-ops"])
def test_post_is_kept_and_heard(
    client: slack_sdk.WebClient, slack: SlackStandIn, heard: list[Message], channel: str
) -> None:
    answer = client.chat_postMessage(channel=channel, text="hello", blocks=[section("*hello*")])

    assert answer["channel"] == "C0GPUOPS001"
    assert answer["ts"] == f"{int(START.timestamp())}.000001"
    expected = Message(
        at=START,
        ts=answer["ts"],
        channel="C0GPUOPS001",
        text="hello",
        blocks=(section("*hello*"),),
    )
    assert slack.messages == (expected,)
    assert heard == [expected]


def test_thread_and_edit(client: slack_sdk.WebClient, slack: SlackStandIn, clock: Clock) -> None:
    root = client.chat_postMessage(channel="#gpu-ops", text="root")
    clock.forward(1)
    reply = client.chat_postMessage(channel="#gpu-ops", text="reply", thread_ts=root["ts"])
    client.chat_update(channel=root["channel"], ts=root["ts"], text="root, done")

    assert [(m.ts, m.text, m.thread_ts, m.edited) for m in slack.messages] == [
        (root["ts"], "root, done", None, True),
        (reply["ts"], "reply", root["ts"], False),
    ]


def test_rate_limit_is_one_message_a_second(
    client: slack_sdk.WebClient, slack: SlackStandIn, clock: Clock
) -> None:
    client.chat_postMessage(channel="#gpu-ops", text="one")
    clock.forward(0.999)
    with pytest.raises(SlackApiError) as caught:
        client.chat_postMessage(channel="#gpu-ops", text="two")
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "1"

    clock.forward(0.001)
    client.chat_postMessage(channel="#gpu-ops", text="two")
    assert [message.text for message in slack.messages] == ["one", "two"]
    assert [refusal.error for refusal in slack.refusals] == ["ratelimited"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": "#other", "text": "x"}, "channel_not_found"),
        ({"text": "x"}, "channel_not_found"),
        ({"channel": "#gpu-ops"}, "no_text"),
        ({"channel": "#gpu-ops", "text": ""}, "no_text"),
        ({"channel": "#gpu-ops", "text": 5}, "invalid_arguments"),
        ({"channel": "#gpu-ops", "text": "x" * 40_001}, "msg_too_long"),
        (
            {"channel": "#gpu-ops", "text": "x", "thread_ts": "1772366400.000009"},
            "thread_not_found",
        ),
        ({"channel": "#gpu-ops", "text": "x", "thread_ts": "0"}, "invalid_thread_ts"),
        ({"channel": "#gpu-ops", "text": "x", "blocks": "[{"}, "invalid_blocks_format"),
        ({"channel": "#gpu-ops", "text": "x", "blocks": [{"type": "poem"}]}, "invalid_blocks"),
        ({"channel": "#gpu-ops", "text": "x", "blocks": {"type": "divider"}}, "invalid_blocks"),
        (
            {"channel": "#gpu-ops", "text": "x", "blocks": [section("x" * 2_900)] * 5},
            "msg_blocks_too_long",
        ),
    ],
)
def test_refused_posts(
    client: slack_sdk.WebClient, slack: SlackStandIn, arguments: dict[str, object], error: str
) -> None:
    with pytest.raises(SlackApiError) as caught:
        client.api_call("chat.postMessage", json=arguments)
    assert caught.value.response["error"] == error
    assert slack.messages == ()
    assert [refusal.error for refusal in slack.refusals] == [error]


def test_invalid_blocks_are_pointed_at(client: slack_sdk.WebClient) -> None:
    with pytest.raises(SlackApiError) as caught:
        client.chat_postMessage(channel="#gpu-ops", text="x", blocks=[section("x" * 3_001)])
    assert caught.value.response["response_metadata"]["messages"] == [
        "[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]"
    ]


def test_edit_of_nothing(client: slack_sdk.WebClient) -> None:
    with pytest.raises(SlackApiError, match="message_not_found"):
        client.chat_update(channel="C0GPUOPS001", ts="1772366400.000001", text="x")


def test_unknown_method(client: slack_sdk.WebClient) -> None:
    with pytest.raises(SlackApiError, match="unknown_method"):
        client.api_call("chat.delete", json={})


@pytest.mark.parametrize(("token", "error"), [("xoxb-other", "invalid_auth"), (None, "not_authed")])
def test_token(slack: SlackStandIn, token: str | None, error: str) -> None:
    with pytest.raises(SlackApiError, match=error):
        slack_sdk.WebClient(token=token, base_url=slack.url).chat_postMessage(
            channel="#gpu-ops", text="x"
        )


def post(slack: SlackStandIn, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    address = urllib.parse.urlsplit(slack.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=5)
    try:
        connection.request("POST", "/api/chat.postMessage", body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("body", "content_type", "error"),
    [
        (b"{", "application/json", "invalid_json"),
        (b"[" * 100_000, "application/json", "invalid_json"),
        (b"[]", "application/json; charset=utf-8", "json_not_object"),
        (b"\xff=%", "application/x-www-form-urlencoded", "invalid_form_data"),
        (b"<x/>", "text/xml", "invalid_post_type"),
        (b"channel=x", "", "missing_post_type"),
    ],
)
def test_malformed_bodies(slack: SlackStandIn, body: bytes, content_type: str, error: str) -> None:
    status, answer = post(
        slack, body, {"Content-Type": content_type, "Authorization": f"Bearer {TOKEN}"}
    )
    assert status == 200
    assert json.loads(answer)["error"] == error


def test_a_form_carries_token_and_blocks(slack: SlackStandIn) -> None:
    body = urllib.parse.urlencode(
        {"token": TOKEN, "channel": "gpu-ops", "blocks": json.dumps([{"type": "divider"}])}
    ).encode()
    status, answer = post(slack, body, {"Content-Type": "application/x-www-form-urlencoded"})
    assert status == 200
    assert json.loads(answer)["ok"]


def test_a_huge_body_is_not_read(slack: SlackStandIn) -> None:
    status, _ = post(slack, b"", {"Content-Length": str(BODY_LIMIT + 1)})
    assert status == 413


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ([], "no fewer than 1 items allowed [json-pointer:/blocks]"),
        ([{"type": "divider"}] * 51, "no more than 50 items allowed [json-pointer:/blocks]"),
        (["x"], "must be an object [json-pointer:/blocks/0]"),
        ([{"type": "poem"}], "unsupported type: poem [json-pointer:/blocks/0/type]"),
        ([{}], "unsupported type: None [json-pointer:/blocks/0/type]"),
        (
            [{"type": "divider", "text": "x"}],
            "invalid additional property: text [json-pointer:/blocks/0]",
        ),
        (
            [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}],
            "must be less than 151 characters [json-pointer:/blocks/0/text/text]",
        ),
        (
            [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}],
            "unsupported type: mrkdwn, expected plain_text [json-pointer:/blocks/0/text]",
        ),
        (
            [{"type": "section"}],
            "missing required field: text or fields [json-pointer:/blocks/0]",
        ),
        ([section("")], "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
        (
            [{"type": "section", "fields": [{"type": "mrkdwn", "text": "x" * 2_001}]}],
            "must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]",
        ),
        (
            [{"type": "section", "fields": [{"type": "mrkdwn", "text": "x"}] * 11}],
            "no more than 10 items allowed [json-pointer:/blocks/0/fields]",
        ),
        (
            [{"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}] * 11}],
            "no more than 10 items allowed [json-pointer:/blocks/0/elements]",
        ),
        ([{"type": "context"}], "must be an array [json-pointer:/blocks/0/elements]"),
        (
            [{"type": "actions", "elements": [button("x" * 76)]}],
            "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]",
        ),
        (
            [{"type": "actions", "elements": [{**button("x"), "style": "loud"}]}],
            "must be a valid enum value [json-pointer:/blocks/0/elements/0/style]",
        ),
        (
            [{"type": "actions", "elements": [{**button("x"), "value": 5}]}],
            "must be a string [json-pointer:/blocks/0/elements/0/value]",
        ),
        (
            [{"type": "actions", "elements": [{"type": "select"}]}],
            "unsupported type: only button is known here [json-pointer:/blocks/0/elements/0]",
        ),
        (
            [
                {"type": "actions", "elements": [button("x")]},
                {**section("x"), "accessory": button("y")},
            ],
            "action_id 'a' already exists [json-pointer:/blocks]",
        ),
        (
            [{"type": "divider", "block_id": "b"}, {"type": "divider", "block_id": "b"}],
            "block_id 'b' already exists [json-pointer:/blocks]",
        ),
    ],
)
def test_blocks(layout: object, problem: str) -> None:
    assert blocks.problems(layout) == (problem,)


def test_good_blocks() -> None:
    layout = [
        {"type": "header", "text": {"type": "plain_text", "text": "x" * 150}},
        section("x" * 3_000),
        {"type": "divider"},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}] * 10},
        {"type": "actions", "elements": [button("x" * 75, "a"), button("y", "b")]},
    ]
    assert blocks.problems(layout) == ()
