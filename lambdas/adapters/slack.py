"""Slack: posts to one channel, in threads."""

from collections.abc import Callable
from http.client import HTTPException

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from lambdas.core.errors import PassingError, PermanentError
from lambdas.core.messages import Message

TIMEOUT_SECONDS = 5
# Slack's words for its own trouble; everything else that it refuses stays refused.
_PASSING = frozenset(
    {"ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}
)

# No answer, or none that Slack would give: slack_sdk stumbles over what is no JSON object.
_NO_ANSWER = (SlackClientError, OSError, HTTPException, ValueError, AttributeError)


class Slack:
    """A channel and the bot that posts there."""

    def __init__(self, channel: str, api_url: str, token: Callable[[], str]) -> None:
        """`token` gives the bot token; it is asked before the first post, and after a refusal."""
        self._channel = channel
        self._api_url = api_url
        self._token = token
        self._client: WebClient | None = None

    def post(self, message: Message, thread: str = "") -> str:
        """Post a message, in a thread if one is given; returns the post's own `ts`.

        Raises:
            PassingError: Slack is throttling, or did not answer.
            PermanentError: Slack refused; the message says what to do.
        """
        try:
            answer = self._connected().chat_postMessage(
                channel=self._channel,
                text=message.text,
                blocks=list(message.blocks),
                thread_ts=thread or None,
                unfurl_links=False,
            )
        except SlackApiError as error:
            raise self._refusal(error) from error
        except _NO_ANSWER as error:
            raise PassingError(f"Slack at {self._api_url}: {error!r}") from error
        if not answer.get("ts"):
            raise PassingError(f"Slack at {self._api_url}: an answer without the message's ts")
        return str(answer["ts"])

    def _connected(self) -> WebClient:
        if self._client is None:
            self._client = WebClient(
                token=self._token(), base_url=self._api_url, timeout=TIMEOUT_SECONDS
            )
        return self._client

    def _refusal(self, error: SlackApiError) -> Exception:
        code = _code(error)
        if error.response.status_code in (429, *range(500, 600)) or code in _PASSING:
            return PassingError(f"Slack: {code}")
        self._client = None  # a new token may have been put into the secret
        return PermanentError(f"Slack refused the post to {self._channel}: {code}{_hint(code)}")


def _code(error: SlackApiError) -> str:
    """Slack's name for what is wrong; where there is none, somebody else has answered."""
    data = error.response.data
    code = data.get("error") if isinstance(data, dict) else None
    return code if isinstance(code, str) and code.isidentifier() else "service_unavailable"


def _hint(code: str) -> str:
    if code in ("invalid_auth", "not_authed", "account_inactive", "token_revoked"):
        return "; put a valid bot token into the Slack secret"
    if code in ("channel_not_found", "not_in_channel", "is_archived"):
        return "; check slack.channel in the policy and invite the bot to it"
    return ""
