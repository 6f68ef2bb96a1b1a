"""The interruptions function: spot interruption notices from the inbox."""

import datetime as dt
from typing import Any

from lambdas.adapters.inbox import letters
from lambdas.runtime import runtime, utc_now

# Kept back to record and tell what was done.
RESERVE = dt.timedelta(seconds=15)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle a batch of SQS messages; names those that are to be delivered again.

    `event` is what Lambda's SQS poller sends; the answer is a partial batch response.
    """
    parts = runtime()
    remaining = dt.timedelta(milliseconds=context.get_remaining_time_in_millis())
    try:
        again = parts.interruptions.run(letters(event), utc_now() + remaining - RESERVE)
    finally:
        if parts.metrics.metric_set:
            parts.metrics.flush_metrics()
    return {"batchItemFailures": [{"itemIdentifier": one} for one in again]}
