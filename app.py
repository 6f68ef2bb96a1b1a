"""CDK's entry: the policy in, one deployment per region and one access stack per cluster out."""

import sys
from pathlib import Path

import aws_cdk as cdk

from infra import asset
from infra.policy_file import PolicyError, load
from infra.stacks import add_stacks


def main() -> None:
    """Synthesise. Context: `policy`, the policy file; `target`, lambda or host."""
    app = cdk.App(analytics_reporting=False, tree_metadata=False, stack_traces=False)
    target = asset.Target(app.node.try_get_context("target") or asset.Target.LAMBDA)
    try:
        policy = load(Path(app.node.try_get_context("policy") or "shiftwright.yaml"))
        add_stacks(app, policy, asset.build(policy, target))
    except (PolicyError, asset.AssetError) as error:
        sys.exit(str(error))
    try:
        app.synth()
    except RuntimeError as error:
        # CDK has printed the findings; a traceback through its library would bury them.
        if "ValidationFailed" in str(error):
            sys.exit("The stacks break a rule of cdk-nag: see above")
        raise


main()
