"""Which programs make the control plane, and from which Go modules."""

import dataclasses
import hashlib
import platform
import sys
from pathlib import Path

GO_MODULES = Path(__file__).resolve().parent / "go"
KUBERNETES = "v1.36.3"
# Without symbols and paths of this machine: half the size, and the same file everywhere.
BUILD_FLAGS = ("-trimpath",)
_STRIPPED = "-s -w"
_VERSION = "k8s.io/component-base/version"
# Unset, the server calls itself v0.0.0.
_MAJOR, _MINOR, _ = KUBERNETES.removeprefix("v").split(".")
_KUBERNETES_FLAGS = (
    f"{_STRIPPED} -X {_VERSION}.gitVersion={KUBERNETES}"
    f" -X {_VERSION}.gitMajor={_MAJOR} -X {_VERSION}.gitMinor={_MINOR}"
)


@dataclasses.dataclass(frozen=True)
class Program:
    """A main package, and the folder of GO_MODULES whose go.mod and go.sum pin it."""

    name: str
    module: str
    package: str
    linker_flags: str = _STRIPPED


PROGRAMS = (
    Program("etcd", "kubernetes", "go.etcd.io/etcd/server/v3"),
    Program(
        "kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", _KUBERNETES_FLAGS
    ),
    Program(
        "kube-controller-manager",
        "kubernetes",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        _KUBERNETES_FLAGS,
    ),
    Program(
        "kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", _KUBERNETES_FLAGS
    ),
    Program("karpenter", "karpenter", "sigs.k8s.io/karpenter/kwok"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)


@dataclasses.dataclass(frozen=True)
class Patch:
    """A change to a file of a Go module before it is compiled."""

    module: str
    file: str
    before: str
    after: str
    times: int


# Karpenter has no option for the address where it serves metrics and health, which would be
# every address of the machine.
LOOPBACK = Patch(
    "sigs.k8s.io/karpenter",
    "pkg/operator/operator.go",
    'fmt.Sprintf(":%d"',
    'fmt.Sprintf("127.0.0.1:%d"',
    2,
)


@dataclasses.dataclass(frozen=True)
class Files:
    """YAML files that are taken out of a Go module, from these folders below it."""

    name: str
    module: str
    package: str
    folders: tuple[str, ...]


FILES = (
    Files("crds", "karpenter", "sigs.k8s.io/karpenter", ("pkg/apis/crds", "kwok/apis/crds")),
    Files(
        "stages",
        "kwok",
        "sigs.k8s.io/kwok",
        (
            "kustomize/stage/node/fast",
            "kustomize/stage/node/heartbeat-with-lease",
            "kustomize/stage/pod/fast",
        ),
    ),
)


def key() -> str:
    """A hash of everything that goes into the build."""
    pins = [path for path in sorted(GO_MODULES.rglob("go.*")) if path.is_file()]
    parts = [str((path.relative_to(GO_MODULES), path.read_bytes())) for path in pins]
    parts += [repr((PROGRAMS, LOOPBACK, FILES, BUILD_FLAGS)), sys.platform, platform.machine()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
