"""The cluster of a run, as everything else knows it: simulated here, or a real one."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from local import scene
from local.clock import SceneClock
from local.kubernetes import Delays, Happening, Simulation, StandIn
from local.kubernetes.authorization import ClusterRole
from local.kubernetes.resources import Object
from local.kubernetes.server import Authenticate, Front
from local.objects import Objects
from local.scene import Scene

_STEP_SECONDS = 0.05


class ClusterError(Exception):
    """There is no cluster to run on; the message says what failed and where to look."""


class Machines(Protocol):
    """The instances below the cluster's nodes."""

    def interrupt(self, instance_id: str, at: dt.datetime) -> None:
        """EC2 takes the instance back at that time."""

    def add_node(self, pool: str, *, instance_id: str) -> Object:
        """One more node of the NodePool, on this instance."""


class Cluster(Protocol):
    """What a run needs of its cluster."""

    # Whether its controllers take the time that they take, however fast the scene's clock runs.
    keeps_real_time: bool

    @property
    def kubernetes(self) -> Front:
        """Where the function reaches the API."""

    @property
    def store(self) -> Objects:
        """The objects."""

    @property
    def machines(self) -> Machines:
        """The instances."""

    def start(self) -> None:
        """Make it reachable; it is empty. Raises ClusterError or OSError."""

    def fill(self, ec2: Any) -> Scene:
        """Set the scene, from where on time passes. `ec2` is a boto3 client.

        Raises ClusterError or OSError.
        """

    def stop(self) -> None:
        """End it."""


class SimulatedCluster:
    """The stand-in of the API, and a loop that plays the controllers behind it."""

    keeps_real_time = False

    def __init__(
        self,
        authenticate: Authenticate,
        cluster_roles: Sequence[ClusterRole],
        clock: SceneClock,
        tell: Callable[[Happening], None],
    ) -> None:
        self._clock = clock
        self.kubernetes = StandIn(
            authenticate=authenticate, cluster_roles=cluster_roles, clock=clock
        )
        self.store = self.kubernetes.store
        self.machines = Simulation(
            self.store, clock, delays=Delays(), tell=tell, daemons=scene.DAEMONS
        )

    def start(self) -> None:
        """Listen."""
        self.kubernetes.start()

    def fill(self, ec2: Any) -> Scene:
        """Set the scene as if it had stood for a while, and let the simulation run."""
        filled = scene.fill(self.store, self.machines, self._clock, ec2)
        self.machines.start(_STEP_SECONDS)
        return filled

    def stop(self) -> None:
        """End the simulation, and then the API."""
        self.machines.stop()
        self.kubernetes.stop()
