"""The registry of APIs: what --backend and --endpoint choose, and what they refuse."""

import tomllib
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import orjson
import pytest
from msgspec import structs

from loadgen.config.backends import BACKENDS
from loadgen.config.settings import RunSettings
from loadgen.core.reference_parser import parse
from loadgen.errors import BadInput
from loadgen.util import packages
from loadgen.workload import endpoints
from loadgen.workload.endpoints.api import Api
from loadgen.workload.endpoints.generation import CHAT, COMPLETIONS, MESSAGES, RESPONSES
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target, headers
from tests.helpers.source import ROOT

PROMPT = Prompt("Why?", 3, 64, "test/0")
CONVERSATION = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"})


def body(prompt: Prompt = PROMPT, **options: Any) -> Any:
    return orjson.loads(Target.from_settings(RunSettings(**options), "m").body(prompt))


def test_the_built_in_names_are_in_one_list() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert endpoints.GROUP not in project["entry-points"]


def test_every_built_in_name_has_an_api() -> None:
    apis = {name: endpoints.find(RunSettings(backend=name)) for name in BACKENDS}
    assert apis["openai-chat"] is CHAT
    assert {name for name, api in apis.items() if api is COMPLETIONS} == {
        *("openai", "vllm", "lmdeploy", "scalellm", "sglang", "llama.cpp")
    }


@pytest.mark.parametrize(
    ("path", "backend"),
    [
        ("/v1/chat/completions", "openai-chat"),
        ("/v1/completions", "openai"),
        ("/generate", "sglang-native"),
        ("/v1/responses", "openai-responses"),
        ("/v1/messages", "anthropic"),
        ("/x", "openai"),
        (None, "openai"),
    ],
)
def test_a_path_alone_means_a_built_in_backend(path: str | None, backend: str) -> None:
    assert endpoints.name_of(RunSettings(endpoint=path)) == backend


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        ("openai", "/v1/chat/completions"),
        ("openai-chat", "/v1/completions"),
        ("sglang-native", "/v1/completions"),
        ("openai", "/generate"),
        ("openai-chat", "/v1/responses"),
        ("openai-responses", "/v1/chat/completions"),
        ("anthropic", "/v1/responses"),
    ],
)
def test_a_path_of_another_api_is_refused(backend: str, path: str) -> None:
    with pytest.raises(
        BadInput,
        match=f"^--backend: {backend} is not the API of the endpoint {path}; leave it out",
    ):
        endpoints.checked(RunSettings(backend=backend, endpoint=path))


@pytest.mark.parametrize(
    "given",
    [
        {"backend": "openai-chat", "endpoint": "/api/v1/chat/completions"},
        {"backend": "vllm", "endpoint": "/v1/completions"},
        {"backend": "openai-responses", "extra_body": {"prompt_cache_key": "a"}},
        {"endpoint": "/v1/chat/completions", "continuous_usage": True},
    ],
)
def test_settings_that_an_api_can_send_come_back_as_they_are(given: dict[str, Any]) -> None:
    settings = RunSettings(**given)
    assert endpoints.checked(settings) == settings


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"backend": "openai-responses", "extra_body": {"input": "x"}}, "--extra-body"),
        ({"backend": "sglang-native", "extra_body": {"input_ids": [1]}}, "--extra-body"),
        ({"backend": "openai-responses", "continuous_usage": True}, "--continuous-usage"),
        ({"backend": "anthropic", "continuous_usage": True}, "--continuous-usage"),
        ({"request_rate": -1.0}, "--request-rate"),
    ],
)
def test_settings_that_an_api_cannot_send_are_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        endpoints.checked(RunSettings(**given))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("backend", "remedy"),
    [
        ("openai_chat", "did you mean openai-chat?"),
        ("chat", "did you mean openai-chat?"),
        ("vllm-chat", "did you mean openai-chat?"),
        ("chat_completions", "did you mean openai-chat?"),
        ("completions", "did you mean openai?"),
        ("openai-completions", "did you mean openai?"),
        ("sglang-oai", "did you mean openai?"),
        ("nim_rankings", "did you mean vllm-rerank?"),
        ("gopher", "choose from openai-chat, openai-responses,"),
    ],
)
def test_an_unknown_backend_is_refused_with_the_one_that_is_meant(
    backend: str, remedy: str
) -> None:
    with pytest.raises(BadInput, match=r"^--backend: unknown value") as caught:
        endpoints.checked(RunSettings(backend=backend))
    assert caught.value.remedy.startswith(remedy)


def test_every_name_that_other_tools_have_means_a_backend() -> None:
    assert set(endpoints.MEANT.values()) <= BACKENDS.keys()
    assert not endpoints.MEANT.keys() & BACKENDS.keys()


MINE = structs.replace(COMPLETIONS, path="/mine")


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "mine": "tests.workload.test_endpoints:MINE",
        "gone": "tests.nowhere:API",
        "wrong": "orjson:dumps",
    }
    found = EntryPoints(EntryPoint(name, place, endpoints.GROUP) for name, place in entries.items())
    monkeypatch.setattr(packages, "installed", lambda group: found)


@pytest.mark.usefixtures("plugins")
def test_a_package_adds_an_api_by_its_name() -> None:
    settings = RunSettings(backend="mine")
    found: Api = endpoints.find(settings)
    assert (found.path, endpoints.checked(settings)) == ("/mine", settings)
    assert endpoints.checked(settings.replace(endpoint="/other")).endpoint == "/other"


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "problem"), [("gone", "cannot be loaded"), ("wrong", "is not an Api")]
)
def test_an_api_that_cannot_be_used_is_refused(name: str, problem: str) -> None:
    with pytest.raises(BadInput, match=f"^--backend: '{name}' {problem}.*; repair the package"):
        endpoints.find(RunSettings(backend=name))


# -- Responses


def test_a_request_for_a_response_bears_the_prompt_as_input() -> None:
    # As `vllm-rs bench serve --backend openai-responses` sends it.
    assert body(backend="openai-responses", ignore_eos=True) == {
        "model": "m",
        "input": "Why?",
        "max_output_tokens": 64,
        "store": False,
        "stream": True,
        "ignore_eos": True,
    }


def test_a_response_may_be_asked_for_with_several_messages() -> None:
    assert body(structs.replace(PROMPT, messages=CONVERSATION), backend="openai-responses")[
        "input"
    ] == list(CONVERSATION)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"status": "completed"}, "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "max_output_tokens",
        ),
        ({}, "completed"),
    ],
)
def test_a_response_ends_for_the_reason_that_its_last_event_names(
    response: dict[str, Any], reason: str
) -> None:
    assert RESPONSES.dialect is not None
    delta = RESPONSES.dialect.read({"type": "response.completed", "response": response})
    assert (delta.finish_reason, delta.completion_tokens) == (reason, -1)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (
            {"type": "error", "code": "x", "message": "no"},
            '{"type":"error","code":"x","message":"no"}',
        ),
        ({"type": "response.failed", "response": {"error": {"message": "no"}}}, '{"message":"no"}'),
    ],
)
def test_a_response_may_end_as_an_error(event: dict[str, Any], error: str) -> None:
    assert RESPONSES.dialect is not None
    assert parse(orjson.dumps(event), RESPONSES.dialect).error == error


# -- Messages


def test_a_request_for_a_message_bears_the_prompt_as_the_users() -> None:
    assert body(backend="anthropic", temperature=0.0) == {
        "model": "m",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Why?"}],
        "stream": True,
        "temperature": 0.0,
    }


def test_the_systems_messages_stand_apart() -> None:
    sent = body(structs.replace(PROMPT, messages=CONVERSATION), backend="anthropic")
    assert (sent["system"], sent["messages"]) == (
        "Be brief.",
        [{"role": "user", "content": "Why?"}],
    )
    several = ({"role": "system", "content": "Be kind."}, *CONVERSATION)
    assert body(structs.replace(PROMPT, messages=several), backend="anthropic")["system"] == [
        {"type": "text", "text": "Be kind."},
        {"type": "text", "text": "Be brief."},
    ]


def test_a_request_for_a_message_has_its_version_and_both_forms_of_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = RunSettings(backend="anthropic")
    assert headers(settings) == {"anthropic-version": "2023-06-01"}
    assert headers(settings.replace(api_key="hunter2")) == {
        "anthropic-version": "2023-06-01",
        "Authorization": "Bearer hunter2",
        "x-api-key": "hunter2",
    }
    own = settings.replace(header=("Anthropic-Version=2024-01-01",))
    assert headers(own) == {"Anthropic-Version": "2024-01-01"}


@pytest.mark.parametrize(
    ("event", "facts"),
    [
        (
            {
                "type": "message_start",
                "message": {"usage": {"input_tokens": 9, "output_tokens": 1}},
            },
            (9, -1, -1, None),
        ),
        (
            {
                "type": "message_start",
                "message": {"usage": {"input_tokens": 0, "output_tokens": 0}},
            },
            (-1, -1, -1, None),
        ),
        (
            {
                "type": "message_delta",
                "delta": {"stop_reason": "max_tokens"},
                "usage": {
                    "input_tokens": 2,
                    "cache_read_input_tokens": 4,
                    "cache_creation_input_tokens": 3,
                    "output_tokens": 5,
                },
            },
            (9, 5, 4, "max_tokens"),
        ),
        ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, (-1, -1, -1, "end_turn")),
    ],
)
def test_a_message_counts_its_tokens_at_both_ends(
    event: dict[str, Any], facts: tuple[object, ...]
) -> None:
    assert MESSAGES.dialect is not None
    delta = MESSAGES.dialect.read(event)
    assert (
        delta.prompt_tokens,
        delta.completion_tokens,
        delta.cached_tokens,
        delta.finish_reason,
    ) == facts


def test_a_message_may_end_at_a_stop_sequence_or_as_an_error() -> None:
    assert MESSAGES.dialect is not None
    stopped = {
        "type": "message_delta",
        "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
    }
    assert MESSAGES.dialect.read(stopped).matched_stop == "END"
    assert parse(b'{"type":"error"}', MESSAGES.dialect).error == '{"type":"error"}'


def test_no_choice_is_named_twice() -> None:
    with pytest.raises(BadInput) as refused:
        endpoints.find(RunSettings(backend="unlike-any"))
    named = str(refused.value).partition("choose from ")[2].split(", ")
    assert len(named) == len(set(named))
