"""Tokens as EKS takes them, and who they turn out to be."""

import base64
import datetime as dt
import http.server
import threading
import urllib.parse
from collections.abc import Iterator

import boto3
import pytest
from botocore.credentials import Credentials
from botocore.signers import RequestSigner

from local.kubernetes import User, eks_authenticator, sts_caller

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SESSION = "arn:aws:sts::123456789012:assumed-role/interruptions/abc"
GROUPS = ("shiftwright",)
QUERY = {
    "Action": "GetCallerIdentity",
    "Version": "2011-06-15",
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": "AKIDEXAMPLE/20260301/eu-west-1/sts/aws4_request",
    "X-Amz-Date": "20260301T120000Z",
    "X-Amz-Expires": "60",
    "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
    "X-Amz-Signature": "00",
}


def _token(url: str) -> str:
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def _url(**changes: str) -> str:
    query = QUERY | {key.replace("_", "-"): value for key, value in changes.items()}
    return f"http://127.0.0.1:4566/?{urllib.parse.urlencode(query)}"


def _user_of(
    token: str,
    arn: str | None = SESSION,
    entry: str = "arn:aws:iam::123456789012:role/interruptions",
) -> User | None:
    authenticate = eks_authenticator(
        lambda *_: arn, "gpu-demo", lambda: NOW, access_entries={entry: GROUPS}
    )
    return authenticate(token)


@pytest.mark.parametrize(
    ("arn", "entry"),
    [
        (SESSION, "arn:aws:iam::123456789012:role/interruptions"),
        (SESSION, "arn:aws:iam::123456789012:role/service/path/interruptions"),
        ("arn:aws:iam::000000000000:root", "arn:aws:iam::000000000000:root"),
        ("arn:aws:iam::123456789012:user/ann", "arn:aws:iam::123456789012:user/ann"),
    ],
)
def test_a_principal_with_an_entry(arn: str, entry: str) -> None:
    assert _user_of(_token(_url()), arn, entry) == User(arn, GROUPS)


@pytest.mark.parametrize(
    "arn",
    [
        None,
        "arn:aws:sts::123456789012:assumed-role/other/abc",
        "arn:aws:sts::999999999999:assumed-role/interruptions/abc",
        "arn:aws-cn:sts::123456789012:assumed-role/interruptions/abc",
        "arn:aws:iam::123456789012:user/interruptions",
    ],
)
def test_a_principal_without_one(arn: str | None) -> None:
    assert _user_of(_token(_url()), arn) is None


@pytest.mark.parametrize(
    "token",
    [
        "",
        "k8s-aws-v1.",
        "k8s-aws-v2." + _token(_url()).removeprefix("k8s-aws-v1."),
        "k8s-aws-v1.not base64",
        "k8s-aws-v1." + "A" * 20_000,
        _token("http://127.0.0.1:4566/"),
        _token(_url() + "&Action=GetSessionToken"),
        _token(_url() + "&action=GetSessionToken"),
        _token(_url(Action="AssumeRole")),
        _token(_url(X_Amz_SignedHeaders="host")),
        _token(_url(X_Amz_Expires="901")),
        _token(_url(X_Amz_Expires="0")),
        _token(_url(X_Amz_Expires="soon")),
        _token(_url(X_Amz_Date="20260301T114459Z")),
        _token(_url(X_Amz_Date="20260301T121501Z")),
        _token(_url(X_Amz_Date="today")),
    ],
)
def test_a_token_that_is_not_acceptable(token: str) -> None:
    assert _user_of(token) is None


def test_a_token_that_is_nearly_15_minutes_old() -> None:
    assert _user_of(_token(_url(X_Amz_Date="20260301T114501Z"))) is not None


def test_sts_is_asked_once_for_a_token() -> None:
    asked: list[dict[str, str]] = []

    def sts(_: str, headers: dict[str, str]) -> str:
        asked.append(headers)
        return SESSION

    entries = {"arn:aws:iam::123456789012:role/interruptions": GROUPS}
    authenticate = eks_authenticator(sts, "gpu-demo", lambda: NOW, access_entries=entries)
    for _ in range(3):
        assert authenticate(_token(_url())) is not None
    assert asked == [{"x-k8s-aws-id": "gpu-demo"}]


def test_what_botocore_signs_is_acceptable() -> None:
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name="eu-west-1")
    client = session.client("sts", endpoint_url="http://127.0.0.1:4566")
    signer = RequestSigner(
        client.meta.service_model.service_id,
        "eu-west-1",
        "sts",
        "v4",
        Credentials("AKIDEXAMPLE", "secret"),
        session.events,
    )
    request = {
        "method": "GET",
        "url": "http://127.0.0.1:4566/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": "gpu-demo"},
        "context": {},
    }
    url = signer.generate_presigned_url(request, "", 60, "eu-west-1")
    entries = {"arn:aws:iam::123456789012:role/interruptions": GROUPS}
    authenticate = eks_authenticator(
        lambda *_: SESSION, "gpu-demo", lambda: dt.datetime.now(dt.UTC), access_entries=entries
    )
    assert authenticate(_token(url)) == User(SESSION, GROUPS)


class _Sts(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answers = {
            "/json": (200, f'{{"Result": {{"Arn": "{SESSION}"}}}}'),
            "/xml": (200, f"<Result><Arn>{SESSION}</Arn></Result>"),
            "/empty": (200, "{}"),
            "/refused": (403, f"<Arn>{SESSION}</Arn>"),
            "/elsewhere": (302, ""),
        }
        status, text = answers[self.path]
        if self.headers["x-k8s-aws-id"] != "gpu-demo":
            status = 403
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        if status == 302:
            self.send_header("Location", "/json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def sts_port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Sts) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "arn"),
    [("json", SESSION), ("xml", SESSION), ("empty", None), ("refused", None), ("elsewhere", None)],
)
def test_calling_sts(sts_port: int, path: str, arn: str | None) -> None:
    call = sts_caller([sts_port])
    url = f"http://127.0.0.1:{sts_port}/{path}"
    assert call(url, {"x-k8s-aws-id": "gpu-demo"}) == arn


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/json",
        "https://127.0.0.1:{port}/json",
        "http://sts.example:{port}/json",
        "http://127.0.0.1@sts.example:{port}/json",
        "http://127.0.0.1:none/json",
        "file:///etc/hostname",
    ],
)
def test_nothing_else_is_called(sts_port: int, url: str) -> None:
    call = sts_caller([sts_port])
    assert call(url.format(port=sts_port), {"x-k8s-aws-id": "gpu-demo"}) is None


def test_an_sts_that_is_not_there() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), _Sts) as server:
        port = server.server_port
    assert sts_caller([port])(f"http://127.0.0.1:{port}/json", {}) is None
