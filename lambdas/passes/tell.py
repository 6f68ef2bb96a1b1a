"""Records incidents in the ledger and tells people, each thing once."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable
from itertools import groupby

import msgspec
from aws_lambda_powertools import Logger

from lambdas.adapters.ledger import Ledger
from lambdas.adapters.slack import Slack
from lambdas.core import messages
from lambdas.core.errors import ConflictError, PassingError, PermanentError
from lambdas.core.incident import CLAIM, Incident, Told, is_due


@dataclasses.dataclass(frozen=True, kw_only=True)
class Teller:
    """Writes first, so that of two functions at once only one posts."""

    ledger: Ledger
    slack: Slack
    clock: Callable[[], dt.datetime]
    logger: Logger
    count: Callable[[str], None]

    def record(self, incidents: Iterable[Incident]) -> tuple[Incident, ...]:
        """Store incidents of one cluster, and post what is due: one message a thread.

        Returns what is on record now. What could not be written, or is being told by another
        function, is left out, and what could not be posted is not marked as told: the notices
        of all these must be tried again. What Slack refuses for good is logged and counted.
        """
        now = self.clock()
        silent: list[Incident] = []
        claimed: list[Incident] = []
        for incident in incidents:
            if incident.claimed_until and now < incident.claimed_until:
                continue  # another function is posting; writing now would undo its work
            due = is_due(incident)
            claim = now + CLAIM if due else None
            try:
                written = self.ledger.write(msgspec.structs.replace(incident, claimed_until=claim))
            except ConflictError as error:
                self.logger.info("not recorded: %s", error)
                continue
            except (PassingError, PermanentError) as error:
                # The others would wait for the same answer, and time is short.
                self.logger.warning("not recorded: %s", error)
                break
            (claimed if due else silent).append(written)
        claimed.sort(key=_conversation)
        told = [
            incident
            for _, group in groupby(claimed, key=_conversation)
            for incident in self._post(tuple(group))
        ]
        return (*silent, *told)

    def _post(self, incidents: tuple[Incident, ...]) -> list[Incident]:
        now = self.clock()
        thread = incidents[0].thread
        message = (messages.closing if thread else messages.opening)(incidents, now)
        try:
            posted = self.slack.post(message, thread)
        except PassingError as error:
            self.logger.warning("not told yet: %s", error)
            return self._release(incidents)
        except PermanentError as error:
            self.logger.error("not told: %s", error, text=message.text)
            self.count("Untold")
            posted = ""
        return self._release(_told(incident, thread or posted) for incident in incidents)

    def _release(self, incidents: Iterable[Incident]) -> list[Incident]:
        released = []
        for incident in incidents:
            free = msgspec.structs.replace(incident, claimed_until=None)
            try:
                released.append(self.ledger.write(free))
            except (PassingError, PermanentError) as error:
                self.logger.warning("not recorded: %s", error)
        return released


def _told(incident: Incident, thread: str) -> Incident:
    told = Told.EVERYTHING if incident.closed else Told.OPENING
    return msgspec.structs.replace(incident, thread=thread, told=told)


def _conversation(incident: Incident) -> str:
    return incident.thread
