"""The EC2 instances that kwok's nodes stand for: a real node has one, a kwok node has none."""

import hashlib
import threading

from local.kubernetes.offers import ZONE_LABEL
from local.kubernetes.resources import Object


class Fleet:
    """Which instance runs which node. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instances: dict[str, str] = {}

    def assign(self, node: str, instance: str) -> None:
        """From now on the node runs on this instance."""
        with self._lock:
            self._instances[node] = instance

    def instance_of(self, node: str) -> str:
        """The instance of a node; one that nobody assigned is made up from the name."""
        made_up = f"i-{hashlib.sha256(node.encode()).hexdigest()[:17]}"
        with self._lock:
            return self._instances.get(node, made_up)

    def node_of(self, instance: str) -> str | None:
        """The node that was assigned an instance."""
        with self._lock:
            return next((node for node, its in self._instances.items() if its == instance), None)

    def dress(self, node: Object) -> Object:
        """The node as it would look on EC2: with the provider id of its instance."""
        metadata = node["metadata"]
        zone = (metadata.get("labels") or {}).get(ZONE_LABEL, "")
        provider = f"aws:///{zone}/{self.instance_of(metadata['name'])}"
        return {**node, "spec": {**node["spec"], "providerID": provider}}
