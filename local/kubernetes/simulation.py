"""The loop behind the API: controllers, kubelets, Karpenter, and EC2 that takes instances back."""

import dataclasses
import datetime as dt
import threading
from collections.abc import Callable, Sequence

from local.kubernetes.deployments import (
    collect_orphans,
    reconcile_deployments,
    report_deployments,
)
from local.kubernetes.disruption import update_budgets
from local.kubernetes.facts import is_active, owner_of, path_of
from local.kubernetes.happenings import Happening, Kind
from local.kubernetes.kubelet import end_pods, run_daemons, start_pods
from local.kubernetes.placement import schedule
from local.kubernetes.provisioner import Provisioner
from local.kubernetes.resources import NODE_CLAIMS, NODES, PODS, Clock, Object
from local.kubernetes.store import Store


@dataclasses.dataclass(frozen=True, kw_only=True)
class Delays:
    """How long things take, in seconds of the simulation's clock."""

    node_start_seconds: float = 45
    pod_start_seconds: float = 8
    # A pod that terminates needs so long, if its grace allows it.
    pod_stop_seconds: float = 4


class Simulation:
    """What happens in the cluster while time passes. Everything that happened is told."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        delays: Delays,
        tell: Callable[[Happening], None],
        daemons: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._clock = clock
        self._delays = delays
        self._tell = tell
        self._daemons = daemons
        self._provisioner = Provisioner(store, self._say, delays.node_start_seconds)
        # Instances that EC2 takes back, and when.
        self._reclaims: dict[str, dt.datetime] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> None:
        """One round of everything; the API waits meanwhile."""
        store, say, delays = self._store, self._say, self._delays
        with store.lock:
            self._reclaim()
            end_pods(store, say, delays.pod_stop_seconds)
            collect_orphans(store)
            reconcile_deployments(store, say)
            self._provisioner.join()
            run_daemons(store, self._daemons)
            schedule(store, say)
            self._provisioner.provision()
            start_pods(store, say, delays.pod_start_seconds)
            report_deployments(store)
            update_budgets(store)

    def interrupt(self, instance_id: str, at: dt.datetime) -> None:
        """EC2 takes the instance back at that time. LookupError if no node runs on it."""
        with self._store.lock:
            node = self._node_of(instance_id)
            if node is None:
                raise LookupError(f"no node in the cluster runs on instance {instance_id}")
            self._reclaims[instance_id] = at
            self._say("notice", node["metadata"]["name"], f"{instance_id} is taken away")

    def exhaust(self, pool: str, until: dt.datetime) -> None:
        """No instance can be had for the NodePool until then."""
        self._provisioner.exhaust(pool, until)

    def add_node(self, pool: str, *, instance_id: str = "") -> Object:
        """A Ready node of the NodePool, to set a scene; an empty instance id makes one up."""
        with self._store.lock:
            return self._provisioner.add_node(pool, instance_id)

    def start(self, interval_seconds: float) -> None:
        """Step in a thread, so often in real time."""
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._run, args=(interval_seconds,), name="simulation", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Nothing if it is not running."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, interval_seconds: float) -> None:
        while not self._stopping.wait(interval_seconds):
            self.step()

    def _say(self, kind: Kind, subject: str, detail: str) -> None:
        self._tell(Happening(self._clock(), kind, subject, detail))

    def _node_of(self, instance_id: str) -> Object | None:
        suffix = f"/{instance_id}"
        nodes = self._store.list(NODES)
        running = (node for node in nodes if node["spec"].get("providerID", "").endswith(suffix))
        return next(running, None)

    def _reclaim(self) -> None:
        now = self._clock()
        due = [instance for instance, at in self._reclaims.items() if now >= at]
        for instance in due:
            del self._reclaims[instance]
            node = self._node_of(instance)
            if node is not None:
                self._kill(node, instance)

    def _kill(self, node: Object, instance_id: str) -> None:
        """The node, its NodeClaim and its pods are gone at once."""
        name = node["metadata"]["name"]
        for pod in self._store.list(PODS, fields=f"spec.nodeName={name}"):
            self._store.remove(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
            if owner_of(pod).get("kind") == "DaemonSet":
                continue
            if is_active(pod):
                self._say("lost", path_of(pod), f"died with {name}, not evicted")
            else:
                self._say("gone", path_of(pod), f"ended with {name}")
        for claim in self._store.list(NODE_CLAIMS):
            if (claim.get("status") or {}).get("nodeName") == name:
                self._store.remove(NODE_CLAIMS, claim["metadata"]["name"])
        self._store.remove(NODES, name)
        self._say("reclaimed", name, instance_id)
