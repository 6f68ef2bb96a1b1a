"""An AWS of its own for the local run, and the real CDK command line at work on it."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# What local.aws.launcher, a process of its own, is told by its environment.
ENDPOINT = "SHIFTWRIGHT_KUBERNETES_URL"
CA_PEM = "SHIFTWRIGHT_KUBERNETES_CA"
DIRECTORY = "SHIFTWRIGHT_AWS_DIRECTORY"

ROOT = Path(__file__).resolve().parents[2]
# ministack's account for credentials that are not an account's number.
ACCOUNT = "000000000000"
START_SECONDS = 60
_TAIL_LINES = 15
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

Listener = Callable[[str], None]


class AwsError(Exception):
    """The AWS stand-in, or a CDK command against it, failed; the message says what to do."""


class Aws:
    """ministack on 127.0.0.1, as a child process with its data in a directory of its own.

    Args:
        kubernetes_port: where the Kubernetes stand-in serves; every EKS cluster leads there.
        ca_pem: the authority that signed the stand-in's certificate.
        region: where the stack is deployed.
        port: 0 takes a free one.
    """

    def __init__(
        self, *, kubernetes_port: int, ca_pem: str, region: str = "eu-west-1", port: int = 0
    ) -> None:
        self.region = region
        self.directory = Path()
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._kubernetes = {ENDPOINT: f"https://127.0.0.1:{kubernetes_port}", CA_PEM: ca_pem}

    @property
    def url(self) -> str:
        """The one endpoint of all services."""
        return f"http://127.0.0.1:{self._port}"

    def environment(self) -> dict[str, str]:
        """This process's environment, turned towards the stand-in for boto3 and the CDK command.

        Nothing of a real account stays in it, nor a proxy that would come in between.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "CDK_")) and not name.lower().endswith("_proxy")
        }
        return kept | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def start(self) -> None:
        """Start it, and wait until it answers. Raises AwsError."""
        self._port = _free_port(self._port)
        self.directory = Path(tempfile.mkdtemp(prefix="shiftwright-aws-"))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "local.aws.launcher"],
                cwd=ROOT,
                env=self._ministack_environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Its own process group, which its function workers are in too: Ctrl-C reaches
                # this process alone, and stop() reaches all of that one.
                start_new_session=True,
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it with all its function workers, and remove its data. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        # There is nothing to save, and ending in order would take a second.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin:
            process.stdin.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self.directory / "ministack.log"

    def _ministack_environment(self) -> Mapping[str, str]:
        data = str(self.directory)
        return {
            **self.environment(),
            **self._kubernetes,
            DIRECTORY: data,
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self._port),
            "MINISTACK_REGION": self.region,
            "TMPDIR": data,
            "S3_DATA_DIR": f"{data}/s3",
            "STATE_DIR": f"{data}/state",
            # Listeners on fixed ports that nobody here needs.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "DOCKER_HOST": f"unix://{data}/no-docker.sock",
        }

    def _wait(self) -> None:
        process = self._process
        if process is None:
            raise AwsError("The AWS stand-in was stopped while it started")
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                code = process.wait(0.1)
            except subprocess.TimeoutExpired:
                if _answers(f"{self.url}/_ministack/health"):
                    return
            else:
                raise AwsError(f"The AWS stand-in ended with status {code}:\n{self._tail()}")
        raise AwsError(
            f"The AWS stand-in did not answer on {self.url} within {START_SECONDS} s; "
            f"its last words:\n{self._tail()}"
        )

    def _tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


def bootstrap(aws: Aws, listener: Listener) -> None:
    """Run `cdk bootstrap`; the listener gets each line of its output. Raises AwsError."""
    # Away from cdk.json: with the environment given, there is no need to synthesise first.
    _cdk(aws, ["bootstrap", f"aws://{ACCOUNT}/{aws.region}"], aws.directory, listener)


def deploy(aws: Aws, policy: Path, listener: Listener) -> None:
    """Run `cdk deploy` of the policy's functions, for this machine's own Python.

    Not of the access stacks: ministack refuses a template with AWS::EKS::AccessEntry in it.
    The listener gets each line of the command's output. Raises AwsError.
    """
    command = [
        *("deploy", f"Shiftwright-{aws.region}", "--exclusively"),
        *("--context", f"policy={policy.resolve()}", "--context", "target=host"),
        *("--require-approval", "never", "--method", "direct", "--progress", "events"),
        *("--output", str(aws.directory / "cdk.out"), "--no-staging"),
    ]
    _cdk(aws, command, ROOT, listener)


def _cdk(aws: Aws, arguments: Sequence[str], directory: Path, listener: Listener) -> None:
    cdk = ROOT / "node_modules" / ".bin" / "cdk"
    if not cdk.exists():
        raise AwsError("The CDK command line is not there; `make demo` and `make test` bring it")
    said: list[str] = []
    with subprocess.Popen(
        [str(cdk), *arguments, "--no-notices", "--no-version-reporting", "--no-color"],
        cwd=directory,
        env=_cdk_environment(aws),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            for raw in process.stdout or ():
                if line := _COLOURS.sub("", raw).strip():
                    said.append(line)
                    listener(line)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        tail = "\n".join(said[-_TAIL_LINES:])
        raise AwsError(f"cdk {arguments[0]} failed with status {process.returncode}:\n{tail}")


def _cdk_environment(aws: Aws) -> dict[str, str]:
    environment = aws.environment() | {
        "PATH": f"{ROOT / '.cache' / 'tools' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        # Not ~/.cdk, where a real account's cache lies.
        "CDK_HOME": str(aws.directory / "cdk-home"),
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        # CloudFormation's own rules, which a synth for a real account checks: 2 s.
        "CDK_VALIDATION": "false",
        "NODE_NO_WARNINGS": "1",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20,22",
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    # Without byte-code on disk, Python compiles CDK's library anew each time: 3 s.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise AwsError(
                f"Port {wanted} on 127.0.0.1 is taken ({error.strerror}); "
                "end what uses it, or choose another"
            ) from error
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
