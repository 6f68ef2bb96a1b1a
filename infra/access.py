"""Lets the function into one cluster."""

import aws_cdk as cdk
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

# The group that manifests/shiftwright-rbac.yaml binds to its ClusterRole.
KUBERNETES_GROUP = "shiftwright"


class AccessStack(cdk.Stack):
    """An access entry that puts the function's role into a Kubernetes group.

    A stack of its own: a cluster may come and go, or want its access managed elsewhere, and
    the local run's AWS does not know the resource.
    """

    def __init__(
        self, scope: Construct, name: str, *, cluster: str, region: str, role: iam.IRole
    ) -> None:
        super().__init__(
            scope,
            name,
            env=cdk.Environment(region=region),
            description=f"Shiftwright's access to the EKS cluster {cluster}",
        )
        eks.CfnAccessEntry(
            self,
            "Entry",
            cluster_name=cluster,
            principal_arn=role.role_arn,
            kubernetes_groups=[KUBERNETES_GROUP],
        )
