"""A cold cache: the call of each engine is found, and what follows if there is none."""

from typing import Any

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner.server_calls import ServerCalls
from loadgen.util import http_client
from loadgen.util.http_client import Reply

COLD = RunSettings(base_url="http://a:1", cache="cold")
SLOTS = orjson.dumps([{"id": 0}, {"id": 1}])


class Engine:
    """Takes the place of a server: it answers these paths, and 404 for others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: tuple[int, bytes]) -> None:
        self.log: list[str] = []
        self._answers = answers
        monkeypatch.setattr(http_client, "send_json", self._send)

    async def _send(self, url: str, body: bytes, *, method: str, **others: Any) -> Reply:
        path = url.removeprefix("http://a:1")
        self.log.append(f"{method} {path}")
        status, said = self._answers.get(path.split("?")[0].lstrip("/").replace("/", "_"), (404, b"no such path"))
        return Reply(status, said, {})


async def empty(settings: RunSettings = COLD) -> ServerCalls:
    """Empty the cache twice, as a run does: before its warm-up and before its clock."""
    calls = ServerCalls(settings, None)
    await calls.empty_caches()
    async with calls:
        return calls


VLLM = {"reset_prefix_cache": (200, b"")}
SGLANG = {"flush_cache": (200, b"Cache flushed.")}
LLAMA_CPP = {"slots": (200, SLOTS), "slots_0": (200, b'{"n_erased":5}'), "slots_1": (200, b'{"n_erased":0}')}
ERASE = ["POST /slots/0?action=erase", "POST /slots/1?action=erase"]
UNKNOWN = ["POST /reset_prefix_cache", "POST /flush_cache?timeout=60", "GET /slots"]


@pytest.mark.parametrize(
    ("answers", "log"),
    [
        (VLLM, ["POST /reset_prefix_cache"] * 2),
        (SGLANG, [*UNKNOWN[:2], "POST /flush_cache?timeout=60"]),
        (LLAMA_CPP, [*UNKNOWN, *ERASE, *ERASE]),
    ],
    ids=["vLLM", "SGLang", "llama.cpp"],
)
async def test_the_cache_is_emptied_by_the_call_of_its_engine(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, bytes]], log: list[str]
) -> None:
    engine = Engine(monkeypatch, **answers)
    made = (await empty()).made
    assert engine.log == log
    posts = [each.removeprefix("POST ") for each in log if each not in (UNKNOWN if answers is not VLLM else [])]
    assert {call.url.removeprefix("http://a:1") for call in made} >= set(posts)
    assert {(call.moment, call.error) for call in made} == {("before", None)}


async def test_nothing_is_called_unless_the_cache_is_to_be_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch, **VLLM)
    await empty(COLD.replace(cache="warm"))
    assert engine.log == []


@pytest.mark.parametrize(
    "answers",
    [{}, {"slots": (200, SLOTS), "slots_0": (501, b"")}, {"slots": (200, b"[]")}, {"slots": (200, b"no JSON")}],
    ids=["none", "llama.cpp without --slot-save-path", "no slots", "another /slots"],
)
async def test_a_server_without_such_a_call_is_refused(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, bytes]]
) -> None:
    Engine(monkeypatch, **answers)
    with pytest.raises(BadInput, match="http://a:1 has no call that empties its prefix cache") as refused:
        await empty()
    assert refused.value.field == "--cache"
    assert "VLLM_SERVER_DEV_MODE=1" in refused.value.remedy


@pytest.mark.parametrize(
    "answers",
    [
        {"reset_prefix_cache": (500, b"broken")},
        {"reset_prefix_cache": (200, b'{"success": false}')},
        {"flush_cache": (400, b"Flush cache failed.")},
        LLAMA_CPP | {"slots_1": (500, b"")},
    ],
)
async def test_a_cache_that_is_not_emptied_is_refused(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, bytes]]
) -> None:
    Engine(monkeypatch, **answers)
    with pytest.raises(BadInput, match=r"POST http://a:1/.* answers"):
        await empty()
