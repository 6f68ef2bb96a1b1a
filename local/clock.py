"""The clock of the scene: real time, but for setting the scene and for the wait at the end."""

import datetime as dt
import threading
from collections.abc import Callable

Clock = Callable[[], dt.datetime]


def utc_now() -> dt.datetime:
    """Real time."""
    return dt.datetime.now(dt.UTC)


class SceneClock:
    """Tells real time unless it is held at a moment, or runs faster from one on."""

    def __init__(self, real: Clock = utc_now) -> None:
        self._real = real
        self._lock = threading.Lock()
        self._speed = 1.0
        self._real_start = self._scene_start = real()

    def __call__(self) -> dt.datetime:
        with self._lock:
            return self._now()

    def hold(self, at: dt.datetime) -> None:
        """Stand still at a moment."""
        with self._lock:
            self._scene_start, self._real_start, self._speed = at, self._real(), 0.0

    def release(self) -> None:
        """Tell real time again."""
        with self._lock:
            self._scene_start = self._real_start = self._real()
            self._speed = 1.0

    def run_at(self, speed: float) -> None:
        """From now on, run this many times as fast as real time."""
        with self._lock:
            self._scene_start, self._real_start = self._now(), self._real()
            self._speed = speed

    def _now(self) -> dt.datetime:
        return self._scene_start + (self._real() - self._real_start) * self._speed
