"""The function dies before or after any of its calls: delivered again, the end is the same."""

import datetime as dt
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from local.kubernetes.resources import NODES, PODS
from tests import product
from tests.integration.cluster import NOW, running_cluster
from tests.integration.test_interruption_pass import Stage, letter

# Calls of one undisturbed pass over the scene: four reads, cordon, surge, two evictions, one
# read and two writes of the ledger, one post.
CALLS = 12


class KilledError(BaseException):
    """What no handler of errors catches, as nothing catches the end of a process."""


class Fate:
    """Ends the process at a call, before or after it has taken effect."""

    def __init__(self, at: int, *, after: bool) -> None:
        self._at = at
        self._after = after
        self._lock = threading.Lock()
        self.calls: list[str] = []

    def watch(self, subject: Any, names: tuple[str, ...]) -> Any:
        """The subject, with these of its methods under watch."""
        return _Watched(self, subject, names)

    def call(self, name: str, method: Any, *arguments: Any) -> Any:
        with self._lock:
            self.calls.append(name)
            fatal = len(self.calls) == self._at
        if fatal and not self._after:
            raise KilledError(name)
        result = method(*arguments)
        result = tuple(result) if isinstance(result, Iterator) else result
        if fatal:
            raise KilledError(name)
        return result

    @property
    def came_at(self) -> str:
        return self.calls[self._at - 1]


class _Watched:
    def __init__(self, fate: Fate, subject: Any, names: tuple[str, ...]) -> None:
        self._fate, self._subject, self._names = fate, subject, names

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._subject, name)
        if name not in self._names:
            return method
        return lambda *arguments: self._fate.call(name, method, *arguments)


_KUBE = (
    *("nodes", "nodes_of_deleted_claims", "pods", "deployments"),
    *("cordon", "scale", "evict"),
)


@pytest.fixture
def stage(aws: boto3.Session) -> Iterator[Stage]:
    with running_cluster() as cluster, product.running_slack(NOW) as slack:
        yield Stage(aws, cluster, slack)


def watch(stage: Stage, fate: Fate) -> None:
    """Put every call that the pass makes of the cluster, the ledger and Slack under watch."""
    kube = fate.watch(stage.cluster.kube(), _KUBE)
    stage.connect = lambda _name: kube
    stage.ledger = fate.watch(stage.ledger, ("records", "write"))
    stage.voice = fate.watch(stage.voice, ("post",))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, CALLS + 1))
def test_a_crash_at_any_call_changes_nothing_of_the_end(
    stage: Stage, at: int, *, after: bool
) -> None:
    instance = stage.scene()
    fate = Fate(at, after=after)
    whole = (stage.connect, stage.ledger, stage.voice)
    watch(stage, fate)
    with pytest.raises(KilledError):
        stage.run(letter(instance))
    stage.connect, stage.ledger, stage.voice = whole

    receives = 2
    while stage.run(letter(instance, receives=receives)):
        receives += 1
        stage.now += dt.timedelta(seconds=10)
    assert receives <= 6

    store = stage.cluster.stand_in.store
    assert stage.replicas() == 3
    assert store.get(NODES, "node-a")["spec"]["unschedulable"] is True
    leaving = {
        pod["metadata"]["name"]
        for pod in store.list(PODS)
        if "deletionTimestamp" in pod["metadata"]
    }
    assert leaving == {"chat-1", "chat-2"}
    assert stage.incident(instance).finished
    # Slack has no key for "once": only between its answer and the ledger's may a post come twice.
    twice = (fate.came_at, after) == ("post", True) or (at, after) == (CALLS, False)
    assert len(stage.slack.messages) == (2 if twice else 1)


def test_an_undisturbed_pass_makes_so_many_calls(stage: Stage) -> None:
    instance = stage.scene()
    fate = Fate(0, after=False)
    watch(stage, fate)
    assert stage.run(letter(instance)) == ()
    assert len(fate.calls) == CALLS
