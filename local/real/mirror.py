"""A mirror of a real cluster: lists and watches some kinds, and tells every change."""

import contextlib
import datetime as dt
import http
import http.client
import json
import math
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, TypeVar

from local.kubernetes.resources import Object

_T = TypeVar("_T")
Change: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
# Called with the path of a kind, what happened to which object, and when it was seen.
Tell: TypeAlias = Callable[[str, Change, Object, dt.datetime], None]

# A server that restarts is asked again this often, until it answers.
_AGAIN_SECONDS = 0.1
_FIRST_LISTS_SECONDS = 20
_JOIN_SECONDS = 10


class Mirror:
    """One thread a kind; what they saw is read under `changed`, and told under it."""

    def __init__(self, url: str, ca_pem: str, token: str, kinds: Iterable[str], tell: Tell) -> None:
        """`kinds` are the paths of whole collections, such as /api/v1/pods."""
        self._host = urllib.parse.urlsplit(url).netloc
        self._context = ssl.create_default_context(cadata=ca_pem)
        self._token = token
        self._tell = tell
        self.changed = threading.Condition(threading.RLock())
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in kinds}
        # Up to where each kind was seen; none before its first list.
        self._versions: dict[str, str] = {}
        self._connections: dict[str, http.client.HTTPSConnection] = {}
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, args=(kind,), name=f"watch {kind}")
            for kind in self._objects
        ]

    def start(self) -> None:
        """Begin to watch; returns when everything that is there was seen.

        Raises TimeoutError if the server does not answer.
        """
        for thread in self._threads:
            thread.start()
        if not self.wait(lambda: len(self._versions) == len(self._objects), _FIRST_LISTS_SECONDS):
            raise TimeoutError(f"{self._host} did not list everything in {_FIRST_LISTS_SECONDS} s")

    def stop(self) -> None:
        """End the threads."""
        self._stopping.set()
        with self.changed:
            connections = list(self._connections.values())
        for connection in connections:
            # Wakes the thread that waits for the next event.
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def wait(self, found: Callable[[], _T], seconds: float) -> _T:
        """Wait until `found` gives something true; what it gave last when the time is up.

        It is called under the lock, after every change.
        """
        with self.changed:
            return self.changed.wait_for(found, timeout=seconds)

    def all(self, kind: str) -> tuple[Object, ...]:
        """Every object of a kind."""
        with self.changed:
            return tuple(self._objects[kind].values())

    def named(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object of this name, if it is there."""
        wanted = (namespace, name)
        return next((one for one in self.all(kind) if _name_of(one) == wanted), None)

    def has_seen(self, kind: str, written: Object) -> bool:
        """Whether the mirror has what a write gave back, or something later."""
        metadata = written["metadata"]
        with self.changed:
            there = self._objects[kind].get(metadata["uid"])
        version = int(there["metadata"]["resourceVersion"]) if there else math.inf
        return version >= int(metadata["resourceVersion"])

    def _follow(self, kind: str) -> None:
        while not self._stopping.is_set():
            try:
                if kind not in self._versions:
                    self._list(kind)
                self._watch(kind)
            except (OSError, http.client.HTTPException, ValueError):
                # The server restarts, or `stop` has closed the connection.
                self._stopping.wait(_AGAIN_SECONDS)

    def _list(self, kind: str) -> None:
        with self._request(kind, kind) as response:
            answer = json.loads(response.read())
        there = {item["metadata"]["uid"]: item for item in answer["items"]}
        with self.changed:
            known = self._objects[kind]
            for uid in known.keys() - there.keys():
                self._see(kind, "DELETED", known[uid])
            for uid, item in there.items():
                self._see(kind, "MODIFIED" if uid in known else "ADDED", item)
            self._versions[kind] = answer["metadata"]["resourceVersion"]
            self.changed.notify_all()

    def _watch(self, kind: str) -> None:
        """Follow until the server ends it."""
        query = urllib.parse.urlencode({"watch": "1", "resourceVersion": self._versions[kind]})
        with self._request(kind, f"{kind}?{query}") as response:
            while line := response.readline():
                event = json.loads(line)
                with self.changed:
                    if event["type"] == "ERROR":
                        # The version is too old by now: list again.
                        self._versions.pop(kind)
                        return
                    self._versions[kind] = event["object"]["metadata"]["resourceVersion"]
                    self._see(kind, event["type"], event["object"])
                    self.changed.notify_all()

    @contextlib.contextmanager
    def _request(self, kind: str, path: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(self._host, context=self._context)
        with self.changed:
            self._connections[kind] = connection
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                # Also a version that is too old: what comes next is a list.
                self._versions.pop(kind, None)
                raise http.client.HTTPException(f"{path}: {response.status}")
            yield response
        finally:
            connection.close()

    def _see(self, kind: str, change: Change, item: Object) -> None:
        uid = item["metadata"]["uid"]
        if change == "DELETED":
            self._objects[kind].pop(uid, None)
        else:
            self._objects[kind][uid] = item
        self._tell(kind, change, item, dt.datetime.now(dt.UTC))


def _name_of(item: Object) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
