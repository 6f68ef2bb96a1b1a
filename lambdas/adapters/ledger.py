"""The ledger: what was done and told, in DynamoDB, one item an incident."""

import datetime as dt
from collections.abc import Collection
from typing import Any

import msgspec

from lambdas.core.errors import ConflictError
from lambdas.core.incident import Incident
from lambdas.failures import aws_errors

KEEP = dt.timedelta(days=90)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An item: its version, and its incident unless that is of a form we no longer know."""

    version: int
    incident: Incident | None


class Ledger:
    """Incidents by instance; every write is conditional on the version that was read.

    Raises, from every method:
        PassingError: DynamoDB did not answer.
        PermanentError: the role lacks a permission.
    """

    def __init__(self, client: Any, table: str) -> None:
        """`client` is a boto3 DynamoDB client."""
        self._client = client
        self._table = table

    def records(self, instance_ids: Collection[str]) -> dict[str, Record]:
        """The last record of each instance, read consistently; unknown ones are left out."""
        return {one: found for one in sorted(instance_ids) if (found := self._read(one))}

    def write(self, incident: Incident) -> Incident:
        """Store an incident over the version that it was made from; returns the new one.

        Raises:
            ConflictError: another function wrote first.
        """
        stored = msgspec.structs.replace(incident, version=incident.version + 1)
        expires = int((incident.taken_at + KEEP).timestamp())
        item = {
            "pk": {"S": _key(incident.instance_id)},
            "version": {"N": str(stored.version)},
            "expires": {"N": str(expires)},
            "incident": {"S": msgspec.json.encode(stored).decode()},
        }
        with aws_errors(f"ledger {self._table}"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(pk) OR version = :read",
                    ExpressionAttributeValues={":read": {"N": str(incident.version)}},
                )
            except self._client.exceptions.ConditionalCheckFailedException as error:
                text = f"incident of {incident.instance_id}: another function wrote first"
                raise ConflictError(text) from error
        return stored

    def _read(self, instance_id: str) -> Record | None:
        key = {"pk": {"S": _key(instance_id)}}
        with aws_errors(f"ledger {self._table}"):
            answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        if "Item" not in answer:
            return None
        item = answer["Item"]
        version = int(item.get("version", {}).get("N", "0"))
        try:
            incident = msgspec.json.decode(item["incident"]["S"], type=Incident)
        except (KeyError, msgspec.DecodeError, UnicodeError):
            return Record(version=version, incident=None)
        return Record(version=version, incident=msgspec.structs.replace(incident, version=version))


def _key(instance_id: str) -> str:
    return f"interruption#{instance_id}"
