"""Plays Karpenter: starts a node where a pending pod fits none."""

import datetime as dt
import hashlib

from local.kubernetes.facts import is_ready
from local.kubernetes.happenings import Say
from local.kubernetes.offers import CAPACITY_LABEL, POOL_LABEL, TYPE_LABEL, ZONE_LABEL, offers
from local.kubernetes.placement import Room, best_room, pending_pods, rooms
from local.kubernetes.resources import (
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    Object,
    moment_of,
    rfc3339,
)
from local.kubernetes.store import Store


class Provisioner:
    """Starts nodes from NodePools: the heaviest that fits and can be had, then by name."""

    def __init__(self, store: Store, say: Say, node_start_seconds: float) -> None:
        self._store = store
        self._say = say
        self._node_start = dt.timedelta(seconds=node_start_seconds)
        self._launched = 0
        # NodePools whose instances cannot be had, and until when.
        self._exhausted: dict[str, dt.datetime] = {}

    def exhaust(self, pool: str, until: dt.datetime) -> None:
        """No instance can be had for the NodePool until then."""
        self._exhausted[pool] = until
        self._say("no-capacity", pool, "InsufficientInstanceCapacity")

    def provision(self) -> None:
        """Start nodes for the pending pods that fit neither a node nor one on its way."""
        ready, starting = rooms(self._store)
        for pod in pending_pods(self._store):
            room = best_room(pod, ready) or best_room(pod, starting)
            if room is None:
                room = self._start_for(pod)
                starting += [room] if room else []
            if room is not None:
                room.take(pod)

    def add_node(self, pool: str, instance_id: str = "") -> Object:
        """A Ready node of the NodePool, as if it had been started long ago."""
        offer = next(offers(self._store.get(NODE_POOLS, pool), self._launched))
        return self._join(self._launch(offer, instance_id))

    def join(self) -> None:
        """Make the nodes Ready whose start is over."""
        now = self._store.clock()
        for node in self._store.list(NODES):
            started = moment_of(node["metadata"]["creationTimestamp"])
            if not is_ready(node) and now >= started + self._node_start:
                self._join(node)
                self._say("joined", node["metadata"]["name"], "Ready")

    def _start_for(self, pod: Object) -> Room | None:
        now = self._store.clock()
        pools = self._store.list(NODE_POOLS)
        for pool in sorted(pools, key=lambda each: -each["spec"].get("weight", 1)):
            if now < self._exhausted.get(pool["metadata"]["name"], now):
                continue
            fitting = (each for each in offers(pool, self._launched) if each.fits(pod))
            if offer := next(fitting, None):
                node = self._launch(offer)
                self._say_launched(node)
                return Room(node, offer.free_gpus)
        return None

    def _say_launched(self, node: Object) -> None:
        labels, instance = node["metadata"]["labels"], node["spec"]["providerID"].split("/")[-1]
        detail = f"{instance} ({labels[TYPE_LABEL]}, {labels[CAPACITY_LABEL]}) for "
        self._say("launched", node["metadata"]["name"], detail + labels[POOL_LABEL])

    def _launch(self, offer: Room, instance_id: str = "") -> Object:
        self._launched += 1
        number, labels = self._launched, offer.node["metadata"]["labels"]
        digits = hashlib.sha256(f"instance {number}".encode()).hexdigest()
        zone = labels[ZONE_LABEL]
        name = f"ip-10-0-{number // 250}-{number % 250 + 4}.{zone[:-1]}.compute.internal"
        provider_id = f"aws:///{zone}/{instance_id or 'i-' + digits[:17]}"
        self._claim(f"{labels[POOL_LABEL]}-{digits[-5:]}", name, provider_id, offer.node)
        metadata = {"name": name, "labels": labels | {"kubernetes.io/hostname": name}}
        spec = offer.node["spec"] | {"providerID": provider_id}
        return self._store.create({**offer.node, "metadata": metadata, "spec": spec})

    def _claim(self, name: str, node_name: str, provider_id: str, node: Object) -> None:
        claim = {
            "apiVersion": NODE_CLAIMS.api_version,
            "kind": NODE_CLAIMS.kind,
            "metadata": {"name": name, "labels": node["metadata"]["labels"]},
            "spec": {"taints": node["spec"].get("taints") or []},
            "status": {"nodeName": node_name, "providerID": provider_id},
        }
        self._store.create(claim)

    def _join(self, node: Object) -> Object:
        now = rfc3339(self._store.clock())
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        ready = {"status": {"conditions": [condition]}}
        return self._store.patch(NODES, node["metadata"]["name"], ready)
