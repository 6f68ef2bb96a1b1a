"""Free ports on 127.0.0.1."""

import random
import socket

# Below what systems hand out for outgoing connections: a server that is started again finds its
# port free, and a client that knocks meanwhile does not get it.
_RANGE = range(10_000, 30_000)
_TRIES = 200


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now. OSError if there are none."""
    found: list[int] = []
    for port in random.sample(_RANGE, _TRIES):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"No {count} free ports on 127.0.0.1 among {_TRIES}")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
