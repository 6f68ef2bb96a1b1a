"""A cluster's objects for whoever looks on, wherever they are."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from local.kubernetes.resources import Object, Resource


class Objects(Protocol):
    """Reads as the stand-in's store does."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Nothing changes while it is held."""

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Object, ...]:
        """The objects that the selectors accept."""

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The object, if it is there."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """The object, which must be there."""
