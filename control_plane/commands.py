"""The command lines of the control plane's programs, all on 127.0.0.1."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

# Controllers that belong to a cloud, or to a network that nobody here has.
_ABSENT = ("node-ipam-controller", "node-route-controller", "cloud-node-lifecycle-controller")
# The controllers' own limits are made for large clusters; here they would be waited for.
_CLIENT_LIMITS = ("--kube-api-qps=200", "--kube-api-burst=400")


@dataclasses.dataclass(frozen=True)
class Ports:
    """Where each program listens."""

    etcd: int
    etcd_peers: int
    api_server: int
    controller_manager: int
    scheduler: int
    kwok: int
    karpenter: int
    karpenter_metrics: int


@dataclasses.dataclass(frozen=True)
class Layout:
    """The files of one control plane, below its folder."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        return self.folder / "server.key"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def scheduler(self) -> Path:
        return self.folder / "scheduler.json"

    @property
    def instance_types(self) -> Path:
        return self.folder / "instance-types.json"


def etcd(program: Path, layout: Layout, ports: Ports) -> list[str]:
    clients = f"http://127.0.0.1:{ports.etcd}"
    peers = f"http://127.0.0.1:{ports.etcd_peers}"
    return [
        str(program),
        "--name=etcd",
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=etcd={peers}",
        # The data need not outlive the machine.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(program: Path, layout: Layout, ports: Ports) -> list[str]:
    return [
        str(program),
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        *_serving(layout, ports.api_server),
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        # Pods need no service account, whose controller may not be there.
        "--disable-admission-plugins=ServiceAccount",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.certificate}",
        f"--service-account-signing-key-file={layout.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]


def controller_manager(program: Path, layout: Layout, ports: Ports) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={layout.kubeconfig}",
        *_serving(layout, ports.controller_manager),
        "--leader-elect=false",
        f"--controllers=*,{','.join(f'-{name}' for name in _ABSENT)}",
        f"--service-account-private-key-file={layout.key}",
        f"--root-ca-file={layout.ca}",
        *_CLIENT_LIMITS,
    ]


def scheduler(program: Path, layout: Layout, ports: Ports) -> list[str]:
    return [
        str(program),
        f"--config={layout.scheduler}",
        *_serving(layout, ports.scheduler),
    ]


def kwok(program: Path, layout: Layout, ports: Ports, stages: Sequence[Path]) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={layout.kubeconfig}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{ports.kwok}",
        *(f"--config={stage}" for stage in stages),
    ]


def karpenter(layout: Layout, ports: Ports, feature_gates: dict[str, bool]) -> dict[str, str]:
    """Karpenter has no options; it is told by its environment."""
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(feature_gates.items()))
    return {
        "KUBECONFIG": str(layout.kubeconfig),
        "SYSTEM_NAMESPACE": "kube-system",
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(ports.karpenter_metrics),
        "HEALTH_PROBE_PORT": str(ports.karpenter),
        "INSTANCE_TYPES_FILE_PATH": str(layout.instance_types),
        **({"FEATURE_GATES": gates} if gates else {}),
    }


def kubeconfig(url: str, layout: Layout, token: str) -> str:
    """For an administrator. JSON, which is YAML too."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "shiftwright",
                "cluster": {"server": url, "certificate-authority": str(layout.ca)},
            }
        ],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [
            {"name": "shiftwright", "context": {"cluster": "shiftwright", "user": "admin"}}
        ],
        "current-context": "shiftwright",
    }
    return json.dumps(document, indent=2)


def scheduler_configuration(layout: Layout) -> str:
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": str(layout.kubeconfig),
                "qps": 200,
                "burst": 400,
            },
            "leaderElection": {"leaderElect": False},
        }
    )


def _serving(layout: Layout, port: int) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={layout.certificate}",
        f"--tls-private-key-file={layout.key}",
    ]
