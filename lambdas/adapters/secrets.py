"""Secrets Manager: the Slack bot token."""

import re
from typing import Any

from lambdas.core.errors import PermanentError
from lambdas.failures import aws_errors

_BOT_TOKEN = re.compile(r"xoxb-[A-Za-z0-9-]+")


def read_slack_token(client: Any, secret: str) -> str:
    """The bot token that an operator put into the secret.

    Raises:
        PermanentError: there is no token in it yet, or we may not read it.
        PassingError: Secrets Manager did not answer.
    """
    with aws_errors(f"Slack secret {secret}", permanent=("ResourceNotFoundException",)):
        value = client.get_secret_value(SecretId=secret).get("SecretString", "")
    token = str(value).strip()
    if not _BOT_TOKEN.fullmatch(token):
        text = f"Slack secret {secret} holds no bot token (xoxb-…); put it there, plain"
        raise PermanentError(text)
    return token
