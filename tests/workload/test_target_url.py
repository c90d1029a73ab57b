"""Where a target sends: its URL, its endpoint, and the backend that follows."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.route import DIRECT, Route
from loadgen.workload import endpoints
from loadgen.workload.target import Target, base_url, endpoint, headers, is_chat, models_url
from tests.helpers.request_targets import target

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"port": 9}, "http://127.0.0.1:9"),
        ({"host": "a"}, "http://a:8000"),
        ({"host": "::1", "port": 80}, "http://[::1]:80"),
        ({"base_url": "https://a.example/"}, "https://a.example"),
        ({"base_url": "http://a:1/prefix/"}, "http://a:1/prefix"),
        ({"base_url": f"http://me:{SECRET}@a:1"}, "http://a:1"),
    ],
)
def test_the_base_url_is_given_whole_or_by_host_and_port(options, url):
    assert base_url(RunSettings(**options)) == url


CHAT, AZURE = "/v1/chat/completions", "https://r.openai.azure.com/openai"


@pytest.mark.parametrize(
    ("pasted", "url", "models"),
    [
        ("http://a:1/v1", f"http://a:1{CHAT}", "http://a:1/v1/models"),
        ("http://a:1/v1/", f"http://a:1{CHAT}", "http://a:1/v1/models"),
        ("a:1/v1", f"http://a:1{CHAT}", "http://a:1/v1/models"),
        ("localhost", f"http://localhost{CHAT}", "http://localhost/v1/models"),
        ("[::1]:8000", f"http://[::1]:8000{CHAT}", "http://[::1]:8000/v1/models"),
        (f"http://[::1]:8000{CHAT}", f"http://[::1]:8000{CHAT}", "http://[::1]:8000/v1/models"),
        (f"https://a/p{CHAT}?k=v", f"https://a/p{CHAT}?k=v", "https://a/p/v1/models"),
        ("https://a/api/v1?k=v", f"https://a/api{CHAT}?k=v", "https://a/api/v1/models?k=v"),
        (
            "https://a/api/paas/v4",
            "https://a/api/paas/v4/chat/completions",
            "https://a/api/paas/v4/models",
        ),
        (
            "https://a/v1beta/openai/",
            "https://a/v1beta/openai/chat/completions",
            "https://a/v1beta/openai/models",
        ),
        (f"{AZURE}/v1/", f"{AZURE}{CHAT}", f"{AZURE}/v1/models"),
        (
            f"{AZURE}/deployments/d?api-version=1",
            f"{AZURE}/deployments/d/chat/completions?api-version=1",
            None,
        ),
        (
            f"{AZURE}/deployments/d/chat/completions?api-version=1",
            f"{AZURE}/deployments/d/chat/completions?api-version=1",
            None,
        ),
    ],
)
def test_a_url_is_taken_as_it_is_pasted(pasted, url, models):
    settings = endpoints.checked(RunSettings(base_url=pasted, backend="openai-chat"))
    assert Target.from_settings(settings, "m").url == url
    assert models_url(settings) == models
    assert settings.replace(num_prompts=3).replace(num_prompts=None) == settings


@pytest.mark.parametrize(
    ("path", "backend"),
    [
        (CHAT, "openai-chat"),
        ("/v1/completions", "openai"),
        ("/v1/responses", "openai-responses"),
        ("/v1/messages", "anthropic"),
        ("/v1/embeddings", "openai-embeddings"),
        ("/generate", "sglang-native"),
        ("/openai/deployments/d/chat/completions?api-version=1", "openai-chat"),
    ],
)
def test_the_url_of_an_endpoint_chooses_the_backend(path, backend):
    assert endpoints.name_of(RunSettings(base_url=f"http://a:1{path}")) == backend


def test_one_endpoint_is_named_once():
    both = RunSettings(base_url=(f"http://a{CHAT}", f"http://b{CHAT}"))
    assert (both.urls, both.endpoint) == (("http://a", "http://b"), CHAT)
    for settings in (
        RunSettings(base_url=f"http://a{CHAT}", endpoint="/v1/completions"),
        RunSettings(base_url=("http://a/v1/completions", f"http://b{CHAT}")),
        RunSettings(base_url=("http://a", f"http://b{CHAT}")),
    ):
        with pytest.raises(BadInput, match=r"--base-url: http://. names|--base-url: http://./v1/"):
            settings.checked()


def test_v1_of_the_url_and_of_the_endpoint_is_one():
    for base, path in (("http://a/v1", CHAT), ("http://a/v1", "/chat/completions")):
        settings = RunSettings(base_url=base, endpoint=path)
        assert Target.from_settings(settings, "m").url == f"http://a{CHAT}"
        assert models_url(settings) == "http://a/v1/models"


def test_a_deployment_gets_the_key_in_its_own_header():
    url = f"{AZURE}/deployments/d?api-version=1"
    assert headers(RunSettings(base_url=url, api_key=SECRET)) == {"api-key": SECRET}


def test_a_port_that_is_out_of_range_is_said_to_be():
    for port in (0, 65536, 99999):
        with pytest.raises(BadInput, match=f"port {port} is out of range") as refused:
            base_url(RunSettings(base_url=f"http://me:{SECRET}@a:{port}/prefix"))
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a",
        "me@a:8000",
        "ftp://a",
        "http://",
        "http://a:0",
        "http://a:99999",
        "http://a:x",
        "http://[::1",
        "http://a b",
        "http://a#x",
        f"u:{SECRET}@a",
        f"ftp://u:{SECRET}@a",
    ],
)
def test_invalid_base_url_is_refused_without_its_user(url):
    with pytest.raises(BadInput) as caught:
        base_url(RunSettings(base_url=url))
    assert caught.value.field == "--base-url"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("a", "http://a"),
        ("api.example.com/v1", "http://api.example.com/v1"),
        ("ftp://a", "http://HOST:PORT"),
        ("a b", "http://HOST:PORT"),
        ("", "http://HOST:PORT"),
    ],
)
def test_url_without_scheme_is_refused_with_the_full_url(url, meant):
    with pytest.raises(BadInput) as caught:
        base_url(RunSettings(base_url=url))
    assert caught.value.remedy == f"write {meant}"


@pytest.mark.parametrize(
    ("options", "path", "chat"),
    [
        ({}, "/v1/completions", False),
        ({"backend": "openai"}, "/v1/completions", False),
        ({"backend": "vllm"}, "/v1/completions", False),
        ({"backend": "openai-chat"}, "/v1/chat/completions", True),
        ({"endpoint": "/v1/chat/completions"}, "/v1/chat/completions", True),
        ({"endpoint": "api/completions"}, "/api/completions", False),
        (
            {"backend": "openai-chat", "endpoint": "/x/chat/completions"},
            "/x/chat/completions",
            True,
        ),
    ],
)
def test_backend_and_endpoint_follow_from_each_other(options, path, chat):
    settings = RunSettings(**options)
    assert (endpoint(settings), is_chat(settings)) == (path, chat)


@pytest.mark.parametrize("path", ["/v1/a b", "/v1/ü", "/v1\r\nX: y", "/v1/\x00"])
def test_a_path_that_cannot_stand_in_a_request_line_is_refused(path):
    with pytest.raises(BadInput) as caught:
        endpoint(RunSettings(endpoint=path))
    assert caught.value.field == "--endpoint"
    assert "\n" not in str(caught.value)


def test_certificates_are_checked_unless_told_otherwise():
    assert (target().route, target(insecure=True).route) == (DIRECT, Route(verify=False))
