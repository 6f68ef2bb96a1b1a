"""Carries a plan out against a deadline: one outcome for each action."""

import datetime as dt
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from lambdas.adapters.kube import Kube
from lambdas.core.errors import BudgetError, NotFoundError, PassingError, PermanentError
from lambdas.core.plan import Action, Cordon, Evict, Leave, Outcome, Status, Surge
from lambdas.passes.gather import PARALLEL_CALLS


def observe(actions: Iterable[Action]) -> tuple[Outcome, ...]:
    """What observe mode does with a plan: nothing."""
    return tuple(Outcome(action=action, status=_observed(action)) for action in actions)


def apply(
    actions: tuple[Action, ...], kube: Kube, stop_at: dt.datetime, clock: Callable[[], dt.datetime]
) -> tuple[Outcome, ...]:
    """Surge, cordon, and then evict; nothing is begun after `stop_at`.

    Pods whose surge is to be tried again wait for it: evicted first, they would be missed.
    """

    def attempt(action: Action) -> Outcome:
        if clock() >= stop_at:
            detail = "no time left in this invocation"
            return Outcome(action=action, status=Status.RETRY, detail=detail)
        return _attempt(action, kube)

    first = [attempt(action) for action in actions if not isinstance(action, Evict)]
    waiting = {
        (outcome.action.namespace, outcome.action.spot_deployment)
        for outcome in first
        if isinstance(outcome.action, Surge) and outcome.status is Status.RETRY
    }

    def evict(action: Evict) -> Outcome:
        if (action.namespace, action.deployment) in waiting:
            detail = "waits for its workload's surge"
            return Outcome(action=action, status=Status.RETRY, detail=detail)
        return attempt(action)

    with ThreadPoolExecutor(max_workers=PARALLEL_CALLS) as pool:
        evictions = pool.map(evict, [one for one in actions if isinstance(one, Evict)])
        return (*first, *evictions)


def _observed(action: Action) -> Status:
    return Status.DONE if isinstance(action, Leave) else Status.OBSERVED


def _attempt(action: Action, kube: Kube) -> Outcome:
    try:
        _carry_out(action, kube)
    except BudgetError as error:
        return Outcome(action=action, status=Status.BLOCKED, detail=str(error))
    except NotFoundError as error:
        if isinstance(action, Surge):
            return Outcome(action=action, status=Status.FAILED, detail=str(error))
        return Outcome(action=action, status=Status.UNNEEDED, detail="already gone")
    except PassingError as error:
        return Outcome(action=action, status=Status.RETRY, detail=str(error))
    except PermanentError as error:
        return Outcome(action=action, status=Status.FAILED, detail=str(error))
    return Outcome(action=action, status=Status.DONE)


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
