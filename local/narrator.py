"""Gives one notice, and tells what becomes of it: by the ledger, Slack and the cluster."""

import datetime as dt
import json
from pathlib import Path

from lambdas.adapters.ledger import Ledger
from lambdas.core.incident import Incident
from local.console import Console
from local.kubernetes import Happening, Request
from local.recording import Source
from local.scene import CHANNEL, Scene
from local.slack.stand_in import Message
from local.stage import CALLER, ROOT, Stage
from local.story import Bookkeeper, Story

EVENT = ROOT / "events" / "spot-interruption-warning.json"
NOTICE = dt.timedelta(seconds=120)
# The ledger has an action this long after the API server at the latest.
_HOLD = dt.timedelta(seconds=1)
_SENTENCES = {
    "ready": "{subject} is ready {detail}",
    "launched": "node {subject} is on its way: {detail}",
    "joined": "node {subject} joined",
    "lost": "{subject} {detail}",
    "reclaimed": "node {subject} is taken away with its instance {detail}",
    "no-capacity": "no capacity for {subject}: {detail}",
}


class Narrator:
    """Tells the story of one notice; `zero` is when it is given."""

    def __init__(self, stage: Stage, console: Console, scene: Scene, zero: dt.datetime) -> None:
        self.story = Story(console, zero)
        self.happenings: list[Happening] = []
        self._stage = stage
        self._scene = scene
        self._zero = zero
        self._bookkeeper = Bookkeeper(self.story)
        self._ledger = Ledger(stage.client("dynamodb"), stage.deployed.ledger_table)

    @property
    def instance(self) -> str:
        """The instance that the notice is for."""
        return self._scene.instance

    def give_notice(self) -> None:
        """Put the notice on the bus, and let the cluster lose the instance when it is due."""
        instance = self._scene.instance
        text = f"spot interruption notice for {instance}: terminated in two minutes"
        self.story.tell(self._zero, Source.AWS, text)
        self.send()
        self._stage.machines.interrupt(instance, self._zero + NOTICE)

    def send(self) -> None:
        """Put the notice on the bus; more than once, and it is delivered more than once."""
        self._stage.send(moved_to(EVENT, self._scene.instance, self._zero))

    def look(self) -> Incident | None:
        """Read the ledger, and tell what is new."""
        instance = self._scene.instance
        record = self._ledger.records({instance}).get(instance)
        incident = record.incident if record else None
        now = self._stage.clock()
        if incident is not None:
            self._bookkeeper.read(incident, self.requests(), now)
        self.story.flush(now - _HOLD)
        return incident

    def requests(self) -> tuple[Request, ...]:
        """What the function asked of the Kubernetes API since the notice."""
        journal = self._stage.kubernetes.journal
        return tuple(one for one in journal if one.user == CALLER and one.at >= self._zero)

    def happened(self, happening: Happening) -> None:
        """Something happened in the cluster."""
        self.happenings.append(happening)
        sentence = _SENTENCES.get(happening.kind)
        if sentence is None or happening.subject.startswith("kube-system/"):
            return
        source = Source.AWS if happening.kind == "reclaimed" else Source.CLUSTER
        text = sentence.format(subject=happening.subject, detail=happening.detail)
        self.story.tell(happening.at, source, text)

    def posted(self, message: Message) -> None:
        """Slack accepted a message."""
        kind = "reply in the thread" if message.thread_ts else "message"
        now = self._stage.clock()
        self.story.tell(now, Source.SLACK, f"{kind} in #{CHANNEL}", message.text)


def moved_to(path: Path, instance: str, at: dt.datetime) -> dict[str, object]:
    """A sample event, with its time and its instance put in."""
    text = path.read_text(encoding="utf-8")
    sample = json.loads(text)["detail"]["instance-id"]
    event: dict[str, object] = json.loads(text.replace(sample, instance))
    return {**event, "time": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
