"""The ledger: what was done and told, in DynamoDB, one item an incident."""

import datetime as dt
from collections.abc import Collection
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from lambdas.core.errors import ConflictError, PassingError
from lambdas.core.incident import Incident

KEEP = dt.timedelta(days=90)


class Ledger:
    """Incidents by instance; every write is conditional on the version that was read."""

    def __init__(self, client: Any, table: str) -> None:
        """`client` is a boto3 DynamoDB client."""
        self._client = client
        self._table = table

    def incidents(self, instance_ids: Collection[str]) -> dict[str, Incident]:
        """The last incident of each instance, read consistently; unknown ones are left out."""
        return {one: found for one in sorted(instance_ids) if (found := self._read(one))}

    def write(self, incident: Incident) -> Incident:
        """Store an incident over the version that it was made from; returns the new one.

        Raises:
            ConflictError: another function wrote first.
            PassingError: DynamoDB did not answer.
        """
        stored = msgspec.structs.replace(incident, version=incident.version + 1)
        expires = int((incident.taken_at + KEEP).timestamp())
        item = {
            "pk": {"S": _key(incident.instance_id)},
            "version": {"N": str(stored.version)},
            "expires": {"N": str(expires)},
            "incident": {"S": msgspec.json.encode(stored).decode()},
        }
        try:
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(pk) OR version = :read",
                ExpressionAttributeValues={":read": {"N": str(incident.version)}},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                text = f"incident of {incident.instance_id}: another function wrote first"
                raise ConflictError(text) from error
            raise PassingError(f"ledger {self._table}: {error}") from error
        except BotoCoreError as error:
            raise PassingError(f"ledger {self._table}: {error}") from error
        return stored

    def _read(self, instance_id: str) -> Incident | None:
        key = {"pk": {"S": _key(instance_id)}}
        try:
            answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        except (ClientError, BotoCoreError) as error:
            raise PassingError(f"ledger {self._table}: {error}") from error
        if "Item" not in answer:
            return None
        return msgspec.json.decode(answer["Item"]["incident"]["S"], type=Incident)


def _key(instance_id: str) -> str:
    return f"interruption#{instance_id}"
