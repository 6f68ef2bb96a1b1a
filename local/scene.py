"""A believable cluster: two GPU pools, three nodes, two workload pairs, budgets and bystanders."""

import datetime as dt
from typing import Any

import msgspec

from local.clock import SceneClock
from local.kubernetes import Simulation, Store
from local.kubernetes.facts import GPU
from local.kubernetes.offers import CAPACITY_LABEL, POOL_LABEL, TYPE_LABEL, ZONE_LABEL
from local.kubernetes.resources import Object
from local.watch import HALF_LABEL, WORKLOAD_LABEL

CLUSTER = "gpu-demo"
REGION = "eu-west-1"
CHANNEL = "gpu-ops"
CHANNEL_ID = "C0GPUOPS001"
SPOT_POOL = "gpu-spot"
ON_DEMAND_POOL = "gpu-on-demand"
DAEMONS = ("nvidia-device-plugin",)
_INSTANCE_TYPE = "g5.12xlarge"  # four GPUs
_ZONES = ("eu-west-1a", "eu-west-1b")
# The nodes and pods have been there for so long.
_AGE = dt.timedelta(minutes=20)


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A workload as the policy and the cluster know it."""

    name: str
    namespace: str
    replicas: int
    base: int
    floor: int  # what its disruption budget keeps ready

    @property
    def spot(self) -> str:
        """The Deployment on spot nodes."""
        return f"{self.name}-spot"

    @property
    def on_demand(self) -> str:
        """The Deployment on on-demand nodes."""
        return f"{self.name}-on-demand"


# The story is about the first; the second has nothing on the node that is taken away.
CHAT = Pair(name="chat", namespace="inference", replicas=4, base=1, floor=3)
EMBED = Pair(name="embed", namespace="inference", replicas=5, base=2, floor=4)


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the notice is for."""

    node: str
    instance: str


def policy(mode: str, slack_url: str) -> str:
    """The policy file of the scene."""
    workloads = "".join(_policy_workload(pair) for pair in (CHAT, EMBED))
    return f"""\
# The policy of the local run; shiftwright.yaml is the one to begin your own with.
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
{workloads}"""


def _policy_workload(pair: Pair) -> str:
    return f"""\
      {pair.name}:
        namespace: {pair.namespace}
        pool: gpu
        spot: {pair.spot}
        onDemand: {pair.on_demand}
        replicas: {pair.replicas}
        onDemandBase: {pair.base}
"""


def create_cluster(eks: Any) -> None:
    """Make the cluster known to EKS, so that DescribeCluster answers. `eks` is a boto3 client."""
    role = "arn:aws:iam::000000000000:role/eks-cluster"
    eks.create_cluster(name=CLUSTER, roleArn=role, resourcesVpcConfig={"subnetIds": []})


def run_instance(ec2: Any, pool: str) -> str:
    """Start an instance with the tags that Karpenter gives its own. `ec2` is a boto3 client."""
    tags = {
        f"kubernetes.io/cluster/{CLUSTER}": "owned",
        "eks:cluster-name": CLUSTER,
        POOL_LABEL: pool,
    }
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    answer = ec2.run_instances(
        ImageId="ami-0123456789abcdef0",
        InstanceType=_INSTANCE_TYPE,
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}],
    )
    return str(answer["Instances"][0]["InstanceId"])


def has_instance(ec2: Any, instance: str) -> bool:
    """Whether EC2 knows the instance; the simulation makes up those that it starts itself."""
    answer = ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": [instance]}])
    return bool(answer["Reservations"])


def fill(store: Store, simulation: Simulation, clock: SceneClock, ec2: Any) -> Scene:
    """Set the scene as if it had stood for a while; the simulation must not run yet.

    The order puts two replicas of chat and a pod of another team on one spot node, and the
    rest elsewhere: the scheduler spreads a Deployment, and then takes the emptiest node.
    """
    began = clock() - _AGE
    clock.hold(began)
    for body in surroundings():
        store.create(body)
    simulation.add_node(SPOT_POOL, instance_id=run_instance(ec2, SPOT_POOL))
    simulation.add_node(ON_DEMAND_POOL, instance_id=run_instance(ec2, ON_DEMAND_POOL))
    for body in (*halves(EMBED), budget(EMBED), deployment(CHAT, "on-demand")):
        store.create(body)
    simulation.step()
    instance = run_instance(ec2, SPOT_POOL)
    node = simulation.add_node(SPOT_POOL, instance_id=instance)
    store.create(bystander())
    simulation.step()
    for body in (deployment(CHAT, "spot"), budget(CHAT)):
        store.create(body)
    simulation.step()
    clock.hold(began + _AGE / 2)
    simulation.step()
    clock.release()
    return Scene(node=node["metadata"]["name"], instance=instance)


def surroundings() -> tuple[Object, ...]:
    """Namespaces and NodePools."""
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CHAT.namespace}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}},
        _node_pool(SPOT_POOL, "spot", 50),
        _node_pool(ON_DEMAND_POOL, "on-demand", 10),
    )


def halves(pair: Pair) -> tuple[Object, ...]:
    """Both Deployments of a pair."""
    return deployment(pair, "spot"), deployment(pair, "on-demand")


def _node_pool(name: str, capacity: str, weight: int) -> Object:
    allowed = {CAPACITY_LABEL: [capacity], TYPE_LABEL: [_INSTANCE_TYPE], ZONE_LABEL: list(_ZONES)}
    requirements = [
        {"key": key, "operator": "In", "values": values} for key, values in allowed.items()
    ]
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    spec = {"taints": [_taint()], "requirements": requirements, "nodeClassRef": node_class}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"weight": weight, "template": {"spec": spec}},
    }


def _taint() -> Object:
    return {"key": GPU, "value": "true", "effect": "NoSchedule"}


def deployment(pair: Pair, half: str) -> Object:
    """One half of a pair; both stand behind the same Service by the label `app`."""
    labels = {WORKLOAD_LABEL: pair.name, HALF_LABEL: half}
    spot = half == "spot"
    pool = SPOT_POOL if spot else ON_DEMAND_POOL
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": pair.spot if spot else pair.on_demand,
            "namespace": pair.namespace,
            "labels": labels,
        },
        "spec": {
            "replicas": pair.replicas - pair.base if spot else pair.base,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {**_pod_spec(pair.name), "nodeSelector": {POOL_LABEL: pool}},
            },
        },
    }


def budget(pair: Pair) -> Object:
    """The floor of ready replicas, both halves together."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": pair.name, "namespace": pair.namespace},
        "spec": {
            "minAvailable": pair.floor,
            "selector": {"matchLabels": {WORKLOAD_LABEL: pair.name}},
        },
    }


def bystander() -> Object:
    """A pod of another team's Job, that asked not to be disrupted."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "eval-nightly", "uid": "job-1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "eval-nightly-7k2fx",
            "namespace": "research",
            "labels": {"job-name": "eval-nightly"},
            "annotations": {"karpenter.sh/do-not-disrupt": "true"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {**_pod_spec("eval"), "nodeSelector": {POOL_LABEL: SPOT_POOL}},
    }


def _pod_spec(name: str) -> Object:
    image = f"registry.example.com/{name}:1"
    return {
        "containers": [
            {"name": name, "image": image, "resources": {"limits": {GPU: "1"}}},
        ],
        "tolerations": [{"key": GPU, "operator": "Exists"}],
        "terminationGracePeriodSeconds": 30,
    }
