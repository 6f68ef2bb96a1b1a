"""The Kubernetes API: the few calls that we make, as raw JSON through the official client.

Only its transport: ApiClient adds pydantic models around the same requests, and 95 ms to a cold
start, and we would use none of it.
"""

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject

from lambdas.core.errors import (
    BudgetError,
    ConflictError,
    NotFoundError,
    PassingError,
    PermanentError,
)
from lambdas.core.snapshot import INTERRUPTED_ANNOTATION, Deployment, Node, Pod

_T = TypeVar("_T", bound=msgspec.Struct)

FIELD_MANAGER = "shiftwright"
# What client-go's pager asks for: a page stays a few megabytes in clusters of any size.
PAGE_SIZE = 500
# Connect, read. An API server that takes longer has no answer in time for a notice.
TIMEOUT_SECONDS = (3.0, 10.0)

_ZonedTime = Annotated[dt.datetime, msgspec.Meta(tz=True)]
# As much of a server's own words as is kept.
_WORDS = 500
_MERGE_PATCH = "application/merge-patch+json"
_DISRUPTED_TAINT = "karpenter.sh/disrupted"
_AUTO_MODE_LABEL = "eks.amazonaws.com/compute-type"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_MIRROR = "kubernetes.io/config.mirror"
_HASH = "pod-template-hash"


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that we read of an object; the rest is skipped while decoding."""


class _Owner(_Wire, frozen=True):
    kind: str
    name: str
    controller: bool = False


class _Meta(_Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[_Owner, ...] = ()


class _Taint(_Wire, frozen=True):
    key: str


class _NodeSpec(_Wire, frozen=True):
    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[_Taint, ...] = ()


class _Node(_Wire, frozen=True):
    metadata: _Meta
    spec: _NodeSpec = _NodeSpec()


class _Condition(_Wire, frozen=True):
    type: str
    status: str


class _PodStatus(_Wire, frozen=True):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()


class _PodSpec(_Wire, frozen=True):
    node_name: str = ""


class _Pod(_Wire, frozen=True):
    metadata: _Meta
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _DeploymentSpec(_Wire, frozen=True):
    replicas: int = 1


class _DeploymentStatus(_Wire, frozen=True):
    ready_replicas: int = 0


class _Deployment(_Wire, frozen=True):
    metadata: _Meta
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()


class _ClaimStatus(_Wire, frozen=True):
    node_name: str = ""


class _Claim(_Wire, frozen=True):
    metadata: _Meta
    status: _ClaimStatus = _ClaimStatus()


class _ListMeta(_Wire, frozen=True):
    continue_: str = msgspec.field(name="continue", default="")


class _List(_Wire, frozen=True):
    items: list[msgspec.Raw] | None = None
    metadata: _ListMeta = _ListMeta()


class _Cause(_Wire, frozen=True):
    reason: str = ""


class _Details(_Wire, frozen=True):
    causes: tuple[_Cause, ...] = ()


class _Status(_Wire, frozen=True):
    message: str = ""
    details: _Details | None = None


class Token(Protocol):
    """Gives a bearer token; `renew` asks for another one than before."""

    def __call__(self, *, renew: bool = False) -> str: ...


class Kube:
    """One cluster. Every method is a single call, or one call a page.

    Raises, from every method:
        NotFoundError, ConflictError: as the server answered.
        PassingError: throttled, timed out, unreachable, or the server's own fault (5xx).
        PermanentError: any other refusal; the message holds the server's words.
    """

    def __init__(self, cluster: str, host: str, ca_pem: str, token: Token) -> None:
        """`token` is asked before every call, so that it may renew itself."""
        configuration = Configuration(
            host=host,
            ca_cert_data=ca_pem,
            # Once more where a kept connection has gone stale; answers are never retried here.
            retries=urllib3.Retry(total=1, status=0, redirect=0, respect_retry_after_header=False),
        )
        self._client = RESTClientObject(configuration)
        self._cluster = cluster
        self._host = host
        self._token = token

    def nodes(self) -> Iterator[Node]:
        """All nodes that a cloud provider has claimed."""
        for item in self._list("/api/v1/nodes", _Node):
            if item.spec.provider_id:
                yield _to_node(item)

    def pods(self, node: str) -> tuple[Pod, ...]:
        """The pods on a node."""
        selector = {"fieldSelector": f"spec.nodeName={node}"}
        return tuple(_to_pod(item) for item in self._list("/api/v1/pods", _Pod, selector))

    def deployments(self, namespace: str) -> tuple[Deployment, ...]:
        """The Deployments of a namespace."""
        path = f"/apis/apps/v1/namespaces/{quote(namespace)}/deployments"
        return tuple(_to_deployment(item) for item in self._list(path, _Deployment))

    def nodes_of_deleted_claims(self) -> frozenset[str]:
        """Names of the nodes whose Karpenter NodeClaim is being deleted.

        Empty where Karpenter is not installed.
        """
        try:
            claims = tuple(self._list("/apis/karpenter.sh/v1/nodeclaims", _Claim))
        except NotFoundError:
            return frozenset()
        return frozenset(
            claim.status.node_name for claim in claims if claim.metadata.deletion_timestamp
        )

    def cordon(self, node: str, interrupted_at: str) -> None:
        """Mark a node unschedulable, and note when it is taken away."""
        patch = {
            "metadata": {"annotations": {INTERRUPTED_ANNOTATION: interrupted_at}},
            "spec": {"unschedulable": True},
        }
        self._patch(f"/api/v1/nodes/{quote(node)}", patch)

    def scale(self, namespace: str, deployment: str, replicas: int, resource_version: str) -> None:
        """Set a Deployment's replicas, if nobody wrote to it since `resource_version`."""
        patch = {
            "metadata": {"resourceVersion": resource_version},
            "spec": {"replicas": replicas},
        }
        path = f"/apis/apps/v1/namespaces/{quote(namespace)}/deployments/{quote(deployment)}/scale"
        self._patch(path, patch)

    def evict(self, namespace: str, pod: str, uid: str) -> None:
        """Ask for the eviction of exactly this pod.

        Raises:
            BudgetError: a disruption budget does not allow it now.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/eviction"
        self._call("POST", path, "application/json", body)

    def _list(
        self, path: str, item_type: type[_T], query: dict[str, str] | None = None
    ) -> Iterator[_T]:
        pages = msgspec.json.Decoder(_List)
        items = msgspec.json.Decoder(item_type)
        params = {**(query or {}), "limit": str(PAGE_SIZE)}
        while True:
            answer = self._call("GET", f"{path}?{urlencode(params)}")
            with self._readable(path):
                page = pages.decode(answer)
                for item in page.items or ():
                    yield items.decode(item)
            if not page.metadata.continue_:
                return
            params["continue"] = page.metadata.continue_

    def _patch(self, path: str, patch: dict[str, Any]) -> None:
        url = f"{path}?fieldManager={FIELD_MANAGER}"
        self._call("PATCH", url, _MERGE_PATCH, patch)

    def _call(
        self,
        method: str,
        path: str,
        content_type: str | None = None,
        body: dict[str, Any] | None = None,
    ) -> bytes:
        status, answer = self._send(method, path, content_type, body, self._token())
        if status == 401:
            # The credentials behind a kept token may have ended before the token.
            renewed = self._token(renew=True)
            status, answer = self._send(method, path, content_type, body, renewed)
        if status >= 400:
            raise self._refusal(method, path, status, answer)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        content_type: str | None,
        body: dict[str, Any] | None,
        token: str,
    ) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        try:
            response = self._client.request(
                method, self._host + path, headers, body, _request_timeout=TIMEOUT_SECONDS
            )
            return response.status, response.read()
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise PassingError(f"cluster {self._cluster}: {method} {path}: {error}") from error

    def _refusal(self, method: str, path: str, status: int, answer: bytes) -> Exception:
        try:
            body = msgspec.json.decode(answer, type=_Status)
        except (msgspec.DecodeError, UnicodeError):
            body = _Status(message=answer[:_WORDS].decode(errors="replace"))
        words = body.message[:_WORDS]
        text = f"cluster {self._cluster}: {method} {path.partition('?')[0]}: {status} {words}"
        causes = body.details.causes if body.details else ()
        if status == 429 and any(cause.reason == "DisruptionBudget" for cause in causes):
            return BudgetError(words)
        if status == 500 and "more than one PodDisruptionBudget" in body.message:
            return PermanentError(f"{text} Leave the pod one budget.")
        otherwise = PassingError if status >= 500 else PermanentError
        kind, hint = _REFUSALS.get(status, (otherwise, ""))
        return kind(text + hint)

    @contextlib.contextmanager
    def _readable(self, path: str) -> Iterator[None]:
        try:
            yield
        except (msgspec.DecodeError, UnicodeError) as error:
            text = f"cluster {self._cluster}: GET {path}: not the JSON of a list: {error}"
            raise PassingError(text) from error


_REFUSALS: dict[int, tuple[type[Exception], str]] = {
    # An access entry takes a moment until the API server knows it.
    401: (PassingError, " Has the cluster an access entry for the function's role?"),
    403: (PermanentError, " Is manifests/shiftwright-rbac.yaml applied?"),
    404: (NotFoundError, ""),
    409: (ConflictError, ""),
    410: (PassingError, ""),
    429: (PassingError, ""),
}


def _to_node(item: _Node) -> Node:
    meta = item.metadata
    return Node(
        name=meta.name,
        instance_id=item.spec.provider_id.rpartition("/")[2],
        unschedulable=item.spec.unschedulable,
        interrupted_at=_time(meta.annotations.get(INTERRUPTED_ANNOTATION)),
        disrupted=any(taint.key == _DISRUPTED_TAINT for taint in item.spec.taints),
        auto_mode=meta.labels.get(_AUTO_MODE_LABEL) == "auto",
    )


def _time(text: str | None) -> dt.datetime | None:
    """A time that anybody may have written; what is no time with a zone counts as none."""
    try:
        return msgspec.convert(text, _ZonedTime)
    except msgspec.ValidationError:
        return None


def _to_pod(item: _Pod) -> Pod:
    meta = item.metadata
    owner = next((one for one in meta.owner_references if one.controller), None)
    ready = any(one.type == "Ready" and one.status == "True" for one in item.status.conditions)
    return Pod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=item.spec.node_name,
        ready=ready,
        deployment=_deployment_of(meta, owner),
        exempt=_exempt(item, owner),
        do_not_disrupt=meta.annotations.get(_DO_NOT_DISRUPT) == "true",
    )


def _deployment_of(meta: _Meta, owner: _Owner | None) -> str | None:
    """A Deployment's ReplicaSets are named after it and the hash of the pod template."""
    suffix = f"-{meta.labels.get(_HASH, '')}"
    if owner is None or owner.kind != "ReplicaSet" or not owner.name.endswith(suffix):
        return None
    return owner.name.removesuffix(suffix)


def _exempt(item: _Pod, owner: _Owner | None) -> str | None:
    if item.metadata.deletion_timestamp:
        return "terminating"
    if item.status.phase in ("Succeeded", "Failed"):
        return "finished"
    if _MIRROR in item.metadata.annotations:
        return "mirror"
    if owner is not None and owner.kind == "DaemonSet":
        return "daemon"
    return None


def _to_deployment(item: _Deployment) -> Deployment:
    return Deployment(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        replicas=item.spec.replicas,
        ready=item.status.ready_replicas,
        resource_version=item.metadata.resource_version,
    )
