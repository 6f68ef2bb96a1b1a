"""The cluster of the policy that the tests of decision and pass share: one pair, base one."""

from lambdas.core.policy import Cluster, Pool, Workload

CLUSTER = Cluster(
    region="eu-west-1",
    pools={"gpu": Pool(spot="gpu-spot", on_demand="gpu-on-demand")},
    workloads={
        "chat": Workload(
            namespace="inference",
            pool="gpu",
            spot="chat-spot",
            on_demand="chat-on-demand",
            replicas=4,
            on_demand_base=1,
        )
    },
)
