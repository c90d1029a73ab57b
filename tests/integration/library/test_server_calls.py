"""Calls to a real server: its cache is emptied and its profiler runs while it is measured."""

import asyncio

import pytest

import loadgen
from loadgen import report
from loadgen.engines.sim.http1 import Request, whole
from loadgen.testing.replies import models
from tests.helpers.response_bytes import answer, streamed
from tests.helpers.scripted_server import Script, chatting, read_request, serving

SETTINGS = loadgen.RunSettings(
    backend="openai-chat", tokenizer="none", dataset_name="prose", num_prompts=3, preflight=False
)
GOOD = streamed(answer("Hello", " world"))


class Log:
    """Answers calls by their path, and keeps the paths."""

    def __init__(self, **statuses: int) -> None:
        self.paths: list[str] = []
        self._statuses = statuses

    def reply(self, request: Request) -> bytes:
        self.paths.append(request.path)
        if request.path == "/v1/chat/completions":
            return GOOD
        return whole(self._statuses.get(request.path[1:], 200), models("m"))


@pytest.fixture
def settings(tmp_path) -> loadgen.RunSettings:
    path = tmp_path / "prompts.jsonl"
    path.write_text(
        '{"prompt": "One", "output_tokens": 2}\n{"prompt": "Two", "output_tokens": 2}\n'
    )
    return SETTINGS.replace(dataset_name="jsonl", dataset_path=str(path), num_prompts=2)


async def test_calls_surround_the_requests_and_stand_in_the_result(settings) -> None:
    log = Log()
    async with serving(chatting(log.reply)) as url:
        result = await loadgen.run(
            settings.replace(base_url=url, profile=True, call_before=("/reset_mm_cache",))
        )
    chat = ["/v1/chat/completions"] * 2
    assert log.paths == ["/reset_mm_cache", "/start_profile", *chat, "/stop_profile"]
    assert [(call.moment, call.url.removeprefix(url)) for call in result.server_calls] == [
        ("before", "/reset_mm_cache"),
        ("before", "/start_profile"),
        ("after", "/stop_profile"),
    ]
    called = (
        "Calls to the server: /reset_mm_cache and /start_profile before the run, "
        "/stop_profile after the run"
    )
    assert called in " ".join(report.render(result).split())


async def test_a_server_without_a_profiler_refuses_the_run_before_any_request(settings) -> None:
    log = Log(start_profile=404)
    async with serving(chatting(log.reply)) as url:
        with pytest.raises(loadgen.BadInput, match="/start_profile answers 404"):
            await loadgen.run(settings.replace(base_url=url, profile=True))
    assert log.paths == ["/start_profile"]


async def test_a_profiler_that_does_not_stop_is_a_note(settings) -> None:
    log = Log(stop_profile=500)
    async with serving(chatting(log.reply)) as url:
        result = await loadgen.run(settings.replace(base_url=url, profile=True))
    assert result.numbers.completed == 2
    assert [note.name for note in result.notes if "call" in note.name] == ["server call failed"]


async def test_calls_are_kept_in_the_records(settings, tmp_path) -> None:
    records = tmp_path / "records.jsonl"
    async with serving(chatting(Log().reply)) as url:
        result = await loadgen.run(
            settings.replace(base_url=url, profile=True, records=str(records))
        )
    assert loadgen.from_records(records).server_calls == result.server_calls


def busy(log: Log, running: int) -> Script:
    """Answers like `chatting`, and reports that it runs so many requests."""
    text = (
        f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running {running}.0\n".encode()
    )

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while ask := await read_request(reader):
            if ask.path == "/metrics":
                writer.write(whole(200, text, kind="text/plain; version=0.0.4"))
            elif ask.method == "GET":
                writer.write(whole(200 if ask.path == "/v1/models" else 404, models("m")))
            else:
                if ask.path == "/v1/chat/completions":
                    while not log.paths and running >= 8:  # until the profiler has started
                        await asyncio.sleep(0.01)
                writer.write(log.reply(ask))
            await writer.drain()

    return script


BUSY = {"profile": True, "profile_batch_threshold": 8, "profile_duration": 0.01}


async def test_the_profiler_starts_when_the_metrics_say_that_enough_requests_run(settings) -> None:
    log = Log()
    async with serving(busy(log, 8)) as url:
        result = await loadgen.run(settings.replace(base_url=url, **BUSY))
    assert (log.paths[0], log.paths.count("/stop_profile")) == ("/start_profile", 1)
    assert result.server_calls[0].moment == "during"


async def test_a_run_that_is_never_busy_enough_says_so(settings) -> None:
    log = Log()
    async with serving(busy(log, 7)) as url:
        result = await loadgen.run(settings.replace(base_url=url, **BUSY))
    assert result.server_calls == []
    assert "profiler not started" in [note.name for note in result.notes]


async def test_a_threshold_without_metrics_is_refused(settings) -> None:
    async with serving(chatting(Log().reply)) as url:
        with pytest.raises(loadgen.BadInput, match="no server reports how many requests it runs"):
            await loadgen.run(settings.replace(base_url=url, **BUSY))
