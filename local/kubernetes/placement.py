"""Which pods fit where: the scheduler's half, and what the provisioner plans with."""

import dataclasses
from collections.abc import Iterable

from local.kubernetes.facts import (
    gpus_allocatable,
    gpus_requested,
    is_active,
    is_finished,
    is_ready,
    is_terminating,
    owner_of,
    path_of,
    tolerates,
)
from local.kubernetes.happenings import Say
from local.kubernetes.resources import NODES, PODS, Object, rfc3339
from local.kubernetes.store import Store


@dataclasses.dataclass
class Room:
    """The room on a node that is there, or would be."""

    node: Object
    free_gpus: int
    # Pods on it, by the uid of their controller.
    owners: list[str] = dataclasses.field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    def fits(self, pod: Object) -> bool:
        spec, labels = self.node["spec"], self.node["metadata"].get("labels") or {}
        selector = pod["spec"].get("nodeSelector") or {}
        return (
            not spec.get("unschedulable")
            and not is_terminating(self.node)
            and selector.items() <= labels.items()
            and tolerates(pod, spec.get("taints") or ())
            and gpus_requested(pod) <= self.free_gpus
        )

    def take(self, pod: Object) -> None:
        self.free_gpus -= gpus_requested(pod)
        self.owners.append(owner_of(pod).get("uid", ""))


def rooms(store: Store) -> tuple[list[Room], list[Room]]:
    """The room on nodes that are Ready, and on nodes that are still starting."""
    found = {
        node["metadata"]["name"]: Room(node, gpus_allocatable(node)) for node in store.list(NODES)
    }
    for pod in store.list(PODS):
        # A terminating pod holds its GPUs until it is gone.
        room = found.get(pod["spec"].get("nodeName", ""))
        if room is not None and not is_finished(pod):
            room.take(pod)
    ready = [room for room in found.values() if is_ready(room.node)]
    starting = [room for room in found.values() if not is_ready(room.node)]
    return ready, starting


def pending_pods(store: Store) -> list[Object]:
    """Pods without a node, the oldest first."""
    waiting = [
        pod
        for pod in store.list(PODS, fields="spec.nodeName=")
        if is_active(pod) and pod["status"].get("phase") == "Pending"
    ]
    return sorted(waiting, key=lambda pod: pod["metadata"]["creationTimestamp"])


def best_room(pod: Object, candidates: Iterable[Room]) -> Room | None:
    """The fitting node with the fewest pods of the same owner, then the most free GPUs."""
    owner = owner_of(pod).get("uid", "")
    return min(
        (room for room in candidates if room.fits(pod)),
        key=lambda room: (room.owners.count(owner), -room.free_gpus, room.name),
        default=None,
    )


def schedule(store: Store, say: Say) -> None:
    """Bind every pending pod that fits a Ready node."""
    ready, _ = rooms(store)
    for pod in pending_pods(store):
        room = best_room(pod, ready)
        if room is None:
            continue
        room.take(pod)
        now = rfc3339(store.clock())
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        bound = {
            "spec": {"nodeName": room.name},
            "status": {"startTime": now, "conditions": [scheduled]},
        }
        store.patch(PODS, pod["metadata"]["name"], bound, pod["metadata"]["namespace"])
        say("scheduled", path_of(pod), f"on {room.name}")
