"""One control plane on 127.0.0.1, with its data in a folder that goes with it."""

import base64
import dataclasses
import json
import os
import secrets
import ssl
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from control_plane import commands
from control_plane.api import Api
from control_plane.build import Built, build
from control_plane.commands import Layout, Ports
from control_plane.etcd import Etcd
from control_plane.ports import free_ports
from control_plane.processes import ProcessError, Processes
from local.console import Console
from local.kubernetes.certificates import make_certificates

MANIFEST = Path(__file__).resolve().parent.parent / "manifests" / "shiftwright-rbac.yaml"
# Lists that the product reads, whose caches must have noticed a compaction.
_LISTS = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/apis/apps/v1/deployments",
    "/apis/karpenter.sh/v1/nodeclaims",
)
# A cache looks for compactions every 15 s.
_COMPACTION_SECONDS = 60
_ANSWER_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Karpenter:
    """Which machines Karpenter may make, in the kwok provider's format, and its feature gates."""

    instance_types: list[dict[str, Any]]
    feature_gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)


class ControlPlane:
    """etcd and an API server with Karpenter's definitions and the product's permissions in it.

    Args:
        controllers: also a controller manager and a scheduler.
        karpenter: also Karpenter, and kwok to play the kubelets of its nodes.
    """

    def __init__(self, *, controllers: bool, karpenter: Karpenter | None) -> None:
        self.ca_pem = ""
        self.url = ""
        self.admin_token = secrets.token_hex(16)
        # A user in the group `shiftwright`, as the access entry puts the function's role.
        self.product_token = secrets.token_hex(16)
        # A user that no role names.
        self.stranger_token = secrets.token_hex(16)
        self._controllers = controllers
        self._karpenter = karpenter
        self._processes: Processes | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """An administrator's."""
        return self._layout.kubeconfig

    @property
    def logs(self) -> Path:
        """A folder with one log a program; it goes with the control plane."""
        return self._layout.folder / "logs"

    @property
    def api(self) -> Api:
        """The API server as an administrator."""
        return Api(self.url, self.ca_pem, self.admin_token)

    def start(self) -> None:
        """Build if need be, start, and wait until all is ready.

        Raises BuildError, ProcessError, RefusalError.
        """
        self._built = build(Console(sys.stderr))
        self._layout = Layout(Path(tempfile.mkdtemp(prefix="shiftwright-cluster-")))
        self._ports = Ports(*free_ports(len(dataclasses.fields(Ports))))
        self.url = f"https://127.0.0.1:{self._ports.api_server}"
        self._processes = Processes(self._layout.folder)
        try:
            self._write_files()
            self._start_api()
            self.api.install(_documents(self._built))
            self._start_controllers()
            self._start_karpenter()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything and remove the data. May be called twice."""
        processes, self._processes = self._processes, None
        if processes is not None:
            processes.stop()

    def restart_api_server(self) -> None:
        """End the API server in order, and start it again at the same address."""
        self._running.end("kube-apiserver")
        self._start_api_server()

    def compact(self) -> None:
        """Make every continue token given so far expire, on the lists that the product reads."""
        revision = Etcd(self._ports.etcd).compact()
        token = {"v": "meta.k8s.io/v1", "rv": revision - 1, "start": "a\0"}
        encoded = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
        paths = [f"{path}?limit=1&continue={encoded}" for path in _LISTS]
        until = time.monotonic() + _COMPACTION_SECONDS
        while any(self.api.call("GET", path)[0] != 410 for path in paths):
            if time.monotonic() > until:
                raise ProcessError(f"Old lists are still served {_COMPACTION_SECONDS} s later")
            time.sleep(0.1)

    @property
    def _running(self) -> Processes:
        if self._processes is None:
            raise ProcessError("The control plane is not running: call start() first")
        return self._processes

    def _write_files(self) -> None:
        certificates = make_certificates()
        self.ca_pem = certificates.ca_pem
        layout = self._layout
        users = [
            f"{self.admin_token},admin,admin,system:masters",
            f"{self.product_token},function,function,shiftwright",
            f"{self.stranger_token},stranger,stranger",
        ]
        for path, text in (
            (layout.ca, certificates.ca_pem),
            (layout.certificate, certificates.certificate_pem),
            (layout.key, certificates.key_pem),
            (layout.tokens, "\n".join(users) + "\n"),
            (layout.kubeconfig, commands.kubeconfig(self.url, layout, self.admin_token)),
            (layout.scheduler, commands.scheduler_configuration(layout)),
        ):
            path.write_text(text)
        if self._karpenter:
            layout.instance_types.write_text(json.dumps(self._karpenter.instance_types))

    def _start_api(self) -> None:
        command = commands.etcd(self._built.program("etcd"), self._layout, self._ports)
        self._launch("etcd", command)
        store = Etcd(self._ports.etcd)
        self._running.wait("etcd", lambda: store.is_healthy)
        self._start_api_server()

    def _start_api_server(self) -> None:
        name = "kube-apiserver"
        program = self._built.program(name)
        self._launch(name, commands.api_server(program, self._layout, self._ports))
        self._running.wait(name, self._answers(f"{self.url}/readyz"))

    def _start_controllers(self) -> None:
        if not self._controllers:
            return
        parts = {
            "kube-controller-manager": (
                commands.controller_manager,
                self._ports.controller_manager,
            ),
            "kube-scheduler": (commands.scheduler, self._ports.scheduler),
        }
        for name, (command, _) in parts.items():
            self._launch(name, command(self._built.program(name), self._layout, self._ports))
        for name, (_, port) in parts.items():
            self._running.wait(name, self._answers(f"https://127.0.0.1:{port}/healthz"))

    def _start_karpenter(self) -> None:
        if self._karpenter is None:
            return
        built, layout, ports = self._built, self._layout, self._ports
        stages = built.files("stages")
        self._launch("kwok", commands.kwok(built.program("kwok"), layout, ports, stages))
        told = commands.karpenter(layout, ports, dict(self._karpenter.feature_gates))
        self._launch("karpenter", [str(built.program("karpenter"))], told)
        self._running.wait("kwok", self._answers(f"http://127.0.0.1:{ports.kwok}/healthz"))
        url = f"http://127.0.0.1:{ports.karpenter}/readyz"
        self._running.wait("karpenter", self._answers(url))

    def _launch(self, name: str, command: list[str], told: Mapping[str, str] | None = None) -> None:
        # Nothing of the user's own clusters or settings gets in.
        environment = {"HOME": str(self._layout.folder), "PATH": os.environ.get("PATH", "")}
        self._running.start(name, command, environment | dict(told or {}))

    def _answers(self, url: str) -> Callable[[], bool]:
        context = ssl.create_default_context(cadata=self.ca_pem)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

        def answers() -> bool:
            try:
                with opener.open(url, timeout=_ANSWER_SECONDS) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        return answers


def _documents(built: Built) -> list[dict[str, Any]]:
    texts = [path.read_text() for path in (*built.files("crds"), MANIFEST)]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]
