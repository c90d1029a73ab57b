"""An API may sign each request; the example of AWS does so as AWS's published vectors have it."""

import importlib.util
import os
from datetime import UTC, datetime
from types import ModuleType

import pytest
from msgspec.structs import replace

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.workload import endpoints, target
from loadgen.workload.endpoints.generation import CHAT
from loadgen.workload.target import Target
from tests.helpers.source import ROOT

# The test suite that AWS publishes for Signature Version 4 (aws-sig-v4-test-suite).
AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
HOST = "https://example.amazonaws.com"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SCOPE = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfp"
    "SPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQ"
    "DYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+s"
    "cqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)
UNRESERVED = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
VECTORS = {
    "get-vanilla": (
        ("GET", "/"),
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    "post-vanilla": (
        ("POST", "/"),
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    "post-vanilla-query": (
        ("POST", "/?Param1=value1"),
        "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
    ),
    "get-vanilla-query-order-key-case": (
        ("GET", "/?Param2=value2&Param1=value1"),
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "get-vanilla-query-unreserved": (
        ("GET", f"/?{UNRESERVED}={UNRESERVED}"),
        "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
    ),
    "get-unreserved": (
        ("GET", f"/{UNRESERVED}"),
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
    ),
    "get-utf8": (
        ("GET", "/\u1234"),
        "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
    ),
    "get-vanilla-utf8-query": (
        ("GET", "/?\u1234=bar"),
        "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
    ),
}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_SERVICE": "service",
    }.items():
        monkeypatch.setitem(os.environ, name, value)
    path = ROOT / "examples" / "sigv4" / "loadgen_sigv4.py"
    spec = importlib.util.spec_from_file_location("loadgen_sigv4", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", VECTORS)
def test_signatures_are_those_of_the_published_vectors(example: ModuleType, name: str) -> None:
    (method, path), signature = VECTORS[name]
    headers = example.SIGNER.headers(method, HOST + path, b"", AT)
    assert headers == {
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={SCOPE}, SignedHeaders=host;x-amz-date, "
        f"Signature={signature}",
    }


def test_the_token_of_temporary_credentials_is_signed(example: ModuleType) -> None:
    signer = replace(example.SIGNER, token=TOKEN)
    headers = signer.headers("POST", f"{HOST}/", b"", AT)
    assert headers["Authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={SCOPE}, SignedHeaders=host;x-amz-date;x-amz-security-token, "
        "Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"
    )
    assert signer.fixed == {"X-Amz-Security-Token": TOKEN}


def test_the_credentials_of_a_signer_are_not_shown(example: ModuleType) -> None:
    assert SECRET not in repr(example.CHAT)


def signed(method: str, url: str, body: bytes) -> dict[str, str]:
    return {"X-Signature": f"{method} {url} {body.decode()}"}


def test_each_request_is_signed_with_its_body() -> None:
    url = "http://server:8000/v1/chat/completions?api=1"
    encoder = RequestEncoder(Target(url, "m", replace(CHAT, sign=signed)))
    bodies = (b'{"a":1}', b"{}")
    requests = [encoder.encode(Record(number), body) for number, body in enumerate(bodies)]
    for request, body in zip(requests, bodies, strict=True):
        head, _, sent = request.partition(b"\r\n\r\n")
        assert sent == body
        assert head.endswith(b"\r\nX-Signature: POST %b %b" % (url.encode(), body))


def test_a_get_is_signed_without_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "find", lambda settings: replace(CHAT, sign=signed))
    url = "http://h:1/v1/models"
    headers = target.headers_of_get(RunSettings(base_url="http://h:1"), url)
    assert headers["X-Signature"] == f"GET {url} "
