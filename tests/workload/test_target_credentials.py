"""The credentials of a target: keys, users and headers, which no error shows."""

import base64

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.target import headers
from tests.helpers.request_targets import target

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_the_api_key_is_a_bearer_token():
    assert headers(RunSettings(api_key=SECRET)) == {"Authorization": f"Bearer {SECRET}"}


def test_the_api_key_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from env")
    assert headers(RunSettings()) == {"Authorization": "Bearer from env"}
    assert headers(RunSettings(api_key=SECRET)) == {"Authorization": f"Bearer {SECRET}"}


def test_a_user_in_the_url_is_basic_authorization(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from env")
    given = headers(RunSettings(base_url="http://me:hunter%402@a"))
    assert given == {"Authorization": "Basic " + base64.b64encode(b"me:hunter@2").decode()}


def test_a_header_wins_over_the_key_in_whatever_case():
    assert headers(RunSettings(api_key="key", header=("authorization=Token x",))) == {
        "authorization": "Token x"
    }


def test_headers_split_at_the_first_equals_sign():
    assert headers(RunSettings(header=("X-A=b=c==", " X-B = d "))) == {"X-A": "b=c==", "X-B": "d"}


@pytest.mark.parametrize(
    "given",
    ["Authorization: Bearer a=b:c", "Authorization:Bearer a=b:c ", "Authorization=Bearer a=b:c"],
)
def test_a_header_may_be_written_as_for_curl(given):
    assert headers(RunSettings(header=(given,))) == {"Authorization": "Bearer a=b:c"}


def test_the_key_may_be_in_a_header_of_its_own():
    assert headers(RunSettings(api_key=SECRET, api_key_header="api-key")) == {"api-key": SECRET}


@pytest.mark.parametrize(
    "given",
    [
        f"Authorization Bearer {SECRET}",
        f": Basic {SECRET}==",
        f"={SECRET}",
        f"X Y={SECRET}",
        f"X-A={SECRET}\r\nX-B: c",
        f"X-A={SECRET}\u2028 x",
        SECRET,
        f"Content-Length={SECRET}",
        f"transfer-encoding={SECRET}",
    ],
)
def test_invalid_header_is_refused_without_its_value(given):
    with pytest.raises(BadInput) as caught:
        headers(RunSettings(header=(given,)))
    assert caught.value.field == "--header"
    assert caught.value.remedy
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_invalid_api_key_is_refused_without_showing_it():
    with pytest.raises(BadInput) as caught:
        headers(RunSettings(api_key=f"{SECRET}\n"))
    assert caught.value.field == "--api-key"
    assert SECRET not in str(caught.value)


def test_target_repr_holds_no_secret():
    made = target(api_key=SECRET, header=(f"X-Key={SECRET}",), base_url=f"http://me:{SECRET}@a")
    assert SECRET in str(made.headers)
    assert SECRET not in repr(made)
    assert SECRET not in made.url


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (SECRET, "a header has no name, or neither = nor :"),
        (f"={SECRET}", "a header has no name, or neither = nor :"),
    ],
)
def test_a_header_that_is_none_is_refused_without_its_text(given, problem):
    with pytest.raises(BadInput) as refused:
        headers(RunSettings(header=(given,)))
    assert str(refused.value) == f"--header: {problem}; write Name=value"
