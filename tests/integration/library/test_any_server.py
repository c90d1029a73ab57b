"""`loadgen run --base-url URL --api-key KEY --model M` against each kind of server: right at the
first try.
"""

import asyncio
import logging
import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

import loadgen
from loadgen.cli import exit_codes
from loadgen.engines.sim.http1 import Request, whole
from loadgen.metrics.progress import Progress
from loadgen.runner import preflight
from tests.helpers.scripted_server import answering_each, serving
from tests.helpers.server_kinds import CHAT, KEY, KINDS, MODEL, ServerKind, error, kind_server

MAX_BEFORE = 3  # requests before the load
GENTLE = 100


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tokenizer of a model can be had."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_run_ends_well_at_the_first_try(
    kind: ServerKind, caplog: pytest.LogCaptureFixture
) -> None:
    async with kind_server(kind) as server:
        settings = loadgen.RunSettings(base_url=server.url, api_key=KEY, model=MODEL)
        result = await loadgen.run(settings)
    assert result.outcomes == {"ok": GENTLE}
    assert exit_codes.code(result, strict=False, interrupted=False) == 0
    assert not [check.name for check in result.failed_checks if check.group == "E"]
    assert len(server.before) <= MAX_BEFORE
    if kind.omitted - {"max_completion_tokens"}:  # a hosted API is asked for nothing else
        gets = [request.path for request in server.requests if request.method == "GET"]
        assert gets == [kind.models] * bool(kind.models)
    assert len(server.sent) == GENTLE
    asked = result.data["loadgen"]["provenance"]["settings"]
    assert {*asked["omit"]} == kind.omitted
    for body in server.sent:
        assert not kind.omitted & body.keys()
        assert ("messages" in body) is kind.chat
        assert 128 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert result.numbers.total_output_tokens == GENTLE * 128
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert said[0].startswith("no load was given")
    assert len(said) == 1 + bool(kind.omitted)
    facts = result.data["loadgen"]["provenance"]["engine"]["preflight"]
    assert {*facts["omitted"]} == kind.omitted
    assert facts["requests"] == sum(request.method == "POST" for request in server.before)


OPENAI = next(kind for kind in KINDS if kind.name == "OpenAI")
ANTHROPIC = next(kind for kind in KINDS if kind.name == "Anthropic")
VLLM = next(kind for kind in KINDS if kind.name == "vLLM")
BASE = r"http://127\.0\.0\.1:\d+"


async def refused(kind: ServerKind, **given: Any) -> str:
    """The one line of a run that is stopped; nothing of the load may have been sent."""
    async with kind_server(kind) as server:
        settings = {"base_url": server.url, "model": MODEL, "api_key": KEY, "num_prompts": 5}
        with pytest.raises(loadgen.BadInput) as caught:
            await loadgen.run(loadgen.RunSettings(**settings | given))
    assert not server.sent
    assert len(server.before) <= MAX_BEFORE + 1
    return str(caught.value)


ANYWAY = "--no-preflight sends the load all the same"
WRONG_KEY = "a key was sent: see whether it is one of this server, and for this model"
INCORRECT = "api_key: URL answers 401: invalid_api_key: Incorrect API key provided"
UNRECOGNIZED = "backend: URL answers 400: Unrecognized request argument supplied"
WRONG_PATH = f"check the URL, the path and backend; {ANYWAY}"
UNLISTED = replace(VLLM, models="")
POOR = replace(
    UNLISTED, no_completions=(429, error("You exceeded your quota", code="insufficient_quota"))
)


@pytest.mark.parametrize(
    ("kind", "given", "line"),
    [
        (OPENAI, {"api_key": None}, f"{INCORRECT}; give its key, or set OPENAI_API_KEY"),
        (OPENAI, {"api_key": "sk-other-99"}, f"{INCORRECT}; {WRONG_KEY}"),
        (
            ANTHROPIC,
            {"api_key": "sk-other-99"},
            "api_key: URL answers 401: authentication_error: x-api-key is required; " + WRONG_KEY,
        ),
        (
            UNLISTED,
            {"model": "other"},
            "model: 'other': URL answers 404: The model other does not exist; name a model that "
            "the server has",
        ),
        (
            VLLM,
            {"model": "other"},
            "model: 'other': URL answers 404: The model other does not exist; choose from 'm' "
            "(with tokenizer if the tokenizer has another name)",
        ),
        (
            POOR,
            {},
            "api_key: URL answers 429: insufficient_quota: You exceeded your quota; see the plan "
            f"of its account; {ANYWAY}",
        ),
        (
            OPENAI,
            {"backend": "openai-chat", "strict": True},
            f"{UNRECOGNIZED}: ignore_eos; give omit ignore_eos; {ANYWAY}",
        ),
        (
            OPENAI,
            {"backend": "openai-chat", "adapt": False},
            f"{UNRECOGNIZED}: ignore_eos; give omit ignore_eos; {ANYWAY}",
        ),
        (
            OPENAI,
            {"backend": "openai-chat", "extra_body": {"guided": 1}},
            f"{UNRECOGNIZED}: guided; leave out what it refuses; {ANYWAY}",
        ),
        (
            replace(OPENAI, paths=(CHAT,)),
            {"backend": "openai"},
            f"base_url: URL/v1/completions answers 404: Not Found; {WRONG_PATH}",
        ),
        (
            replace(OPENAI, pasted=""),
            {"endpoint": "/v2/chat/completions"},
            f"endpoint: URL/v2/chat/completions answers 404: Not Found; {WRONG_PATH}",
        ),
    ],
)
async def test_a_run_that_would_fail_is_stopped_in_the_servers_words(
    kind: ServerKind, given: dict[str, Any], line: str
) -> None:
    said = await refused(kind, **given)
    shown = re.sub(BASE, "URL", said.replace("the server at http", "http"))
    assert shown == line


async def test_without_a_preflight_the_load_is_sent_as_it_is() -> None:
    async with kind_server(OPENAI) as server:
        settings = loadgen.RunSettings(
            base_url=server.url, model=MODEL, api_key=KEY, num_prompts=5, preflight=False
        )
        result = await loadgen.run(settings)
    assert result.outcomes == {"status(404)": 5}
    assert [request.method for request in server.before if request.method == "POST"] == []


async def test_a_key_that_may_not_list_models_may_still_be_used() -> None:
    def guarded(request: Request) -> bytes:
        if request.method == "GET":
            return whole(403, orjson.dumps(error("Missing scopes: api.model.read")))
        return VLLM.reply(request)

    async with serving(answering_each(guarded)) as url:
        settings = loadgen.RunSettings(base_url=url, model=MODEL, api_key=KEY, num_prompts=3)
        result = await loadgen.run(settings)
    assert result.outcomes == {"ok": 3}


async def test_a_server_that_is_busy_gets_the_load_with_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    busy = replace(VLLM, no_completions=(503, error("overloaded")))
    async with kind_server(busy) as server:
        settings = loadgen.RunSettings(base_url=server.url, model=MODEL, api_key=KEY, num_prompts=3)
        result = await loadgen.run(settings)
    assert result.outcomes == {"status(503)": 3}
    assert "the load is sent although the test request failed: 503: overloaded" in caplog.text


async def test_the_ready_check_is_the_preflight() -> None:
    async with kind_server(VLLM) as server:
        settings = loadgen.RunSettings(
            base_url=server.url,
            model=MODEL,
            api_key=KEY,
            num_prompts=3,
            ready_check_timeout_sec=5.0,
        )
        result = await loadgen.run(settings)
    assert result.outcomes == {"ok": 3}
    assert len(server.before) == 2
    assert len(server.sent) == 3


async def test_a_ready_check_without_success_ends_the_run() -> None:
    busy = replace(VLLM, no_completions=(503, error("loading the model")))
    async with kind_server(busy) as server:
        settings = loadgen.RunSettings(
            base_url=server.url, model=MODEL, api_key=KEY, ready_check_timeout_sec=0.3
        )
        with pytest.raises(loadgen.Unreachable, match=r"no success in 0\.3 s .*loading the model"):
            await loadgen.run(settings)
    assert not server.sent


async def test_a_user_is_told_what_a_server_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "QUIET_S", 0.05)
    told: list[Progress] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        while not told:
            await asyncio.sleep(0.01)
        body = b'{"choices": [{"text": "x", "finish_reason": "length"}]}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with serving(script) as url:
        settings = loadgen.RunSettings(base_url=url, model=MODEL, tokenizer="none").checked()
        test = preflight.Preflight(settings, MODEL, [MODEL], told.append)
        await test.ask(chooses=False)
    assert test.answered
    assert [(each.phase, each.note) for each in told] == [
        ("waiting", f"{url}/v1/completions has not answered the test request yet")
    ]
