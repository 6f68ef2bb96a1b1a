"""EKS: where a cluster's API server is, and tokens that it accepts."""

import base64
import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec

from lambdas.core.errors import PassingError, PermanentError
from lambdas.failures import aws_errors

# EKS takes a token for 15 minutes after the presigned address in it was made.
# https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html
TOKEN_LIFE = dt.timedelta(minutes=15)
RENEW_BEFORE = dt.timedelta(minutes=2)
_CLUSTER_HEADER = "x-k8s-aws-id"


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a cluster, and the certificate authority to trust there."""

    endpoint: str
    ca_pem: str


class Eks:
    """The clusters of one account and region."""

    def __init__(self, eks: Any, sts: Any, clock: Callable[[], dt.datetime]) -> None:
        """`eks` and `sts` are boto3 clients; the latter is used for presigning only."""
        self._eks = eks
        self._sts = sts
        self._clock = clock
        self._tokens: dict[str, tuple[str, dt.datetime]] = {}
        sts.meta.events.register("provide-client-params.sts.GetCallerIdentity", _keep_cluster)
        sts.meta.events.register("before-sign.sts.GetCallerIdentity", _sign_cluster)

    def connection(self, cluster: str) -> Connection:
        """Where the API server of a cluster is.

        Raises:
            PermanentError: there is no such cluster, or we may not describe it.
            PassingError: EKS did not answer, or the cluster has no endpoint yet.
        """
        with aws_errors(f"cluster {cluster} of the policy", permanent=_UNKNOWN):
            answer = self._eks.describe_cluster(name=cluster)["cluster"]
        endpoint = answer.get("endpoint")
        ca_data = answer.get("certificateAuthority", {}).get("data")
        if not endpoint or not ca_data:
            status = answer.get("status", "unknown")
            raise PassingError(f"cluster {cluster} has no endpoint yet (status {status})")
        try:
            return Connection(endpoint=endpoint, ca_pem=base64.b64decode(ca_data).decode("ascii"))
        except ValueError as error:
            text = f"cluster {cluster}: certificateAuthority.data is not PEM in base64"
            raise PermanentError(text) from error

    def token(self, cluster: str, *, renew: bool = False) -> str:
        """A bearer token for the cluster, kept until shortly before it ends.

        `renew` makes a new one: the credentials behind the kept one may have ended first.
        """
        now = self._clock()
        token, renew_at = self._tokens.get(cluster, ("", now))
        if now < renew_at and not renew:
            return token
        url = self._sts.generate_presigned_url(
            "get_caller_identity",
            Params={"ClusterName": cluster},
            ExpiresIn=60,
            HttpMethod="GET",
        )
        encoded = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        token = f"k8s-aws-v1.{encoded}"
        self._tokens[cluster] = (token, now + TOKEN_LIFE - RENEW_BEFORE)
        return token


_UNKNOWN = ("ResourceNotFoundException", "InvalidParameterException")


def _keep_cluster(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    """GetCallerIdentity has no such parameter: set it aside until the request is signed."""
    context["cluster"] = params.pop("ClusterName")


def _sign_cluster(request: Any, **_: Any) -> None:
    request.headers[_CLUSTER_HEADER] = request.context["cluster"]
