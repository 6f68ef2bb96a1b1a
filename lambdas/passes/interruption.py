"""Spot interruption notices from the inbox: gather, decide, apply, tell."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
from aws_lambda_powertools import Logger

from lambdas.adapters.inbox import Inbox, Letter
from lambdas.adapters.kube import Kube
from lambdas.core.errors import PassingError, PermanentError
from lambdas.core.incident import Incident, advance, concerns, miss
from lambdas.core.interruption import Interruption, decide, is_contended
from lambdas.core.plan import Action, Cordon, Evict, Outcome, Status, Surge
from lambdas.core.policy import Cluster, Interruptions, Mode
from lambdas.core.snapshot import Snapshot
from lambdas.passes.apply import apply, observe
from lambdas.passes.gather import gather
from lambdas.passes.intake import Case, Intake
from lambdas.passes.tell import Teller

# A blocked eviction is asked for again after this; budgets free up when replicas become ready.
CONTINUE_AFTER = dt.timedelta(seconds=5)
# Status writes bump a Deployment's resourceVersion: a surge overtaken by one is decided anew.
ROUNDS = 3
_LONGEST_BACKOFF_SECONDS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterruptionPass:
    """One batch of the inbox.

    A letter is done with when its incident is finished, or when its continuation is on the
    queue; every other one is to be delivered again. `connect` gives the API of a cluster by
    name, `count` adds one to a metric.
    """

    clusters: Mapping[str, Cluster]
    settings: Interruptions
    connect: Callable[[str], Kube]
    intake: Intake
    teller: Teller
    inbox: Inbox
    clock: Callable[[], dt.datetime]
    logger: Logger
    count: Callable[[str], None]

    def run(self, letters: Sequence[Letter], stop_at: dt.datetime) -> tuple[str, ...]:
        """Handle a batch; returns the ids of the messages to be delivered again.

        Nothing is begun in a cluster after `stop_at`.
        """
        cases, again = self.intake.read(letters)
        by_cluster: dict[str, list[Case]] = {}
        for case in cases:
            by_cluster.setdefault(case.incident.cluster, []).append(case)
        with ThreadPoolExecutor(max_workers=max(1, len(by_cluster))) as pool:
            left = pool.map(lambda name: self._cluster(name, by_cluster[name], stop_at), by_cluster)
            again += [letter for each in left for letter in each]
        return tuple(self._again(again))

    def _cluster(self, name: str, cases: list[Case], stop_at: dt.datetime) -> list[Letter]:
        """The pass over one cluster; returns the letters to be delivered again."""
        incidents = {case.incident.instance_id: case.incident for case in cases}
        for _ in range(ROUNDS):
            acting = [one for one in incidents.values() if not one.closed]
            if not acting or self.clock() >= stop_at:
                break
            advanced = self._round(name, acting, stop_at)
            incidents |= {one.instance_id: one for one in advanced}
            if not any(Status.OVERTAKEN in one.has for one in advanced):
                break
        recorded = {one.instance_id: one for one in self.teller.record(incidents.values())}
        letters = {case.incident.instance_id: case.letter for case in cases}
        done = {
            instance_id
            for instance_id, letter in letters.items()
            if self._done(letter, recorded.get(instance_id))
        }
        return [case.letter for case in cases if case.incident.instance_id not in done]

    def _round(
        self, name: str, incidents: Sequence[Incident], stop_at: dt.datetime
    ) -> list[Incident]:
        try:
            return self._act(name, incidents, stop_at)
        except PassingError as error:
            self.logger.warning("cluster not reached: %s", error)
            return [miss(one, str(error), for_good=False) for one in incidents]
        except PermanentError as error:
            self.logger.error("cluster given up: %s", error)
            return [miss(one, str(error), for_good=True) for one in incidents]

    def _act(
        self, name: str, incidents: Sequence[Incident], stop_at: dt.datetime
    ) -> list[Incident]:
        """Read the cluster, decide for all incidents at once, and carry it out."""
        cluster = self.clusters[name]
        kube = self.connect(name)
        now = self.clock()
        interruptions = tuple(
            Interruption(
                instance_id=one.instance_id,
                taken_at=one.taken_at,
                evict_until=self._evict_until(one),
            )
            for one in incidents
        )

        def plan() -> tuple[Snapshot, tuple[Action, ...]]:
            snapshot = gather(kube, {one.instance_id for one in incidents}, cluster, now)
            return snapshot, decide(interruptions, snapshot, cluster, now)

        snapshot, actions = plan()
        if self.settings.mode is Mode.OBSERVE:
            outcomes = observe(actions)
        else:
            marked: tuple[Outcome, ...] = ()
            if is_contended(actions, snapshot, cluster):
                cordons = tuple(action for action in actions if isinstance(action, Cordon))
                marked = apply(cordons, kube, stop_at, self.clock)
                snapshot, actions = plan()
            outcomes = marked + apply(actions, kube, stop_at, self.clock)
        self._count_outcomes(outcomes)
        nodes = {node.instance_id: node.name for node in snapshot.nodes}
        return [
            self._advance(one, nodes.get(one.instance_id, one.node), outcomes) for one in incidents
        ]

    def _advance(self, incident: Incident, node: str, outcomes: Iterable[Outcome]) -> Incident:
        known = msgspec.structs.replace(incident, node=node)
        its = [one for one in outcomes if concerns(one.action, node, incident.instance_id)]
        return advance(known, its, time_is_up=self.clock() >= self._evict_until(incident))

    def _evict_until(self, incident: Incident) -> dt.datetime:
        return incident.taken_at - dt.timedelta(seconds=self.settings.margin_seconds)

    def _done(self, letter: Letter, incident: Incident | None) -> bool:
        """Whether a letter can go: its incident is finished, or its continuation is sent."""
        if incident is None:
            return False
        if not incident.waits_for_budgets:
            return incident.finished
        try:
            self.inbox.send_later(letter.body, CONTINUE_AFTER)
        except (PassingError, PermanentError) as error:
            self.logger.warning("no continuation: %s", error)
            return False
        return True

    def _again(self, letters: Iterable[Letter]) -> Iterable[str]:
        """Ask for failed messages sooner than their visibility time-out would give them."""
        for letter in letters:
            seconds = min(2**letter.receives, _LONGEST_BACKOFF_SECONDS)
            try:
                self.inbox.again_in(letter, dt.timedelta(seconds=seconds))
            except (PassingError, PermanentError) as error:
                self.logger.warning("comes back late: %s", error)
            yield letter.message_id

    def _count_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.status is Status.FAILED:
                self.count("Failures")
            elif outcome.status is Status.DONE and isinstance(outcome.action, Surge):
                self.count("Surges")
            elif outcome.status is Status.DONE and isinstance(outcome.action, Evict):
                self.count("Evictions")
