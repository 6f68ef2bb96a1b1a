"""The objects of a real cluster, read from its mirror as the stand-in's store is read."""

import threading

from local.kubernetes.resources import NODES, Object, Resource
from local.kubernetes.selectors import field_test, label_test
from local.real.fleet import Fleet
from local.real.mirror import Mirror


def path_of_all(resource: Resource) -> str:
    """Where a kind lies, over all namespaces."""
    root = f"/apis/{resource.group}" if resource.group else "/api"
    return f"{root}/{resource.version}/{resource.plural}"


class Objects:
    """What the mirror has; nodes as they would look on EC2."""

    def __init__(self, mirror: Mirror, fleet: Fleet) -> None:
        self._mirror = mirror
        self._fleet = fleet

    @property
    def lock(self) -> threading.Condition:
        """Nothing changes while it is held."""
        return self._mirror.changed

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Object, ...]:
        """The objects that the selectors accept."""
        accepts_labels, accepts_fields = label_test(labels), field_test(resource, fields)
        return tuple(
            self._dressed(resource, body)
            for body in self._mirror.all(path_of_all(resource))
            if namespace in ("", body["metadata"].get("namespace"))
            and accepts_labels(body["metadata"].get("labels") or {})
            and accepts_fields(body)
        )

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The object, if it is there."""
        found = self._mirror.named(path_of_all(resource), name, namespace)
        return self._dressed(resource, found) if found else None

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """The object; LookupError if there is none."""
        found = self.find(resource, name, namespace)
        if found is None:
            raise LookupError(f"the cluster has no {resource.qualified} {name}")
        return found

    def _dressed(self, resource: Resource, body: Object) -> Object:
        return self._fleet.dress(body) if resource == NODES else body
