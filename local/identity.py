"""Who a token of the cluster is: what the EKS API server does with a presigned STS request."""

import base64
import binascii
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Mapping

from local.kubernetes import User

_PREFIX = "k8s-aws-v1."
_ARN = "{https://sts.amazonaws.com/doc/2011-06-15/}Arn"
_TIMEOUT_SECONDS = 5
# The endpoint is on this machine, whatever proxy is set for others.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class TokenReview:
    """Sends the request in a token to STS and maps the identity that comes back.

    `users` are the access entries of the cluster: an IAM ARN, and who that is in Kubernetes.
    """

    def __init__(self, *, cluster: str, sts: str, users: Mapping[str, User]) -> None:
        self._cluster = cluster
        self._sts = urllib.parse.urlsplit(sts)
        self._users = users
        # A token says the same for as long as it lives; a run is shorter than that.
        self._known: dict[str, User] = {}

    def __call__(self, token: str) -> User | None:
        """The user, or None if the token is not for this cluster or STS does not know it."""
        if token not in self._known:
            user = self._users.get(self._identity(token))
            if user is None:
                return None
            self._known[token] = user
        return self._known[token]

    def _identity(self, token: str) -> str:
        url = _presigned(token)
        parts = urllib.parse.urlsplit(url)
        query = urllib.parse.parse_qs(parts.query)
        signed = query.get("X-Amz-SignedHeaders", [""])[0].split(";")
        # Anything else would let the bearer choose where we call, or which cluster it is for.
        if (parts.scheme, parts.netloc) != (self._sts.scheme, self._sts.netloc):
            return ""
        if query.get("Action") != ["GetCallerIdentity"] or "x-k8s-aws-id" not in signed:
            return ""
        request = urllib.request.Request(url, headers={"x-k8s-aws-id": self._cluster})  # noqa: S310
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return ET.fromstring(answer.read(65_536)).findtext(f".//{_ARN}", "")  # noqa: S314
        except (OSError, ET.ParseError):
            return ""


def _presigned(token: str) -> str:
    if not token.startswith(_PREFIX):
        return ""
    encoded = token.removeprefix(_PREFIX)
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (binascii.Error, UnicodeError):
        return ""
