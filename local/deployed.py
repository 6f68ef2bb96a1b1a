"""What `cdk deploy` has made, found in the deployed stack and its function."""

from typing import Any

import msgspec

HANDLER = "lambdas.interruptions.handler"


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a deployment that a rehearsal speaks to."""

    function: str
    ledger_table: str
    inbox_url: str
    dead_letter_url: str
    slack_secret: str


def find(session: Any, stack: str) -> Deployed:
    """Look the parts up; `session` is a boto3 session.

    Raises:
        LookupError: the stack has no such function.
    """
    lambdas = session.client("lambda")
    for name in _functions(session, stack):
        found = lambdas.get_function_configuration(FunctionName=name)
        if found["Handler"] == HANDLER:
            variables = found["Environment"]["Variables"]
            return Deployed(
                function=name,
                ledger_table=variables["SHIFTWRIGHT_LEDGER_TABLE"],
                inbox_url=variables["SHIFTWRIGHT_INBOX_URL"],
                dead_letter_url=variables["SHIFTWRIGHT_DEAD_LETTER_URL"],
                slack_secret=variables["SHIFTWRIGHT_SLACK_SECRET"],
            )
    raise LookupError(f"stack {stack} has no function with the handler {HANDLER}")


def _functions(session: Any, stack: str) -> list[str]:
    resources = session.client("cloudformation").describe_stack_resources(StackName=stack)
    return [
        resource["PhysicalResourceId"]
        for resource in resources["StackResources"]
        if resource["ResourceType"] == "AWS::Lambda::Function"
    ]
