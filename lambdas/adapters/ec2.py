"""EC2: the instances behind notices."""

from collections.abc import Collection
from typing import Any

from lambdas.core.instances import Instance
from lambdas.failures import aws_errors

# DescribeInstances takes so many values in one filter.
_FILTER_VALUES = 200


class Ec2:
    """The instances of one account and region."""

    def __init__(self, client: Any) -> None:
        """`client` is a boto3 EC2 client."""
        self._client = client

    def instances(self, instance_ids: Collection[str]) -> dict[str, Instance]:
        """Look up instances by id; those that EC2 does not know are left out.

        By filter, because an unknown id among InstanceIds would fail the whole call.

        Raises:
            PermanentError: the function may not describe instances.
            PassingError: EC2 did not answer.
        """
        ids = sorted(instance_ids)
        found: dict[str, Instance] = {}
        for start in range(0, len(ids), _FILTER_VALUES):
            for item in self._describe(ids[start : start + _FILTER_VALUES]):
                found[item["InstanceId"]] = _to_instance(item)
        return found

    def _describe(self, ids: list[str]) -> list[dict[str, Any]]:
        pages = self._client.get_paginator("describe_instances")
        filters = [{"Name": "instance-id", "Values": ids}]
        with aws_errors("EC2"):
            return [
                item
                for page in pages.paginate(Filters=filters)
                for reservation in page["Reservations"]
                for item in reservation["Instances"]
            ]


def _to_instance(item: dict[str, Any]) -> Instance:
    return Instance(
        instance_id=item["InstanceId"],
        instance_type=item.get("InstanceType", ""),
        zone=item.get("Placement", {}).get("AvailabilityZone", ""),
        tags={tag["Key"]: tag["Value"] for tag in item.get("Tags", ())},
    )
