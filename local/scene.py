"""A believable cluster: two GPU pools, three nodes, two workload pairs, budgets and bystanders."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

import msgspec

from local.kubernetes import Store
from local.kubernetes.resources import Object, rfc3339
from local.watch import CAPACITY_LABEL, HALF_LABEL, POOL_LABEL, TYPE_LABEL, WORKLOAD_LABEL

CLUSTER = "gpu-demo"
REGION = "eu-west-1"
NAMESPACE = "inference"
CHANNEL = "gpu-ops"
CHANNEL_ID = "C0GPUOPS001"
SPOT_POOL = "gpu-spot"
ON_DEMAND_POOL = "gpu-on-demand"
# The workload that the story is about: its pair, its replicas, and its budget's floor.
WORKLOAD = "chat"
SPOT_DEPLOYMENT = "chat-spot"
ON_DEMAND_DEPLOYMENT = "chat-on-demand"
REPLICAS = 4
ON_DEMAND_BASE = 1
FLOOR = 3
INSTANCE_TYPE = "g5.12xlarge"
GPUS = 4
_GPU = "nvidia.com/gpu"
_CAPACITY = {SPOT_POOL: "spot", ON_DEMAND_POOL: "on-demand"}


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the scene, before it has an instance."""

    name: str
    pool: str
    zone: str


NODES = (
    NodePlan(name="ip-10-0-11-24.eu-west-1.compute.internal", pool=SPOT_POOL, zone="eu-west-1a"),
    NodePlan(name="ip-10-0-23-187.eu-west-1.compute.internal", pool=SPOT_POOL, zone="eu-west-1b"),
    NodePlan(
        name="ip-10-0-12-66.eu-west-1.compute.internal", pool=ON_DEMAND_POOL, zone="eu-west-1a"
    ),
)
INTERRUPTED, OTHER_SPOT, ON_DEMAND = (node.name for node in NODES)


def policy(mode: str, slack_url: str) -> str:
    """The policy file of the scene."""
    return f"""\
# The policy of the local run. See shiftwright.yaml for one of your own.
slack:
  channel: "#{CHANNEL}"
  apiUrl: {slack_url}
interruptions:
  mode: {mode}
clusters:
  {CLUSTER}:
    region: {REGION}
    pools:
      gpu:
        spot: {SPOT_POOL}
        onDemand: {ON_DEMAND_POOL}
    workloads:
      {WORKLOAD}:
        namespace: {NAMESPACE}
        pool: gpu
        spot: {SPOT_DEPLOYMENT}
        onDemand: {ON_DEMAND_DEPLOYMENT}
        replicas: {REPLICAS}
        onDemandBase: {ON_DEMAND_BASE}
      embed:
        namespace: {NAMESPACE}
        pool: gpu
        spot: embed-spot
        onDemand: embed-on-demand
        replicas: 5
        onDemandBase: 2
"""


def run_instances(ec2: Any) -> dict[str, str]:
    """Start the instances behind the nodes; node names to instance ids. `ec2` is a boto3 client."""
    return {node.name: _run_instance(ec2, node) for node in NODES}


def _run_instance(ec2: Any, node: NodePlan) -> str:
    tags = {
        "Name": node.name,
        f"kubernetes.io/cluster/{CLUSTER}": "owned",
        "eks:cluster-name": CLUSTER,
        POOL_LABEL: node.pool,
    }
    answer = ec2.run_instances(
        ImageId="ami-0123456789abcdef0",
        InstanceType=INSTANCE_TYPE,
        MinCount=1,
        MaxCount=1,
        Placement={"AvailabilityZone": node.zone},
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
        ],
    )
    return str(answer["Instances"][0]["InstanceId"])


def create_cluster(eks: Any) -> None:
    """Make the cluster known to EKS, so that DescribeCluster answers. `eks` is a boto3 client."""
    eks.create_cluster(
        name=CLUSTER,
        roleArn="arn:aws:iam::000000000000:role/eks-cluster",
        resourcesVpcConfig={"subnetIds": []},
    )


def fill(store: Store, instances: Mapping[str, str]) -> None:
    """Put the scene's objects into the cluster; `instances` as run_instances gives them."""
    for name in (NAMESPACE, "research"):
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for pool, weight in ((SPOT_POOL, 50), (ON_DEMAND_POOL, 10)):
        store.create(_node_pool(pool, weight))
    for node in NODES:
        store.create(_node(node, instances[node.name], store.clock()))
        store.create(_daemon(node.name, store.clock()))


def _node_pool(name: str, weight: int) -> Object:
    requirements = {
        CAPACITY_LABEL: [_CAPACITY[name]],
        TYPE_LABEL: [INSTANCE_TYPE],
        "topology.kubernetes.io/zone": ["eu-west-1a", "eu-west-1b"],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "weight": weight,
            "template": {
                "spec": {
                    "taints": [_taint()],
                    "requirements": [
                        {"key": key, "operator": "In", "values": values}
                        for key, values in requirements.items()
                    ],
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "gpu",
                    },
                }
            },
        },
    }


def _taint() -> Object:
    return {"key": _GPU, "value": "true", "effect": "NoSchedule"}


def _node(node: NodePlan, instance: str, now: dt.datetime) -> Object:
    resources = {"cpu": "48", "memory": "192Gi", "pods": "234", _GPU: str(GPUS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": {
                "kubernetes.io/hostname": node.name,
                "topology.kubernetes.io/zone": node.zone,
                POOL_LABEL: node.pool,
                CAPACITY_LABEL: _CAPACITY[node.pool],
                TYPE_LABEL: INSTANCE_TYPE,
            },
        },
        "spec": {"providerID": f"aws:///{node.zone}/{instance}", "taints": [_taint()]},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [_ready(now)],
        },
    }


def _ready(now: dt.datetime) -> Object:
    return {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(now)}
