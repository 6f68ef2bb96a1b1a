"""What boto3's errors mean to us: worth another try, or not."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.core.errors import PassingError, PermanentError

# The role lacks a permission, under the names that different services give it.
_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")


@contextmanager
def aws_errors(what: str, *, permanent: tuple[str, ...] = ()) -> Iterator[None]:
    """Turn the errors of AWS calls into ours; `what` names the thing in their messages.

    Raises:
        PermanentError: a refused permission, or one of the `permanent` error codes.
        PassingError: everything else: throttled, unreachable, AWS's own fault.
    """
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        kind = PermanentError if code in (*_DENIED, *permanent) else PassingError
        raise kind(f"{what}: {error}") from error
    except BotoCoreError as error:
        raise PassingError(f"{what}: {error}") from error
