"""The bodies of embeddings, pooling and rerank, key for key as `vllm bench serve` 0.33 sends
them.
"""

from typing import Any

import orjson
import pytest

from loadgen.config.backends import BACKENDS
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import endpoints
from loadgen.workload.endpoints.pooling import count_texts
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target, endpoint

ONE = Prompt("Why?", 3, 0, "test/0")
SEVERAL = Prompt("", 9, 0, "test/1", texts=("Why?", "So.", "No."))
CHAT = Prompt("Why?", 3, 0, "test/2", messages=({"role": "user", "content": "Why?"},))
CUT = {"truncate_prompt_tokens": -1}


def body(backend: Any, prompt: Prompt = ONE, **options: Any) -> dict[str, Any]:
    target = Target.from_settings(RunSettings(backend=backend, **options), "m")
    found: dict[str, Any] = orjson.loads(target.body(prompt))
    return found


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("openai-embeddings", {"model": "m", "input": "Why?"} | CUT),
        ("infinity-embeddings", {"model": "m", "input": "Why?"}),
        ("vllm-pooling", {"model": "m"} | CUT | {"input": "Why?"}),
        (
            "openai-embeddings-chat",
            {
                "model": "m",
                "messages": [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}],
            }
            | CUT,
        ),
    ],
)
def test_a_body_of_one_text(backend: str, expected: dict[str, Any]) -> None:
    assert list(body(backend).items()) == list(expected.items())


@pytest.mark.parametrize("backend", ["openai-embeddings", "infinity-embeddings", "vllm-pooling"])
def test_several_texts_are_a_list_of_inputs(backend: str) -> None:
    assert body(backend, SEVERAL)["input"] == ["Why?", "So.", "No."]


def test_a_rerank_has_a_query_and_documents() -> None:
    expected = {"model": "m", "query": "Why?", "documents": ["So.", "No."]} | CUT
    assert list(body("vllm-rerank", SEVERAL).items()) == list(expected.items())


def test_the_messages_of_a_chat_are_embedded_as_they_are() -> None:
    assert body("openai-embeddings-chat", CHAT)["messages"] == [{"role": "user", "content": "Why?"}]


def test_further_fields_come_last_and_win() -> None:
    found = body(
        "openai-embeddings",
        extra_body={"dimensions": 8, "truncate_prompt_tokens": 100},
        ignore_eos=True,
    )
    assert found == {
        "model": "m",
        "input": "Why?",
        "truncate_prompt_tokens": 100,
        "ignore_eos": True,
        "dimensions": 8,
    }


@pytest.mark.parametrize(
    ("backend", "prompt"),
    [
        ("openai-embeddings", CHAT),
        ("openai-embeddings-chat", SEVERAL),
        ("vllm-rerank", ONE),
        ("openai", SEVERAL),
        ("openai-chat", SEVERAL),
    ],
)
def test_a_prompt_of_another_form_is_refused(backend: str, prompt: Prompt) -> None:
    with pytest.raises(BadInput):
        body(backend, prompt)


@pytest.mark.parametrize(
    ("path", "backend"),
    [
        ("/v1/embeddings", "openai-embeddings"),
        ("/pooling", "vllm-pooling"),
        ("/rerank", "vllm-rerank"),
        ("/v2/rerank", "vllm-rerank"),
        ("/v1/completions", "openai"),
    ],
)
def test_the_path_means_its_api(path: str, backend: str) -> None:
    settings = RunSettings(endpoint=path)
    assert endpoints.name_of(settings) == backend
    assert settings.generates == bool(endpoints.find(settings).length_field)


@pytest.mark.parametrize("backend", BACKENDS)
def test_settings_and_api_agree_on_streams_and_paths(backend: Any) -> None:
    settings = RunSettings(backend=backend)
    assert settings.generates == bool(endpoints.find(settings).length_field)
    assert endpoints.checked(RunSettings(backend=backend, endpoint=endpoint(settings)))


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("--extra-body", {"extra_body": {"input": "x"}}),
        ("--backend", {"endpoint": "/v1/completions"}),
        ("--backend", {"endpoint": "/v1/embeddings", "backend": "openai"}),
        ("--backend", {"endpoint": "/v1/embeddings", "backend": "vllm-rerank"}),
    ],
)
def test_what_the_api_cannot_send_is_refused(flag: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        endpoints.checked(RunSettings(**{"backend": "openai-embeddings"} | options))
    assert refused.value.field == flag


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"input": "Why?"}, 1),
        ({"input": ["Why?", "So."]}, 2),
        ({"input": [5, 6, 7]}, 1),
        ({"input": [[5, 6], [7]]}, 2),
        ({"query": "Why?", "documents": ["So.", "No."]}, 2),
        ({"query": "Why?", "documents": ["So.", "No."], "top_n": 1}, 0),
        ({"input": []}, 0),
        ({"messages": []}, 0),
    ],
)
def test_the_texts_of_a_body_are_counted(fields: dict[str, Any], count: int) -> None:
    assert count_texts(orjson.dumps(fields)) == count
