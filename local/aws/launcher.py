"""Runs ministack, an AWS for one machine, with our Kubernetes stand-in as its EKS clusters.

A program of its own: `python -m local.aws.launcher`, started by local.aws.stand_in. Without Docker
ministack's EKS answers DescribeCluster with an address that nobody serves and no certificate
authority; both are put right here.
"""

import base64
import os
import shutil
import signal
import sys
import threading
from typing import Any

from ministack import app
from ministack.services import eks, lambda_svc

from local.aws.stand_in import CA_PEM, DIRECTORY, ENDPOINT


def main() -> None:
    """Serve until told to stop, or until whoever started this is gone."""
    endpoint, authority = os.environ.pop(ENDPOINT), os.environ.pop(CA_PEM)
    directory = os.environ.pop(DIRECTORY)
    ca_data = base64.b64encode(authority.encode()).decode()
    sanitize = eks._sanitize

    def with_stand_in(cluster: dict[str, Any]) -> dict[str, Any]:
        there = {"endpoint": endpoint, "certificateAuthority": {"data": ca_data}}
        return {**sanitize(cluster), **there}

    eks._sanitize = with_stand_in
    # This machine may have Docker; the local run starts nothing in it.
    eks._docker_available = lambda_svc._docker_available = False
    threading.Thread(target=_end_with_parent, args=[directory], daemon=True).start()
    app.main()


def _end_with_parent(directory: str) -> None:
    """End the whole process group once standard input closes: a killed run leaves nothing."""
    sys.stdin.buffer.read()
    shutil.rmtree(directory, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGTERM)


if __name__ == "__main__":
    main()
