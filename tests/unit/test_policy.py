"""The policy types: the split, and what must fit together."""

import msgspec
import pytest

from lambdas.core.policy import (
    Cluster,
    Endpoint,
    Policy,
    Pool,
    Problem,
    Slack,
    Vpc,
    Workload,
    cross_check,
)


def workload(**changes: object) -> Workload:
    plain = Workload(
        namespace="inference",
        pool="gpu",
        spot="chat-spot",
        on_demand="chat-on-demand",
        replicas=4,
    )
    return msgspec.structs.replace(plain, **changes)


@pytest.mark.parametrize(
    ("replicas", "base", "percent", "share"),
    [
        (4, 0, 0, 0),
        (4, 1, 0, 1),
        (4, 1, 50, 3),
        (4, 0, 1, 1),
        (4, 0, 100, 4),
        (10, 2, 25, 4),
        (0, 0, 50, 0),
        (1, 5, 50, 1),
    ],
)
def test_the_on_demand_share(replicas: int, base: int, percent: int, share: int) -> None:
    split = workload(replicas=replicas, on_demand_base=base, on_demand_percent=percent)
    assert split.on_demand_share == share


def policy(vpc: Vpc | None = None, **changes: object) -> Policy:
    cluster = Cluster(
        region="eu-west-1",
        pools={"gpu": Pool(spot="gpu-spot", on_demand="gpu-on-demand")},
        workloads={"chat": workload()},
    )
    return Policy(
        slack=Slack(channel="#gpu-ops"),
        clusters={"gpu-prod": msgspec.structs.replace(cluster, **changes)},
        vpc=vpc,
    )


AT = ("clusters", "gpu-prod")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (policy(), ()),
        (
            policy(endpoint=Endpoint.PRIVATE),
            (Problem((*AT, "endpoint"), "private", "a top-level vpc for the functions to join"),),
        ),
        (
            policy(
                endpoint=Endpoint.PRIVATE,
                vpc=Vpc(id="vpc-1", subnets=("subnet-1",), security_groups=("sg-1",)),
            ),
            (),
        ),
        (
            policy(pools={"gpu": Pool(spot="gpu", on_demand="gpu")}),
            (
                Problem(
                    (*AT, "pools", "gpu", "onDemand"),
                    "gpu",
                    "a NodePool that is not already pools.gpu.spot",
                ),
            ),
        ),
        (
            policy(workloads={"chat": workload(pool="gpus", on_demand_base=5)}),
            (
                Problem((*AT, "workloads", "chat", "pool"), "gpus", "one of the pools: gpu"),
                Problem((*AT, "workloads", "chat", "onDemandBase"), "5", "at most replicas (4)"),
            ),
        ),
        (
            policy(workloads={"chat": workload(), "talk": workload(spot="talk-spot")}),
            (
                Problem(
                    (*AT, "workloads", "talk", "onDemand"),
                    "chat-on-demand",
                    "a Deployment that is not already workloads.chat.onDemand",
                ),
            ),
        ),
    ],
)
def test_cross_check(wrong: Policy, expected: tuple[Problem, ...]) -> None:
    assert cross_check(wrong) == expected


def test_two_names_that_would_give_one_stack() -> None:
    both = msgspec.structs.replace(
        policy(), clusters={name: policy().clusters["gpu-prod"] for name in ("a-b", "a_b")}
    )
    expected = "a name that differs from a-b by more than _"
    assert cross_check(both) == (Problem(("clusters", "a_b"), "a_b", expected),)
