"""From messages of the inbox to incidents of our clusters."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection, Sequence

import msgspec
from aws_lambda_powertools import Logger

from lambdas.adapters.ec2 import Ec2
from lambdas.adapters.inbox import Inbox, Letter
from lambdas.adapters.ledger import Ledger, Record
from lambdas.core.errors import PassingError, PermanentError
from lambdas.core.events import MalformedEventError, Notice, parse_event
from lambdas.core.incident import Incident, is_same
from lambdas.core.instances import Instance, cluster_of
from lambdas.core.policy import Mode


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the inbox and the incident that its notice belongs to."""

    letter: Letter
    incident: Incident


@dataclasses.dataclass(frozen=True, kw_only=True)
class Intake:
    """Reads messages and joins them with what is known of their instances."""

    clusters: Collection[str]
    mode: Mode
    ec2: Ec2
    ledger: Ledger
    inbox: Inbox
    clock: Callable[[], dt.datetime]
    logger: Logger
    count: Callable[[str], None]

    def read(self, letters: Sequence[Letter]) -> tuple[list[Case], list[Letter]]:
        """Read a batch: the cases to work on, and the letters to be delivered again.

        What is malformed goes to the dead letters; what is none of our business, or finished
        already, needs nothing more.
        """
        notices: list[tuple[Letter, Notice]] = []
        again: list[Letter] = []
        for letter in letters:
            try:
                event = parse_event(letter.body, self.clock())
            except MalformedEventError as error:
                self.logger.error("malformed event: %s", error, message_id=letter.message_id)
                self.count("MalformedEvents")
                if not self._buried(letter, str(error)):
                    again.append(letter)
                continue
            if isinstance(event, Notice):
                notices.append((letter, event))
            else:
                self.logger.info("unknown event", source=event.source, kind=event.detail_type)
                self.count("UnknownEvents")
        try:
            return self._join(notices), again
        except PassingError as error:
            self.logger.warning("put back: %s", error)
            return [], again + [letter for letter, _ in notices]
        except PermanentError as error:
            self.logger.error("notices not handled: %s", error)
            return [], again + [one for one, _ in notices if not self._buried(one, str(error))]

    def _buried(self, letter: Letter, reason: str) -> bool:
        try:
            self.inbox.bury(letter.body, reason)
        except (PassingError, PermanentError) as error:
            self.logger.warning("put back: %s", error)
            return False
        return True

    def _join(self, notices: Sequence[tuple[Letter, Notice]]) -> list[Case]:
        records = self._records({notice.instance_id for _, notice in notices})
        incidents: dict[str, Incident] = {}
        fresh: dict[str, Notice] = {}
        for _, notice in notices:
            record = records.get(notice.instance_id)
            if record and record.incident and is_same(record.incident, notice.noticed_at):
                incidents[notice.instance_id] = record.incident
            else:
                fresh[notice.instance_id] = notice
        instances = self.ec2.instances(fresh) if fresh else {}
        for instance_id, notice in fresh.items():
            record = records.get(instance_id)
            version = record.version if record else 0
            if incident := self._begin(notice, instances.get(instance_id), version):
                incidents[instance_id] = incident
        return [
            Case(letter=letter, incident=incidents[notice.instance_id])
            for letter, notice in notices
            if notice.instance_id in incidents and not self._is_over(incidents[notice.instance_id])
        ]

    def _is_over(self, incident: Incident) -> bool:
        if incident.finished:
            self.logger.info("finished before", instance=incident.instance_id)
        return incident.finished

    def _records(self, instance_ids: set[str]) -> dict[str, Record]:
        """Acting does not wait for the ledger: the cluster says itself what is done already."""
        try:
            return self.ledger.records(instance_ids)
        except (PassingError, PermanentError) as error:
            self.logger.warning("acting without the ledger: %s", error)
            return {}

    def _begin(self, notice: Notice, instance: Instance | None, version: int) -> Incident | None:
        cluster = cluster_of(instance.tags, self.clusters) if instance else None
        if instance is None or cluster is None:
            self.logger.info("no cluster of the policy", instance=notice.instance_id)
            self.count("ForeignInstances")
            return None
        self.count("Interruptions")
        return Incident(
            instance_id=notice.instance_id,
            cluster=cluster,
            instance_type=instance.instance_type,
            zone=instance.zone,
            mode=self.mode,
            noticed_at=notice.noticed_at,
            taken_at=notice.taken_at,
            version=version,
        )
