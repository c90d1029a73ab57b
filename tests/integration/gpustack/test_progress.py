"""Progress is sent to a job's URL by PATCH with its token, and never delays the job."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from loadgen.lab.gpustack.job import Job
from loadgen.lab.gpustack.job_runs import done
from loadgen.lab.gpustack.job_runs import too_many_errors as exceeded
from loadgen.lab.gpustack.progress import Receiver, Reporter
from loadgen.metrics.progress import Progress
from loadgen.util.tasks import background_tasks

BOUND_S = 20.0


class Listener:
    """A server that takes progress.

    Attributes:
        told: What it was told, in order.
        tokens: With which credentials.
        status: What it answers.
        reached: Whether anything has come.
        open: Whether the first that comes is taken.
    """

    def __init__(self) -> None:
        self.told: list[float] = []
        self.tokens: list[str | None] = []
        self.status, self.url = 200, ""
        self.heard = asyncio.Condition()
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self.open.set()

    async def take(self, request: web.Request) -> web.Response:
        if not self.reached.is_set():  # only the first one is held up
            self.reached.set()
            await self.open.wait()
        async with self.heard:
            self.told.append((await request.json())["progress"])
            self.tokens.append(request.headers.get("Authorization"))
            self.heard.notify_all()
        return web.Response(status=self.status)

    async def until(self, percent: float) -> None:
        async with self.heard, asyncio.timeout(BOUND_S):
            await self.heard.wait_for(lambda: percent in self.told)


@asynccontextmanager
async def listening(trust: ssl.SSLContext | None = None) -> AsyncIterator[Listener]:
    listener = Listener()
    application = web.Application()
    application.router.add_patch("/v2/benchmarks/7/state", listener.take)
    server = web.AppRunner(application)
    await server.setup()
    site = web.TCPSite(server, "127.0.0.1", 0, ssl_context=trust)
    await site.start()
    listener.url = (
        f"{'https' if trust else 'http'}://127.0.0.1:{server.addresses[0][1]}/v2/benchmarks/7/state"
    )
    yield listener
    await server.cleanup()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    async with listening() as made:
        yield made


async def test_progress_is_sent_with_the_token(listener: Listener) -> None:
    reporter = Reporter(Receiver(listener.url, token="secret"))
    async with background_tasks(reporter.run()):
        reporter.update(0)
        await listener.until(0)
        reporter.update(40)
        await listener.until(40)
    assert set(listener.tokens) == {"Bearer secret"}


async def test_without_a_token_none_is_sent(listener: Listener) -> None:
    await Reporter(Receiver(listener.url)).finish()
    assert (listener.told, listener.tokens) == ([100.0], [None])


async def test_only_the_end_is_told_as_a_hundred(listener: Listener) -> None:
    reporter = Reporter(Receiver(listener.url))
    async with background_tasks(reporter.run()):
        reporter.update(100)
        await listener.until(99.9)
    await reporter.finish()
    assert listener.told == [99.9, 100.0]


async def test_end_is_told_after_a_report_that_is_under_way(listener: Listener) -> None:
    listener.open.clear()
    reporter = Reporter(Receiver(listener.url))
    async with background_tasks(reporter.run()):
        reporter.update(40)
        await listener.reached.wait()
    asyncio.get_running_loop().call_later(0.2, listener.open.set)
    await reporter.finish()
    assert listener.told == [40, 100.0]


async def test_latest_of_simultaneous_updates_is_sent(listener: Listener) -> None:
    reporter = Reporter(Receiver(listener.url))
    async with background_tasks(reporter.run()):
        for percent in (1, 2, 3):
            reporter.update(percent)
        await listener.until(3)
    assert listener.told == [3]


async def test_refused_update_is_logged_and_raises_no_error(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    listener.status = 403
    with caplog.at_level(logging.WARNING):
        await Reporter(Receiver(listener.url, token="secret")).finish()
    assert "answered 403" in caplog.text
    assert "secret" not in caplog.text


async def test_unreachable_receiver_is_logged_and_raises_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        await Reporter(Receiver("http://127.0.0.1:1/state")).finish()
    assert (
        "progress could not be reported: http://127.0.0.1:1/state: no connection to 127.0.0.1:1"
        in caplog.text
    )


async def test_each_reason_is_said_once(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = Reporter(Receiver(listener.url))
    with caplog.at_level(logging.WARNING):
        for listener.status in (403, 403, 500, 403):
            await reporter.finish()
    assert [message.rpartition(" ")[2] for message in caplog.messages] == ["403", "500"]


class TestOverTls:
    @pytest.fixture
    async def secured(self, tmp_path: Path) -> AsyncIterator[Listener]:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(trust)
        async with listening(trust) as made:
            yield made

    async def test_certificates_of_an_own_authority_verify_the_receiver(
        self, secured: Listener, tmp_path: Path
    ) -> None:
        await Reporter(Receiver(secured.url, ca_cert=str(tmp_path / "ca.pem"))).finish()
        assert secured.told == [100.0]

    async def test_progress_is_not_sent_without_the_certificates(
        self, secured: Listener, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            await Reporter(Receiver(secured.url, token="secret")).finish()
        assert secured.told == []
        assert "progress could not be reported" in caplog.text

    async def test_progress_is_sent_if_verification_is_off(self, secured: Listener) -> None:
        await Reporter(Receiver(secured.url, insecure=True)).finish()
        assert secured.told == [100.0]


def progress(phase: str = "running", **counts: Any) -> Progress:
    return Progress(phase, **{"elapsed_s": 10.0, **counts})


class TestHowFarARunIs:
    def test_is_the_share_of_its_requests_that_have_ended(self) -> None:
        assert done(progress(scheduled=40, ended=10), None) == 0.25

    def test_or_of_its_time_whichever_is_further(self) -> None:
        assert done(progress(scheduled=40, ended=10), 20.0) == 0.5
        assert done(progress(), 20.0) == 0.5
        assert done(progress(elapsed_s=90.0), 20.0) == 1.0

    def test_prompts_that_are_ready_are_none_of_it(self) -> None:
        assert done(progress("preparing", scheduled=40, ended=40), None) == 0


class TestTooManyErrors:
    def test_a_number_is_reached(self) -> None:
        job = Job((), max_errors=3)
        assert exceeded(job, progress(ended=10, ok=8)) is None
        assert exceeded(job, progress(ended=10, ok=7)) == "3 requests failed, and --max-errors is 3"

    def test_a_share_is_passed_once_thirty_have_ended(self) -> None:
        job = Job((), max_error_rate=0.5)
        assert exceeded(job, progress(ended=29, ok=0)) is None
        assert exceeded(job, progress(ended=30, ok=15)) is None
        assert (
            exceeded(job, progress(ended=30, ok=14))
            == "16 of 30 requests failed, and --max-error-rate is 0.5"
        )

    def test_without_limits_all_may_fail(self) -> None:
        assert exceeded(Job(()), progress(ended=100, ok=0)) is None
