"""What `cdk deploy` has made: the parts that a rehearsal speaks to, as the function knows them."""

from typing import Any

import msgspec

FUNCTION = "shiftwright-interruptions"


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """The function's environment."""

    ledger_table: str
    inbox_url: str
    dead_letter_url: str
    slack_secret: str


def find(lambdas: Any) -> Deployed:
    """Ask for the function's environment; `lambdas` is a boto3 client of Lambda."""
    found = lambdas.get_function_configuration(FunctionName=FUNCTION)
    variables = found["Environment"]["Variables"]
    return Deployed(
        ledger_table=variables["SHIFTWRIGHT_LEDGER_TABLE"],
        inbox_url=variables["SHIFTWRIGHT_INBOX_URL"],
        dead_letter_url=variables["SHIFTWRIGHT_DEAD_LETTER_URL"],
        slack_secret=variables["SHIFTWRIGHT_SLACK_SECRET"],
    )


def count_messages(sqs: Any, url: str) -> int:
    """Messages in a queue: to be received, in flight, and delayed. `sqs` is a boto3 client."""
    names = ("", "NotVisible", "Delayed")
    wanted = [f"ApproximateNumberOfMessages{name}" for name in names]
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)
    return sum(int(answer["Attributes"].get(name, 0)) for name in wanted)
