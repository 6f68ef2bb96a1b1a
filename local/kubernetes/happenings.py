"""What happened in the simulated cluster, for a timeline."""

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "scaled",  # a Deployment's replicas changed
    "scheduled",  # a pod was bound to a node
    "ready",  # a pod serves
    "gone",  # a terminating pod has ended
    "lost",  # a pod died with its node, without having been evicted
    "launched",  # an instance was started for a NodePool
    "joined",  # a node became Ready
    "no-capacity",  # a NodePool's instances cannot be had now
    "notice",  # an instance will be taken away
    "reclaimed",  # an instance was taken away
]


@dataclasses.dataclass(frozen=True)
class Happening:
    """One event. The subject is a node's name, a NodePool's, or `<namespace>/<name>`."""

    at: dt.datetime
    kind: Kind
    subject: str
    detail: str


# Says something happened now: kind, subject, detail.
Say: TypeAlias = Callable[[Kind, str, str], None]
