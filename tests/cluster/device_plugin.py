"""Plays NVIDIA's device plugin: a node advertises its GPUs times the slices of its label."""

import threading

from control_plane.api import Api
from local.kubernetes.facts import GPU
from local.kubernetes.resources import Object
from tests.cluster.observer import NODES, Observer

# The plugin's own: which entry of its ConfigMap a node takes.
CONFIG_LABEL = "nvidia.com/device-plugin.config"
_LOOK_AGAIN_SECONDS = 0.5


class DevicePlugin:
    """A context manager: inside, every node with the label advertises what its entry says.

    `slices` is the plugin's ConfigMap: replicas of each GPU, by the name of the entry. The
    nodes have one GPU each.
    """

    def __init__(self, api: Api, observer: Observer, slices: dict[str, int]) -> None:
        self._api = api
        self._observer = observer
        self._slices = slices
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device plugin")

    def __enter__(self) -> "DevicePlugin":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stopping.is_set():
            node = self._observer.wait(self._out_of_date, _LOOK_AGAIN_SECONDS)
            if node:
                amount = {GPU: str(self._advertised(node))}
                path = f"{NODES}/{node['metadata']['name']}/status"
                node = self._api.merge(
                    path, {"status": {"capacity": amount, "allocatable": amount}}
                )
                self._observer.until_seen(NODES, node)

    def _out_of_date(self) -> Object | None:
        return next(
            (
                node
                for node in self._observer.nodes()
                if CONFIG_LABEL in node["metadata"]["labels"]
                and node["status"]["allocatable"].get(GPU) != str(self._advertised(node))
            ),
            None,
        )

    def _advertised(self, node: Object) -> int:
        return self._slices[node["metadata"]["labels"][CONFIG_LABEL]]
