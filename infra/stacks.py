"""Which stacks a policy asks for."""

from pathlib import Path

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.access import AccessStack
from infra.region import RegionStack
from lambdas.core.policy import Policy


def add_stacks(app: cdk.App, policy: Policy, asset: Path) -> None:
    """Add one stack per region and one access stack per cluster, held to cdk-nag's rules.

    Args:
        asset: the functions' directory; its name is the hash of what went into it.
    """
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    regions = {
        region: RegionStack(app, f"Shiftwright-{region}", region=region, policy=policy, asset=asset)
        for region in policy.regions()
    }
    for name, cluster in policy.clusters.items():
        AccessStack(
            app,
            # A stack's name may hold no underscore; a cluster's may.
            f"ShiftwrightAccess-{name.replace('_', '-')}",
            cluster=name,
            region=cluster.region,
            role=regions[cluster.region].function.role,
        )
