"""Secrets Manager: the Slack bot token."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.core.errors import PassingError, PermanentError

_PERMANENT = ("ResourceNotFoundException", "AccessDeniedException")


def read_slack_token(client: Any, secret: str) -> str:
    """The bot token that an operator put into the secret.

    Raises:
        PermanentError: there is no token in it yet, or we may not read it.
        PassingError: Secrets Manager did not answer.
    """
    try:
        value = client.get_secret_value(SecretId=secret).get("SecretString", "")
    except ClientError as error:
        if error.response["Error"]["Code"] in _PERMANENT:
            raise PermanentError(f"Slack secret {secret}: {error}") from error
        raise PassingError(f"Slack secret {secret}: {error}") from error
    except BotoCoreError as error:
        raise PassingError(f"Slack secret {secret}: {error}") from error
    token = str(value).strip()
    if not token.startswith("xoxb-"):
        text = f"Slack secret {secret} holds no bot token (xoxb-…); put it there, plain"
        raise PermanentError(text)
    return token
