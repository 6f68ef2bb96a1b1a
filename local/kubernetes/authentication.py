"""Tokens as EKS checks them: a presigned STS request whose answer says who the caller is."""

import base64
import binascii
import datetime as dt
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from local.kubernetes.authorization import User
from local.kubernetes.resources import Clock

# Calls the URL with these headers, and gives the caller's ARN, or None if STS refuses.
StsCall: TypeAlias = Callable[[str, dict[str, str]], str | None]

_PREFIX = "k8s-aws-v1."
_CLUSTER_HEADER = "x-k8s-aws-id"
_TOKEN_LIMIT = 16 * 1024
_KNOWN_TOKENS = 256
_ANSWER_LIMIT_BYTES = 64 * 1024
_LIFETIME = dt.timedelta(minutes=15)
_LONGEST_SECONDS = 900
_ASSUMED = re.compile(r"arn:(aws[a-z-]*):sts::([0-9]{12}):assumed-role/([^/]+)/([^/]+)")
_ROLE = re.compile(r"arn:(aws[a-z-]*):iam::([0-9]{12}):role/(?:.*/)?([^/]+)")


def eks_authenticator(
    sts_call: StsCall,
    cluster_name: str,
    clock: Clock,
    *,
    access_entries: Mapping[str, Collection[str]],
) -> Callable[[str], User | None]:
    """Check tokens of `aws eks get-token`; access entries map a principal's ARN to groups.

    The clock is the real one: the caller's machine dates the token.
    """
    groups_of = {_principal(arn): tuple(groups) for arn, groups in access_entries.items()}
    # What STS said of tokens it accepted: a client sends the same one with every request.
    known: dict[str, str] = {}

    def authenticate(token: str) -> User | None:
        url = presigned_url(token, clock())
        if url is None:
            return None
        arn = known.get(token) or sts_call(url, {_CLUSTER_HEADER: cluster_name})
        if arn is None or _principal(arn) not in groups_of:
            return None
        if len(known) >= _KNOWN_TOKENS:
            known.clear()
        known[token] = arn
        return User(arn, groups_of[_principal(arn)])

    return authenticate


def presigned_url(token: str, now: dt.datetime) -> str | None:
    """The presigned GetCallerIdentity URL in a token, or None if the token is not acceptable."""
    url = _decode(token)
    if url is None:
        return None
    try:
        pairs = urllib.parse.parse_qsl(
            urllib.parse.urlsplit(url).query, strict_parsing=True, max_num_fields=20
        )
    except ValueError:
        return None
    query = {key.lower(): value for key, value in pairs}
    # The same parameter twice could mean one thing here and another to STS.
    acceptable = len(query) == len(pairs) and _is_identity_request(query) and _is_fresh(query, now)
    return url if acceptable else None


def _decode(token: str) -> str | None:
    if not token.startswith(_PREFIX) or len(token) > _TOKEN_LIMIT:
        return None
    encoded = token.removeprefix(_PREFIX)
    try:
        return base64.b64decode(
            encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True
        ).decode("ascii")
    except (binascii.Error, ValueError):
        return None


def _is_identity_request(query: Mapping[str, str]) -> bool:
    signed = query.get("x-amz-signedheaders", "").lower().split(";")
    return query.get("action") == "GetCallerIdentity" and _CLUSTER_HEADER in signed


def _is_fresh(query: Mapping[str, str], now: dt.datetime) -> bool:
    expires = query.get("x-amz-expires", "")
    if not re.fullmatch(r"[0-9]{1,4}", expires) or not 0 < int(expires) <= _LONGEST_SECONDS:
        return False
    try:
        signed = dt.datetime.strptime(query.get("x-amz-date", ""), "%Y%m%dT%H%M%S%z")
    except ValueError:
        return False
    # EKS takes a token for 15 minutes, whatever X-Amz-Expires says.
    return abs(now - signed) <= _LIFETIME


def _principal(arn: str) -> tuple[str, ...]:
    """A role and its sessions are the same principal; a session's ARN has no role path."""
    if found := _ASSUMED.fullmatch(arn):
        return found[1], found[2], found[3]
    if found := _ROLE.fullmatch(arn):
        return found[1], found[2], found[3]
    return (arn,)


def sts_caller(ports: Collection[int]) -> StsCall:
    """Calls an STS on this machine, on one of these ports and nowhere else."""

    def call(url: str, headers: dict[str, str]) -> str | None:
        if not _is_local(url, ports):
            return None
        request = urllib.request.Request(url, headers={**headers, "Accept": "application/json"})  # noqa: S310
        try:
            with _OPENER.open(request, timeout=5) as answer:
                return _arn_in(answer.read(_ANSWER_LIMIT_BYTES))
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None

    return call


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token must not send us on to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


# No proxy from the environment either: the STS is on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


def _is_local(url: str, ports: Collection[int]) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.scheme == "http" and host in ("127.0.0.1", "localhost") and port in ports


def _arn_in(answer: bytes) -> str | None:
    """From the JSON or the XML form of GetCallerIdentity's answer."""
    text = answer.decode("utf-8", "replace")
    found = re.search(r"<Arn>\s*([^<\s]+)\s*</Arn>", text) or re.search(
        r'"Arn"\s*:\s*"([^"]+)"', text
    )
    return found[1] if found else None
