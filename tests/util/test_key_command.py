"""What a command prints is a key alone, or JSON that holds one; both may say when it ends."""

import base64
import json
import math
import re
import time

import pytest

from loadgen.errors import BadInput
from loadgen.util.key_command import Key, read

LATER = 4_102_444_800.0  # 2100-01-01T00:00:00Z


def token(**claims: object) -> str:
    parts = ({"alg": "RS256"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)
    return ".".join([*(part.rstrip("=") for part in encoded), "signature"])


def fields(key: Key) -> tuple[str, float]:
    return key.text, key.expires_s


def test_a_key_alone_does_not_say_when_it_ends() -> None:
    assert fields(read(b"ya29.a0-key_of~gcloud\n")) == ("ya29.a0-key_of~gcloud", math.inf)


@pytest.mark.parametrize(
    "printed",
    [
        {
            "kind": "ExecCredential",
            "status": {"token": "k8s-aws-v1.x", "expirationTimestamp": "2100-01-01T00:00:00Z"},
        },
        {"credential": {"access_token": "k8s-aws-v1.x", "token_expiry": "2100-01-01T00:00:00Z"}},
        {"accessToken": "k8s-aws-v1.x", "expires_on": LATER, "expiresOn": "2100-01-01 23:00:00.0"},
        {"access_token": "k8s-aws-v1.x", "expires_on": str(int(LATER))},
    ],
    ids=["kubectl", "gcloud config-helper", "az", "managed identity"],
)
def test_json_holds_a_key_and_its_end(printed: object) -> None:
    assert fields(read(json.dumps(printed).encode())) == ("k8s-aws-v1.x", LATER)


def test_json_may_say_how_long_a_key_lasts() -> None:
    key = read(b'{"access_token": "opaque", "expires_in": 3600}')
    assert key.expires_s == pytest.approx(time.time() + 3600, abs=60)


def test_a_json_web_token_says_itself_when_it_ends() -> None:
    assert read(token(exp=LATER).encode()).expires_s == LATER
    assert read(json.dumps({"token": token(exp=LATER)}).encode()).expires_s == LATER
    assert read(token(sub="me").encode()).expires_s == math.inf


def test_an_end_that_has_passed_says_nothing() -> None:
    assert read(token(exp=1.0).encode()).expires_s == math.inf


@pytest.mark.parametrize("text", ["a.b.c", "a.!!!.c", f"a.{base64.b64encode(b'[1]').decode()}.c"])
def test_three_parts_are_not_always_a_json_web_token(text: str) -> None:
    assert fields(read(text.encode())) == (text, math.inf)


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        (b" \n", "has printed no key"),
        (b"Logged in.\nsecret\n", "has printed more than one word"),
        (b'{"token": "sec', "has printed JSON that is not complete"),
        (b'{"error": "secret"}', "has printed JSON without a token"),
    ],
)
def test_what_holds_no_key_is_refused_without_showing_it(printed: bytes, problem: str) -> None:
    with pytest.raises(BadInput, match=re.escape(problem)) as refused:
        read(printed)
    assert refused.value.field == "--api-key-command"
    assert "sec" not in str(refused.value)


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(read(b"secret-key"))
