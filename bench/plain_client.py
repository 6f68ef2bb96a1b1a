"""The least that can speak to an API server: urllib3 in the shape of the Kubernetes client."""

import json
import sys
import types
from typing import Any

import urllib3


class Configuration:
    """As kubernetes.client.configuration.Configuration, as far as the adapter uses it."""

    def __init__(self, *, host: str, ca_cert_data: str, retries: urllib3.Retry) -> None:
        self.host = host
        self.ca_cert_data = ca_cert_data
        self.retries = retries


class RESTClientObject:
    """As kubernetes.client.rest.RESTClientObject, as far as the adapter uses it."""

    def __init__(self, configuration: Configuration) -> None:
        self._pool = urllib3.PoolManager(
            ca_cert_data=configuration.ca_cert_data, retries=configuration.retries, maxsize=10
        )

    def request(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: Any,
        *,
        _request_timeout: tuple[float, float],
    ) -> urllib3.BaseHTTPResponse:
        connect, read = _request_timeout
        return self._pool.request(
            method,
            url,
            headers=headers,
            body=json.dumps(body) if body is not None else None,
            timeout=urllib3.Timeout(connect=connect, read=read),
            preload_content=False,
        )


def install() -> None:
    """Put these in the place of the official client, before anything imports it."""
    parts: dict[str, dict[str, type]] = {
        "kubernetes": {},
        "kubernetes.client": {},
        "kubernetes.client.rest": {"RESTClientObject": RESTClientObject},
        "kubernetes.client.configuration": {"Configuration": Configuration},
        "kubernetes.client.exceptions": {"ApiException": Exception},
    }
    for name, contents in parts.items():
        module = types.ModuleType(name)
        module.__dict__.update(contents)
        sys.modules[name] = module
