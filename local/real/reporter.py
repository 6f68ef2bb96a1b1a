"""Tells what happens in a real cluster as happenings, from the changes that its mirror sees."""

import datetime as dt
from collections.abc import Callable

from local.kubernetes.facts import is_active, is_ready, path_of
from local.kubernetes.happenings import Happening, Kind
from local.kubernetes.offers import CAPACITY_LABEL, POOL_LABEL, TYPE_LABEL
from local.kubernetes.resources import NODE_CLAIMS, NODES, PODS, Clock, Object
from local.real.fleet import Fleet
from local.real.mirror import Change
from local.real.objects import path_of_all

_NODES, _PODS, _CLAIMS = map(path_of_all, (NODES, PODS, NODE_CLAIMS))


class Reporter:
    """Compares each object with what it was before."""

    def __init__(self, fleet: Fleet, clock: Clock, tell: Callable[[Happening], None]) -> None:
        self._fleet = fleet
        self._clock = clock
        self._tell = tell
        self._before: dict[str, Object] = {}

    def changed(self, path: str, change: Change, item: Object, _at: dt.datetime) -> None:
        """What the mirror tells; in its thread and under its lock."""
        uid = item["metadata"]["uid"]
        before = self._before.pop(uid, None)
        if change != "DELETED":
            self._before[uid] = item
        if path == _CLAIMS:
            self._claim(before, item)
        elif path == _NODES:
            self._node(before, change, item)
        elif path == _PODS:
            self._pod(before, change, item)

    def say(self, kind: Kind, subject: str, detail: str) -> None:
        """Something happened now."""
        self._tell(Happening(self._clock(), kind, subject, detail))

    def _claim(self, before: Object | None, claim: Object) -> None:
        """An instance was started once the claim has the provider id of the node to come."""
        provider = _provider_of(claim)
        if not provider or (before and _provider_of(before)):
            return
        name = provider.rpartition("/")[2]
        labels = claim["metadata"].get("labels") or {}
        machine = f"{labels.get(TYPE_LABEL)}, {labels.get(CAPACITY_LABEL)}"
        instance = self._fleet.instance_of(name)
        self.say("launched", name, f"{instance} ({machine}) for {labels.get(POOL_LABEL)}")

    def _node(self, before: Object | None, change: Change, node: Object) -> None:
        if change != "DELETED" and is_ready(node) and not (before and is_ready(before)):
            self.say("joined", node["metadata"]["name"], "Ready")

    def _pod(self, before: Object | None, change: Change, pod: Object) -> None:
        subject, node = path_of(pod), pod["spec"].get("nodeName", "")
        if change == "DELETED":
            self.say("gone", subject, f"ended on {node}")
            return
        if node and not (before and before["spec"].get("nodeName")):
            self.say("scheduled", subject, f"on {node}")
        if is_ready(pod) and is_active(pod) and not (before and is_ready(before)):
            self.say("ready", subject, f"on {node}")


def _provider_of(claim: Object) -> str:
    provider: str = (claim.get("status") or {}).get("providerID", "")
    return provider
