"""Servers with good and bad metrics: a run goes on, and keeps or ignores what they report."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil
import pytest

import loadgen
from loadgen import report
from loadgen.engines.sim.http1 import whole
from loadgen.runner.run_result import Result
from loadgen.testing.replies import DONE, delta, models, streamed, usage
from tests.helpers.repeated import Repeated
from tests.helpers.scripted_server import read_request, serving

GOOD = streamed(
    delta(content="a") + delta(content="b") + delta("stop") + usage(completion_tokens=2) + DONE
)
MINE = Repeated(loadgen.Prompt("Hello", 1, 2, "mine"))
# Long enough that a scrape or two fall between the first and the last.
SETTINGS = loadgen.RunSettings(
    backend="openai-chat",
    num_prompts=16,
    request_rate=10,
    burstiness=float("inf"),
    preflight=False,
)
BRIEF = SETTINGS.replace(num_prompts=3, request_rate=200)
LONG = SETTINGS.replace(num_prompts=36)  # so that the server is asked while it goes on too
Tells = Callable[[asyncio.StreamWriter], Awaitable[None]]
KEY = "sk-Zq3vN8wT1yB6mR4x"


def text(body: str, status: int = 200) -> bytes:
    return whole(status, body.encode(), kind="text/plain; version=0.0.4")


class Telling:
    """A server of the model `m` that counts what it serves, and tells it at /metrics.

    Attributes:
        requests: How many were answered.
        scrapes: How often it was asked of itself.
        heads: Of these questions.
        tells: What it then says instead of its counts, from the `after`th time on.
    """

    def __init__(self, tells: bytes | Tells | None = None, after: int = 0) -> None:
        self.requests = self.scrapes = 0
        self.heads: list[bytes] = []
        self._tells, self._after = tells, after

    def counts(self) -> str:
        return (
            f'vllm:request_success_total{{model_name="\x1b[31mm",finished_reason="stop"}} '
            f"{self.requests}\n"
            f"vllm:generation_tokens_total {2 * self.requests}\n"
            "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
        )

    async def metrics(self, writer: asyncio.StreamWriter) -> None:
        self.scrapes += 1
        if self._tells is None or self.scrapes <= self._after:
            writer.write(text(self.counts()))
        elif isinstance(self._tells, bytes):
            writer.write(self._tells)
        else:
            await self._tells(writer)

    async def script(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while ask := await read_request(reader):
            if ask.path == "/metrics":
                self.heads.append(ask.head)
                await self.metrics(writer)
            elif ask.method == "GET":
                writer.write(whole(200 if ask.path == "/v1/models" else 404, models("m")))
            else:
                self.requests += 1
                writer.write(GOOD)
            await writer.drain()


@contextlib.asynccontextmanager
async def run(server: Telling, settings: loadgen.RunSettings = SETTINGS) -> AsyncIterator[Result]:
    """A run against the server; its requests all end well."""
    async with serving(server.script) as url:
        result = await loadgen.run(settings.replace(base_url=url), dataset=MINE)
    assert result.data["completed"] == settings.num_prompts
    yield result


def said(result: Result):
    return result.data["loadgen"]["server"]


def state(result: Result, name: str):
    return next(check["ok"] for check in result.data["loadgen"]["checks"] if check["name"] == name)


async def hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.05)


async def fifty_megabytes(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
    line = b'vllm:num_requests_running{engine="0"} 1\n' * 25_000
    for _ in range(50):
        writer.write(line)
        await writer.drain()


HTML = whole(200, b"<!DOCTYPE html><html><body>404</body></html>", kind="text/html")
USELESS: dict[str, bytes | Tells] = {
    "status 404": text("", 404),
    "status 500": text("vllm:num_requests_running 5\n", 500),
    "html": HTML,
    "json": whole(200, b'{"a": 1}'),
    "redirect": whole(302, b"", "Location: /other"),
    "50 MB": fifty_megabytes,
    "nothing": text(""),
}


async def test_differences_are_exactly_of_the_run_without_what_came_before() -> None:
    server = Telling()
    async with run(server, LONG.replace(num_warmups=5, ready_check_timeout_sec=5)) as result:
        found = said(result)
    assert server.requests == 36 + 5 + 1
    assert found["counts"]["requests"] == 36
    assert found["output_tokens"] == {"server": 72, "ours": 72}
    assert found["covers_run"]
    (source,) = found["sources"]
    first, *ticks, last = source["moments"]
    assert (first, set(ticks), last) == ("first", {"tick"}, "last"), "a slow machine has more ticks"
    assert source["at_s"][0] < 0 < 3.5 <= source["at_s"][-1]
    assert source["at_s"][1] - source["at_s"][0] >= 0.9
    assert source["failed"] == [None] * len(source["moments"])
    assert state(result, "other clients") is True
    assert state(result, "tokens differ from the server's") is True


async def test_server_text_on_the_console_is_escaped() -> None:
    async with run(Telling(), BRIEF) as result:
        assert "Server metrics" in report.render(result)
        assert "\x1b" not in report.render(result)
        assert "\x1b" not in repr(said(result))


@pytest.mark.parametrize("tells", USELESS.values(), ids=USELESS)
async def test_server_without_metrics_is_measured(tells: bytes | Tells) -> None:
    async with run(Telling(tells), BRIEF) as result:
        assert said(result) is None
        assert "Server metrics" not in report.render(result)


@pytest.mark.parametrize("tells", [hang, drip], ids=["hangs", "drips"])
async def test_a_server_that_does_not_end_its_answer_is_waited_for_a_little(
    tells: Tells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadgen.runner.metrics_scraper_main.PATIENCE_S", 0.2)
    async with run(Telling(tells), BRIEF) as result:
        assert said(result) is None


@pytest.mark.parametrize("tells", [*USELESS.values(), hang], ids=[*USELESS, "hangs"])
async def test_given_url_without_metrics_is_refused_before_requests(
    tells: bytes | Tells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadgen.runner.metrics_scraper_main.PATIENCE_S", 0.2)
    server = Telling(tells)
    async with serving(server.script) as url:
        settings = BRIEF.replace(base_url=url, server_metrics=(f"{url}/metrics",))
        with pytest.raises(loadgen.BadInput) as refused:
            await loadgen.run(settings, dataset=MINE)
    assert str(refused.value).startswith(f"server_metrics: {url}/metrics")
    assert "\n" not in str(refused.value)
    assert server.requests == 0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("ftp://h/metrics",), "invalid http or https URL 'ftp://h/metrics'"),
        (("http://u:p@h/metrics",), "'http://(given)@h/metrics' has a user in it"),
        (("metrics",), "invalid http or https URL 'metrics'"),
        (("http://h:x/metrics",), "invalid http or https URL 'http://h:x/metrics'"),
        (("auto", "off"), "auto beside other values"),
        (("off", "http://h/metrics"), "off beside other values"),
    ],
)
async def test_invalid_metrics_url_is_refused(given: tuple[str, ...], problem: str) -> None:
    server = Telling()
    async with serving(server.script) as url:
        with pytest.raises(loadgen.BadInput) as refused:
            await loadgen.run(BRIEF.replace(base_url=url, server_metrics=given), dataset=MINE)
    assert refused.value.problem == problem
    assert server.requests == 0


async def test_off_scrapes_no_server() -> None:
    server = Telling()
    async with run(server, BRIEF.replace(server_metrics=("off",))) as result:
        assert said(result) is None
    assert server.scrapes == 0


BROKEN: dict[str, tuple[bytes | Tells, str]] = {
    "status 500": (text("", 500), "status 500"),
    "html": (whole(200, b"vllm:num_requests_running <br>", kind="text/html"), "unreadable"),
    "hangs": (hang, "no answer"),
    "50 MB": (fifty_megabytes, "no answer"),
}


@pytest.mark.parametrize(("tells", "why"), BROKEN.values(), ids=BROKEN)
async def test_failed_scrapes_under_load_are_counted_not_compared(
    tells: bytes | Tells, why: str
) -> None:
    # One answer to see whether it tells, and the first one of the run.
    server = Telling(tells, after=2)
    async with run(server) as result:
        failed = said(result)["sources"][0]["failed"]
    assert failed[0] is None
    assert failed[-1] == why
    assert not said(result)["covers_run"]
    assert f"{sum(map(bool, failed))} failed" in report.render(result)
    assert state(result, "tokens differ from the server's") is None


async def test_numbers_that_are_none_are_left_out() -> None:
    nan = text(
        "vllm:generation_tokens_total NaN\nvllm:num_requests_running "
        "+Inf\nvllm:request_success_total 7\n"
    )
    async with run(Telling(nan), BRIEF) as result:
        found = said(result)
    assert found["counts"] == dict.fromkeys(found["counts"]) | {"requests": 0}
    assert found["levels"]["running"] == {"mean": None, "max": None}


async def test_a_server_that_starts_again_under_load_is_told_from_one_that_goes_on() -> None:
    class Restarted(Telling):
        def counts(self) -> str:
            if self.scrapes == 3:
                self.requests = 0
            return super().counts()

    async with run(Restarted(), SETTINGS.replace(num_warmups=5)) as result:
        assert said(result)["restarts"] == 1
    assert state(result, "server counters reset") is False
    assert result.verdict == "SUSPECT"


async def test_metrics_that_appear_late_count_from_zero() -> None:
    class Late(Telling):
        def counts(self) -> str:
            return super().counts() if self.requests else "up 1\n"

    async with run(Late(), BRIEF) as result:
        assert said(result)["counts"]["requests"] == 3


@pytest.mark.parametrize(("busy", "times"), [(2, 3), (99, 5)])
async def test_a_server_that_is_not_done_yet_is_asked_again_a_few_times(
    busy: int, times: int
) -> None:
    class Slow(Telling):
        left = busy

        def counts(self) -> str:
            told = super().counts()
            if self.requests < BRIEF.num_prompts or not self.left:
                return told
            self.left -= 1
            return told.replace("running 0", "running 1").replace(f" {self.requests}\n", " 1\n")

    async with run(Slow(), BRIEF) as result:
        moments = said(result)["sources"][0]["moments"]
        assert moments[0] == "first"
        # On a slow machine, ticks may ask after the last request too, and then be told that it is
        # not done yet.
        ticks = moments.count("tick") if busy < times else 0
        assert times - ticks <= moments.count("last") <= times
        assert said(result)["counts"]["requests"] == (3 if busy < times else 1)


async def test_a_server_counts_what_others_ask_too_and_the_check_says_so() -> None:
    class Shared(Telling):
        def counts(self) -> str:
            self.requests += 10
            return super().counts()

    async with run(Shared(), BRIEF) as result:
        assert state(result, "other clients") is False
        assert state(result, "tokens differ from the server's") is None


async def test_credentials_go_to_the_server_that_they_are_for_alone() -> None:
    own, other = Telling(), Telling()
    async with serving(own.script) as url, serving(other.script) as elsewhere:
        settings = BRIEF.replace(base_url=url, api_key=KEY, header=("X-Tenant=secret-tenant",))
        urls = (f"{url}/metrics", f"{elsewhere}/metrics")
        result = await loadgen.run(settings.replace(server_metrics=urls), dataset=MINE)
    assert [source["url"] for source in said(result)["sources"]] == list(urls)
    assert all(KEY.encode() in head and b"secret-tenant" in head for head in own.heads)
    assert other.heads
    assert not any(KEY.encode() in head or b"secret-tenant" in head for head in other.heads)
    assert KEY not in repr(result.data)


async def test_several_sources_are_asked_at_the_same_times() -> None:
    own, other = Telling(), Telling()
    async with serving(own.script) as url, serving(other.script) as elsewhere:
        settings = BRIEF.replace(
            base_url=url, server_metrics=(f"{url}/metrics", f"{elsewhere}/metrics")
        )
        result = await loadgen.run(settings, dataset=MINE)
    a, b = said(result)["sources"]
    assert a["moments"] == b["moments"]
    assert said(result)["counts"]["requests"] == 3
    assert f"(2 sources; {2 * len(a['moments'])} scrapes)" in report.render(result)


async def test_killed_scraper_loses_only_later_scrapes() -> None:
    server = Telling()

    async def kill() -> None:
        while (
            server.scrapes < 3
        ):  # it asks in turn: the first answer is written before the next question
            await asyncio.sleep(0.01)
        (scraper,) = (
            one
            for one in psutil.Process().children()
            if "loadgen.runner.metrics_scraper_main" in one.cmdline()
        )
        scraper.kill()

    async with serving(server.script) as url:
        result, _ = await asyncio.gather(
            loadgen.run(LONG.replace(base_url=url), dataset=MINE), kill()
        )
    assert result.data["completed"] == LONG.num_prompts
    assert said(result)["sources"][0]["moments"][0] == "first"
    assert not said(result)["covers_run"]


async def test_a_cancelled_run_leaves_no_scraper() -> None:
    server = Telling()
    async with serving(server.script) as url:
        running = asyncio.ensure_future(loadgen.run(SETTINGS.replace(base_url=url), dataset=MINE))
        while server.scrapes < 2:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert not [
        one
        for one in psutil.Process().children()
        if "loadgen.runner.metrics_scraper_main" in one.cmdline()
    ]


NVML = """
class NVMLError(Exception):
    pass


class Told:
    gpu, used = 50, 10**9


NVML_CLOCK_SM = 1
nvmlInit = nvmlShutdown = lambda: None
nvmlDeviceGetCount = lambda: 2
nvmlDeviceGetHandleByIndex = lambda index: index
nvmlDeviceGetName = lambda gpu: f"fake \\x1b[31m {gpu}"
nvmlDeviceGetPowerUsage = lambda gpu: 100_000 * (gpu + 1)
nvmlDeviceGetClockInfo = lambda gpu, which: 1200
nvmlDeviceGetUtilizationRates = nvmlDeviceGetMemoryInfo = lambda gpu: Told
"""


async def test_gpus_of_this_machine_are_read_at_the_same_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text(NVML)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with run(Telling()) as result:
        found = said(result)
    assert len(found["gpus"]) == 2
    assert found["gpus"][1]["series"]["power_w"] == [200.0] * len(found["sources"][0]["at_s"])
    assert found["gpus"][0]["at_s"] == pytest.approx(found["sources"][0]["at_s"], abs=0.1)
    assert "GPUs (2): 300 W on average, 50% busy, 1200 MHz, 2.0 GB in use" in report.render(result)
    assert "\x1b" not in report.render(result)


async def test_gpus_are_read_without_server_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text(NVML)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with run(Telling(HTML), BRIEF) as result:
        assert said(result)["sources"] == []
        assert "GPUs (2)" in report.render(result)
        assert "Server metrics" not in report.render(result)
