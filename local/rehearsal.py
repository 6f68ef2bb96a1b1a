"""Plays one spot interruption on a stage that is set, and records all of it."""

import datetime as dt
import time
from collections.abc import Callable, Iterator

from lambdas.core.incident import Incident
from lambdas.core.plan import Surge
from local import checks, scene
from local.aws import deployed
from local.console import Console
from local.narrator import NOTICE, Narrator
from local.recording import Post, Recorder, Recording, Source, State
from local.slack.stand_in import Message
from local.stage import Stage
from local.story import accepted_at, acts
from local.watch import sightings

# What is left to wait for once the function is done goes so much faster.
SPEED = 20
_LEAD_IN = dt.timedelta(seconds=2)
_LOOK_EVERY_SECONDS = 0.05
_FUNCTION_TIMEOUT_SECONDS = 60.0
_CLUSTER_TIMEOUT_SECONDS = 30.0
_REAL_TIMEOUT_SECONDS = 90.0
_LOG_LINES = 20
_LINE_LIMIT = 400


class StalledError(Exception):
    """Something that the run waits for did not come."""


class Rehearsal:
    """One notice, from its sending to the moment the cluster is whole again."""

    def __init__(self, stage: Stage, console: Console) -> None:
        self._stage = stage
        self._console = console
        self._recorder = Recorder()
        # EventBridge dates an event to the second: begin with one.
        now = stage.clock().replace(microsecond=0)
        self._zero = now + _LEAD_IN + dt.timedelta(seconds=1)
        self._narrator = Narrator(stage, console, stage.scene, self._zero)
        self._story = self._narrator.story
        self._sped_up_at: float | None = None

    def run(self) -> Recording:
        """Play it; the recording comes with its checks.

        Raises:
            StalledError: the function or the cluster did not get where it should.
        """
        stage = self._stage
        before = checks.figures(stage.store, stage.scene.node)
        on_demand = self._on_demand_replicas()
        with stage.heard_by(self._narrator):
            self._until(lambda: stage.clock() >= self._zero, "the notice", _CLUSTER_TIMEOUT_SECONDS)
            self._narrator.give_notice()
            incident = self._until_finished()
            first = self._footprint(incident)
            self._give_notice_again()
            second = self._footprint(self._narrator.look() or incident)
            self._go_on_to_the_end()
            stage.clock.run_at(1)
        self._story.flush(stage.clock())
        evidence = self._evidence(incident, first, second, on_demand)
        return self._recording(evidence, before)

    def _evidence(
        self, incident: Incident, first: checks.Footprint, second: checks.Footprint, on_demand: int
    ) -> checks.Evidence:
        stage = self._stage
        return checks.Evidence(
            scene=stage.scene,
            mode=stage.mode,
            incident=incident,
            requests=self._narrator.requests(),
            happenings=tuple(self._narrator.happenings),
            tracks=self._recorder.tracks(),
            messages=stage.slack.messages,
            refusals=stage.slack.refusals,
            first=first,
            second=second,
            waiting=self._count(stage.deployed.inbox_url),
            dead=self._count(stage.deployed.dead_letter_url),
            on_demand_before=on_demand,
            on_demand_after=self._on_demand_replicas(),
        )

    def _recording(self, evidence: checks.Evidence, before: dict[str, str]) -> Recording:
        after = checks.figures(self._stage.store, evidence.scene.node)
        return Recording(
            cluster=scene.CLUSTER,
            region=scene.REGION,
            mode=evidence.mode.value,
            node=evidence.scene.node,
            instance=evidence.scene.instance,
            noticed_at=f"{self._zero:%H:%M:%S} UTC",
            channel=scene.CHANNEL,
            workload=scene.CHAT.name,
            replicas=scene.CHAT.replicas,
            floor=scene.CHAT.floor,
            deadline=NOTICE.total_seconds(),
            surged_at=self._surged_at(evidence.incident),
            evicted=len({one.path for one in evidence.requests if one.status == 201}),
            sped_up_at=self._sped_up_at,
            speed=SPEED,
            calls=len(evidence.requests),
            steps=self._console.steps,
            tracks=evidence.tracks,
            events=self._story.events,
            acts=tuple(acts(evidence.incident)),
            posts=tuple(self._posts(evidence.messages)),
            rows=checks.table(before, after),
            checks=checks.judge(evidence),
        )

    def _until_finished(self) -> Incident:
        """Wait until the ledger's incident is finished, telling each of its states."""
        latest: list[Incident] = []

        def finished() -> bool:
            incident = self._narrator.look()
            latest[:] = [incident] if incident else []
            return incident is not None and incident.finished

        self._until(finished, "Shiftwright to finish the incident", _FUNCTION_TIMEOUT_SECONDS)
        return latest[0]

    def _give_notice_again(self) -> None:
        """EventBridge delivers at least once: let the same notice come twice, and be read."""
        text = "the same notice is delivered a second time"
        self._story.tell(self._stage.clock(), Source.STAGE, text)
        runs = self._count_runs()
        self._narrator.send()
        inbox = self._stage.deployed.inbox_url
        self._until(
            lambda: self._count_runs() > runs and self._count(inbox) == 0,
            "the second delivery to be read",
            _FUNCTION_TIMEOUT_SECONDS,
        )

    def _go_on_to_the_end(self) -> None:
        """Let the time until the end of the notice go faster, and wait for what comes after.

        The controllers of a real cluster do not know of it: it may go faster only while they
        have nothing to do.
        """
        if not self._stage.cluster.keeps_real_time:
            self._speed_up()
            self._until(self._is_whole, "the cluster to be whole", _CLUSTER_TIMEOUT_SECONDS)
            return
        self._until(self._is_calm, "the new pods to be ready", _REAL_TIMEOUT_SECONDS)
        self._speed_up()
        self._until(self._is_taken, "the instance to be taken away", _CLUSTER_TIMEOUT_SECONDS)
        self._stage.clock.run_at(1)
        self._until(self._is_whole, "the cluster to be whole", _REAL_TIMEOUT_SECONDS)

    def _speed_up(self) -> None:
        now = self._stage.clock()
        text = f"Shiftwright is done; from here the cluster's clock runs {SPEED} times faster"
        self._story.tell(now, Source.STAGE, text)
        self._sped_up_at = self._story.seconds(now)
        self._stage.clock.run_at(SPEED)

    def _is_calm(self) -> bool:
        """Every pod serves, or has ended."""
        pods = (one for one in sightings(self._stage.store) if one.kind == "pod")
        return all(pod.state in (State.READY, State.DONE) for pod in pods)

    def _is_taken(self) -> bool:
        return any(one.kind == "reclaimed" for one in self._narrator.happenings)

    def _is_whole(self) -> bool:
        """The instance is gone, the workload has its replicas again, and all is quiet."""
        now = self._stage.clock()
        self._story.flush(now - dt.timedelta(seconds=SPEED))
        quiet_since = max(one.at for one in self._narrator.happenings)
        ready = checks.ready_replicas(self._stage.store, scene.CHAT)
        quiet = now - quiet_since > dt.timedelta(seconds=4)
        return self._is_taken() and quiet and ready >= scene.CHAT.replicas

    def _until(self, done: Callable[[], bool], what: str, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while True:
            at = self._story.seconds(self._stage.clock())
            self._recorder.observe(at, sightings(self._stage.store))
            if done():
                return
            if time.monotonic() > deadline:
                raise StalledError(self._explain(f"waited {timeout_seconds:.0f} s for {what}"))
            time.sleep(_LOOK_EVERY_SECONDS)

    def _explain(self, problem: str) -> str:
        self._story.flush(self._stage.clock())
        said = [line[:_LINE_LIMIT] for line in self._stage.function_log()[-_LOG_LINES:]]
        return "\n  ".join([f"{problem}. The function's last words:", *(said or ["none"])])

    def _footprint(self, incident: Incident) -> checks.Footprint:
        return checks.Footprint(
            writes=len(checks.writes(self._narrator.requests())),
            posts=len(self._stage.slack.messages),
            ledger_version=incident.version,
        )

    def _count(self, url: str) -> int:
        return deployed.count_messages(self._stage.client("sqs"), url)

    def _count_runs(self) -> int:
        """How often the function has ended, by its log."""
        return sum(line.startswith("REPORT ") for line in self._stage.function_log())

    def _on_demand_replicas(self) -> int:
        return checks.replicas(self._stage.store, scene.CHAT, scene.CHAT.on_demand)

    def _surged_at(self, incident: Incident) -> float | None:
        requests = self._narrator.requests()
        surges = (one for one in incident.outcomes if isinstance(one.action, Surge))
        times = [at for one in surges if (at := accepted_at(one, requests))]
        return self._story.seconds(min(times)) if times else None

    def _posts(self, messages: tuple[Message, ...]) -> Iterator[Post]:
        for message in messages:
            yield Post(
                at=self._story.seconds(message.at),
                text=message.text,
                blocks=message.blocks,
                reply=message.thread_ts is not None,
            )
