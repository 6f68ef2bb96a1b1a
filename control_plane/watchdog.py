"""Ends a control plane whose owner is gone: `python -m control_plane.watchdog FOLDER`.

It leads the process group of the control plane, and its standard input is a pipe from the owner,
which the kernel closes however the owner ends.
"""

import os
import shutil
import signal
import sys


def main(folder: str) -> None:
    """Wait for the owner's end, then end the group and remove the folder."""
    sys.stdin.buffer.read()
    group = os.getpgrp()
    if os.fork():
        signal.pause()
    # The child is out of the group, so that it outlives it.
    os.setsid()
    os.killpg(group, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
