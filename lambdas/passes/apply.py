"""Carries a plan out against a deadline: one outcome for each action."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from lambdas.adapters.kube import Kube
from lambdas.core.errors import (
    BudgetError,
    ConflictError,
    NotFoundError,
    PassingError,
    PermanentError,
)
from lambdas.core.plan import TRY_AGAIN, Action, Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.passes.gather import PARALLEL_CALLS


def observe(actions: Iterable[Action]) -> tuple[Outcome, ...]:
    """What observe mode does with a plan: nothing."""
    return tuple(Outcome(action=action, status=_observed(action)) for action in actions)


def apply(
    actions: tuple[Action, ...], kube: Kube, stop_at: dt.datetime, clock: Callable[[], dt.datetime]
) -> tuple[Outcome, ...]:
    """Cordon, surge, and then evict; nothing is begun after `stop_at`.

    The mark that comes with the cordon is there before the surge: another function that sees
    the surge must see the node that it is for. A pod whose surge is to be tried again waits
    for it: evicted first, it would be missed. So does one whose node is not cordoned: its
    replacement might land there.
    """

    def attempt(action: Action) -> Outcome:
        if clock() >= stop_at:
            detail = "no time left in this invocation"
            return Outcome(action=action, status=Status.RETRY, detail=detail)
        return _attempt(action, kube)

    others = [action for action in actions if not isinstance(action, Evict)]
    others.sort(key=lambda action: not isinstance(action, Cordon))
    first = [attempt(action) for action in others]
    obstacles = dict(_obstacles(first))

    def evict(action: Evict) -> Outcome:
        for key in ((action.namespace, action.deployment), (action.node,)):
            if key in obstacles:
                status, detail = obstacles[key]
                return Outcome(action=action, status=status, detail=detail)
        return attempt(action)

    with ThreadPoolExecutor(max_workers=PARALLEL_CALLS) as pool:
        evictions = pool.map(evict, [one for one in actions if isinstance(one, Evict)])
        return (*first, *evictions)


def _obstacles(
    outcomes: Iterable[Outcome],
) -> Iterator[tuple[tuple[str | None, ...], tuple[Status, str]]]:
    """What stands in the way of evictions, by (namespace, Deployment) or by (node,)."""
    for outcome in outcomes:
        match outcome.action:
            case Surge() as surge if outcome.status in TRY_AGAIN:
                key = (surge.namespace, surge.spot_deployment)
                yield key, (Status.RETRY, "waits for its workload's surge")
            case Cordon(node=node) if outcome.status in TRY_AGAIN | {Status.FAILED}:
                status = Status.FAILED if outcome.status is Status.FAILED else Status.RETRY
                yield (node,), (status, "its node could not be cordoned")
            case _:
                pass


def _observed(action: Action) -> Status:
    return Status.DONE if isinstance(action, Leave) else Status.OBSERVED


def _attempt(action: Action, kube: Kube) -> Outcome:
    status, detail = Status.DONE, ""
    try:
        _carry_out(action, kube)
    except BudgetError as error:
        status, detail = Status.BLOCKED, str(error)
    except ConflictError as error:
        status, detail = Status.OVERTAKEN, str(error)
    except PassingError as error:
        status, detail = Status.RETRY, str(error)
    except NotFoundError as error:
        status, detail = Status.UNNEEDED, "already gone"
        if isinstance(action, Surge):
            status, detail = Status.FAILED, str(error)
    except PermanentError as error:
        status, detail = Status.FAILED, str(error)
    return Outcome(action=action, status=status, detail=detail)


def _carry_out(action: Action, kube: Kube) -> None:
    match action:
        case Surge():
            kube.scale(action.namespace, action.deployment, action.after, action.resource_version)
        case Cordon():
            kube.cordon(action.node, action.interrupted_at)
        case Evict():
            kube.evict(action.namespace, action.pod, action.uid)
        case Leave():
            pass
