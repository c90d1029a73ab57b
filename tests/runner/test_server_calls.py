"""Calls to the servers beside the load: own paths, the profiler, and the one that empties a
prefix cache.
"""

import asyncio
from typing import Any

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, Unreachable
from loadgen.metrics.records.trailer import ServerCall
from loadgen.runner import server_calls
from loadgen.runner.server_calls import ServerCalls
from loadgen.util import http_client
from loadgen.util.http_client import Reply

ONE = RunSettings(base_url="http://a:1")
TWO = RunSettings(base_url=("http://a:1", "http://b:2"))


class Servers:
    """Takes the place of all servers: keeps what they are sent, and answers 200 unless told
    otherwise.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.bodies: dict[str, bytes] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.refuse: dict[str, int | Exception] = {}

    async def send(self, url: str, body: bytes, *, headers: dict[str, str], **others: Any) -> Reply:
        self.log.append(url.removeprefix("http://"))
        self.bodies[url], self.headers[url] = body, headers
        answer = self.refuse.get(url.removeprefix("http://"), 200)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, b"no such\npath", {})


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    made = Servers()
    monkeypatch.setattr(http_client, "send_json", made.send)
    return made


async def run(servers: Servers, settings: RunSettings) -> list[ServerCall]:
    async with ServerCalls(settings, None) as calls:
        servers.log.append("run")
    return calls.made


async def test_nothing_is_called_unless_it_is_asked_for(servers: Servers) -> None:
    assert await run(servers, ONE) == []
    assert servers.log == ["run"]


async def test_the_profiler_starts_before_the_run_and_stops_after_it(servers: Servers) -> None:
    made = await run(servers, ONE.replace(profile=True))
    assert servers.log == ["a:1/start_profile", "run", "a:1/stop_profile"]
    assert [(call.moment, call.error) for call in made] == [("before", None), ("after", None)]
    assert servers.bodies["http://a:1/start_profile"] == b""


async def test_calls_before_the_run_precede_the_profiler_on_every_server(servers: Servers) -> None:
    await run(servers, TWO.replace(profile=True, call_before=("/reset_mm_cache",)))
    assert servers.log[:4] == [
        *("a:1/reset_mm_cache", "b:2/reset_mm_cache"),
        *("a:1/start_profile", "b:2/start_profile"),
    ]
    assert sorted(servers.log[5:]) == ["a:1/stop_profile", "b:2/stop_profile"]


@pytest.mark.parametrize("field", ["num_steps", "max_iterations"])
async def test_a_profiler_with_a_number_of_steps_stops_by_itself(
    servers: Servers, field: str
) -> None:
    await run(servers, ONE.replace(profile=True, profile_body={field: 5}))
    assert servers.log == ["a:1/start_profile", "run"]
    assert servers.bodies["http://a:1/start_profile"] == f'{{"{field}":5}}'.encode()


async def test_the_profilers_of_other_servers_get_no_credentials(servers: Servers) -> None:
    settings = ONE.replace(
        profile=True, profile_url=("http://p:7/", "http://a:1"), api_key="sk-0123456789"
    )
    await run(servers, settings)
    assert servers.log[:2] == ["p:7/start_profile", "a:1/start_profile"]
    assert servers.headers["http://p:7/start_profile"] == {}
    assert servers.headers["http://a:1/start_profile"] == {"Authorization": "Bearer sk-0123456789"}


@pytest.mark.parametrize(
    ("settings", "path", "field"),
    [
        (ONE.replace(profile=True), "/start_profile", "--profile"),
        (ONE.replace(call_before=("/reset_mm_cache",)), "/reset_mm_cache", "--call-before"),
        (
            ONE.replace(call_before=("/slots/0?action=erase",)),
            "/slots/0?action=erase",
            "--call-before",
        ),
    ],
)
async def test_a_refused_call_before_the_run_refuses_the_run(
    servers: Servers, settings: RunSettings, path: str, field: str
) -> None:
    servers.refuse[f"a:1{path}"] = 404
    with pytest.raises(BadInput) as refused:
        await run(servers, settings)
    assert refused.value.field == field
    assert refused.value.problem == f"POST http://a:1{path} answers 404 (no such path)"
    assert "run" not in servers.log


async def test_a_server_that_does_not_answer_refuses_the_run(servers: Servers) -> None:
    servers.refuse["a:1/start_profile"] = Unreachable(
        "http://a:1/start_profile: no response in 3600 s"
    )
    with pytest.raises(BadInput, match=r"POST http://a:1/start_profile: no response"):
        await run(servers, ONE.replace(profile=True))


async def test_profilers_that_have_started_are_stopped_if_another_has_not(servers: Servers) -> None:
    servers.refuse["b:2/start_profile"] = 500
    with pytest.raises(BadInput):
        await run(servers, TWO.replace(profile=True))
    assert servers.log == ["a:1/start_profile", "b:2/start_profile", "a:1/stop_profile"]


async def test_a_refused_stop_is_kept_and_the_run_stands(servers: Servers) -> None:
    servers.refuse["a:1/stop_profile"] = 500
    _, stop = await run(servers, ONE.replace(profile=True))
    assert stop.error == "http://a:1/stop_profile answers 500 (no such path)"


async def test_the_profiler_is_stopped_if_the_run_fails(servers: Servers) -> None:
    with pytest.raises(Unreachable):
        async with ServerCalls(ONE.replace(profile=True), None):
            raise Unreachable("gone")
    assert servers.log == ["a:1/start_profile", "a:1/stop_profile"]


class TestWhenBusy:
    """--profile-batch-threshold."""

    SETTINGS = ONE.replace(profile=True, profile_batch_threshold=8, profile_duration=0.001)

    @pytest.fixture(autouse=True)
    def poll(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server_calls, "POLL_S", 0)

    async def turns(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def test_the_profiler_starts_when_enough_requests_run_and_stops_by_its_time(
        self, servers: Servers
    ) -> None:
        running: list[float | None] = [None, 3.0, 8.0]

        async with ServerCalls(
            self.SETTINGS, lambda: running.pop(0) if len(running) > 1 else running[0]
        ) as calls:
            assert servers.log == []
            while len(calls.made) < 2:
                await asyncio.sleep(0.001)
        assert servers.log == ["a:1/start_profile", "a:1/stop_profile"]
        assert [call.moment for call in calls.made] == ["during", "during"]

    async def test_a_run_that_ends_sooner_stops_the_profiler(self, servers: Servers) -> None:
        async with ServerCalls(
            self.SETTINGS.replace(profile_duration=1000.0), lambda: 8.0
        ) as calls:
            await self.turns()
        assert servers.log == ["a:1/start_profile", "a:1/stop_profile"]
        assert [call.moment for call in calls.made] == ["during", "after"]

    async def test_a_run_that_is_never_busy_is_not_profiled(self, servers: Servers) -> None:
        async with ServerCalls(self.SETTINGS, lambda: 7.0) as calls:
            await self.turns()
        assert (servers.log, calls.made) == ([], [])

    async def test_a_server_without_metrics_is_refused(self, servers: Servers) -> None:
        with pytest.raises(BadInput, match="--profile-batch-threshold: no server reports"):
            await run(servers, self.SETTINGS)


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
        status, said = self._answers.get(
            path.split("?")[0].lstrip("/").replace("/", "_"), (404, b"no such path")
        )
        return Reply(status, said, {})


async def empty(settings: RunSettings = COLD) -> ServerCalls:
    """Empty the cache twice, as a run does: before its warm-up and before its clock."""
    calls = ServerCalls(settings, None)
    await calls.empty_caches()
    async with calls:
        return calls


VLLM = {"reset_prefix_cache": (200, b"")}
SGLANG = {"flush_cache": (200, b"Cache flushed.")}
LLAMA_CPP = {
    "slots": (200, SLOTS),
    "slots_0": (200, b'{"n_erased":5}'),
    "slots_1": (200, b'{"n_erased":0}'),
}
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
    posts = [
        each.removeprefix("POST ")
        for each in log
        if each not in (UNKNOWN if answers is not VLLM else [])
    ]
    assert {call.url.removeprefix("http://a:1") for call in made} >= set(posts)
    assert {(call.moment, call.error) for call in made} == {("before", None)}


async def test_nothing_is_called_unless_the_cache_is_to_be_cold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(monkeypatch, **VLLM)
    await empty(COLD.replace(cache="warm"))
    assert engine.log == []


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"slots": (200, SLOTS), "slots_0": (501, b"")},
        {"slots": (200, b"[]")},
        {"slots": (200, b"no JSON")},
    ],
    ids=["none", "llama.cpp without --slot-save-path", "no slots", "another /slots"],
)
async def test_a_server_without_such_a_call_is_refused(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, bytes]]
) -> None:
    Engine(monkeypatch, **answers)
    with pytest.raises(
        BadInput, match="http://a:1 has no call that empties its prefix cache"
    ) as refused:
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
