"""The folder outside the tree where what takes long to make is kept, and locks on parts of it."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    """$SHIFTWRIGHT_CACHE, or `shiftwright` in the user's cache folder."""
    if own := environment.get("SHIFTWRIGHT_CACHE"):
        return Path(own).expanduser().absolute()
    user = Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return user.absolute() / "shiftwright"


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of this name; `waiting` is called once if another process has it.

    The kernel lets go of it with the process: a killed one blocks nobody.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
