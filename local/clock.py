"""The clock of the scene: real time, until a run has nothing left to do but wait."""

import datetime as dt
import threading
from collections.abc import Callable

Clock = Callable[[], dt.datetime]


def utc_now() -> dt.datetime:
    """Real time."""
    return dt.datetime.now(dt.UTC)


class SceneClock:
    """Tells real time; `run_at` lets it run faster from that moment on."""

    def __init__(self, real: Clock = utc_now) -> None:
        self._real = real
        self._lock = threading.Lock()
        self._speed = 1.0
        self._real_start = self._scene_start = real()

    def __call__(self) -> dt.datetime:
        with self._lock:
            return self._now()

    def run_at(self, speed: float) -> None:
        """Let the clock run this many times as fast as real time."""
        with self._lock:
            self._scene_start, self._real_start = self._now(), self._real()
            self._speed = speed

    def _now(self) -> dt.datetime:
        return self._scene_start + (self._real() - self._real_start) * self._speed
