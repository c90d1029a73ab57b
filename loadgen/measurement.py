"""Measurement: the part of a run that happens on the clock, inside one event loop."""

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from loadgen import garbage, pool, recorders, requests, sources
from loadgen.balancer import Balancer
from loadgen.beside import beside
from loadgen.capture import Capture
from loadgen.client import Client
from loadgen.clock import in_line, now_ns
from loadgen.cost import Cost
from loadgen.ending import Ending
from loadgen.errors import BadInput
from loadgen.heading import Heading
from loadgen.load import Load
from loadgen.outcomes import Outcome
from loadgen.placement import apart
from loadgen.recorder import Recorder
from loadgen.records import RecordWriter
from loadgen.rehearsal import Rehearsal
from loadgen.requests import Requests
from loadgen.schedule import Schedule
from loadgen.scraper import Order
from loadgen.scraping import Scraping
from loadgen.settings import BALANCE, RunSettings, seed_of
from loadgen.snapshot import LOOP_WAITS, Snapshot
from loadgen.sources import Sources
from loadgen.target import Target
from loadgen.telemetry import Telemetry
from loadgen.transport import Timeouts, Transport
from loadgen.wire import Poll

LEAD_NS = 20_000_000  # between "ready" and the first due time
FLUSH_S = 1.0  # so much of a run may be lost when its process is killed
JOURNAL_BYTES = 1 << 28


@dataclass(frozen=True)
class Job:
    """What one measuring process has to do.

    Attributes:
        heading: What the run is: its settings, checked and resolved, and where all else comes from but the prompts.
        targets: Where to ask: one, or several that share the requests.
        folder: Where the requests were written.
        engine_pids: The processes of engines that were started for the run.
        journal: Where records are written when the settings name no file, so that a run that dies leaves them.
        scraping: Who is to be asked of itself meanwhile, or None.
    """

    heading: Heading
    targets: tuple[Target, ...]
    folder: Path
    engine_pids: tuple[int, ...] = ()
    journal: Path | None = None
    scraping: Order | None = None

    @property
    def settings(self) -> RunSettings:
        """The run's settings."""
        return self.heading.settings


@dataclass(frozen=True)
class Measured:
    """What one measuring process brings back.

    Attributes:
        snapshot: The numbers.
        schedule_sha256: Of the schedule it carried out.
        client: What the measuring cost and met.
        telemetry: What servers and GPUs said meanwhile.
    """

    snapshot: Snapshot
    schedule_sha256: str
    client: Client
    telemetry: Telemetry = Telemetry()


@dataclass(frozen=True)
class Progress:
    """How far a run is; while preparing, `ended` counts the requests that are ready."""

    phase: str  # starting an engine, waiting for a server, preparing, connecting, warming up, running or draining
    elapsed_s: float = 0.0
    scheduled: int = 0  # 0 where time alone bounds the run
    in_flight: int = 0
    ended: int = 0
    ok: int = 0
    output_tokens: int = 0
    note: str = ""  # what the engine said last, or why the server is waited for
    usual_s: float | None = None  # that this engine takes to start


class Measurement:
    """One job, carried out by `run()`; the other methods may be called in its loop meanwhile.

    Args:
        job: What to do.
        prepared: Awaited, once connections are open, until the requests lie in the job's folder.
        linger_ns: For how long the loop's other work may be kept waiting, as for a `Poll`.
    """

    def __init__(self, job: Job, prepared: Awaitable[None], linger_ns: int = 0) -> None:
        self.job, self._prepared = job, prepared
        self._poll, limits = Poll(linger_ns), timeouts(job.settings)
        own = sources.parse(job.settings.source_address)
        self._transports = [Transport(target, limits, self._poll, Sources(own)) for target in job.targets]
        self._transport = _shared(self._transports, job.settings)
        self._phase = "connecting"
        self._stopped: str | None = None
        self._recorder: Recorder | None = None
        self._load: Load | None = None
        self._telemetry = Telemetry()

    async def run(self) -> Measured:
        """Open the pool, rehearse, send on the clock, drain, and put everything away.

        Raises:
            Unreachable: The test request, where one was asked for, did not succeed in time.
        """
        settings = self.job.settings
        seed = seed_of(settings, "arrivals")
        expected = None if settings.timed_by_data else Schedule.from_settings(settings, seed)
        if expected:
            pool.check_limits(settings, expected)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._transport.close)
            await self._transport.open()
            if expected:
                # While requests are being prepared: what they need however short they turn out to be.
                await self._transport.warm(pool.warm_count(settings, expected, output_tokens=1))
            scraping = await stack.enter_async_context(Scraping(self.job.scraping))
            await self._prepared
            schedule = Schedule.from_settings(settings, seed, requests.asked(self.job.folder))
            pool.check_limits(settings, schedule)
            if isinstance(self._transport, Balancer):
                self._transport.follow(schedule)
            with (
                Requests(self.job.folder) as asked,
                self._writer() as writer,
                Capture.optional(settings.capture, self.job.targets) as capture,
            ):
                pool.warn_of_limits(settings, schedule, asked.output_tokens)
                self._phase = "warming up"
                for number, transport in enumerate(self._transports):
                    rehearsal = Rehearsal(transport, asked, lambda: self._stopped is not None)
                    await rehearsal.check_ready(settings.ready_check_timeout_sec)
                    share = len(range(number, settings.num_warmups, len(self._transports)))
                    await rehearsal.warm_up(share, settings.max_concurrency)
                await scraping.first()
                # again: a server may have closed what lay idle
                warm = await self._transport.warm(pool.warm_count(settings, schedule, asked.output_tokens))
                client = await self._on_the_clock(schedule, asked, writer, capture, scraping, warm)
                if capture:
                    await asyncio.to_thread(capture.close)  # seconds of it, and the loop may be the caller's
                    client = replace(client, capture=capture.about())
                assert self._recorder is not None
                return Measured(self._recorder.snapshot(self._stopped), schedule.sha256, client, self._telemetry)

    def stop(self, reason: str) -> None:
        """Send nothing more, and let what is in flight end."""
        if self._stopped is None:
            self._stopped = reason
            if self._load is not None:
                self._load.stop(reason)

    def abort(self, reason: str) -> None:
        """Send nothing more, and end what is in flight as cancelled."""
        self.stop(reason)
        self._transport.abandon(Outcome.CANCELLED, reason)

    def progress(self) -> Progress:
        """How far it is; cheap enough for several times a second."""
        if self._recorder is None or self._load is None:
            return Progress(self._phase)
        return Progress(
            "draining" if self._load.draining else "running",
            max(0.0, (now_ns() - self._recorder.start_ns) / 1e9),
            0 if self._load.bounded_by_time else self._recorder.scheduled,
            self._load.in_flight,
            self._load.ended,
            self._load.ended - self._recorder.failed,
            self._recorder.output_tokens,
        )

    def _count_tokens(self, texts: list[str]) -> list[int] | None:
        """The tokens of texts by the run's tokenizer; None where it cannot be had."""
        from loadgen.datasets import tokenizer

        try:
            return tokenizer.of_settings(self.job.settings).count(texts)
        except BadInput:
            return None

    def _writer(self) -> AbstractContextManager[RecordWriter | None]:
        if self.job.settings.records or self.job.journal is None:
            return RecordWriter.optional(self.job.settings.records)
        return RecordWriter.optional(self.job.journal, JOURNAL_BYTES)

    async def _on_the_clock(
        self,
        schedule: Schedule,
        asked: Requests,
        writer: RecordWriter | None,
        capture: Capture | None,
        scraping: Scraping,
        warm: int,
    ) -> Client:
        """Carry out the schedule over `warm` open connections; returns what the measuring cost."""
        settings = self.job.settings
        heading = self.job.heading.with_requests(requests.about(self.job.folder), schedule.about())
        sources = asked.sources() if settings.records else []
        with garbage.frozen():  # first: it takes its time, and the clock must not
            start_ns = now_ns() + LEAD_NS
            self._recorder = recorder = recorders.of(settings, start_ns, schedule.count)
            recorder.counters["warm_connections"] = warm
            if writer:
                writer.begin(heading, start_ns, schedule.count, sources, requests.asked(self.job.folder))
            if capture:
                capture.start_ns = start_ns
                self._transport.tap(capture)
            self._load = load = Load(
                settings,
                self._transport,
                asked,
                recorder,
                schedule.due_ns,
                np.arange(schedule.count),
                in_line(self._poll),
                on_record=writer.write if writer else None,
                count_tokens=self._count_tokens,
            )
            if self._stopped is not None:
                load.stop(self._stopped)
            cost = Cost(self.job.engine_pids)
            simulator_pids = self.job.engine_pids if self.job.heading.simulated else ()
            with apart(simulator_pids), garbage.pauses(recorder.histograms["gc_pause"].record):
                async with beside(*([_flush(writer)] if writer else [])):
                    await load.run()
            client = replace(cost.so_far(), connections_reused=self._transport.reuses)
        await scraping.last()
        self._telemetry = Telemetry.left_in(self.job.folder, start_ns)
        await load.count()
        if writer:
            writer.end(
                Ending(
                    scheduled=recorder.scheduled,
                    never_sent=recorder.never_sent,
                    warm_connections=warm,
                    tokenized=load.tokenized,
                    partial=self._stopped,
                    client=client,
                    histograms={name: recorder.histograms[name] for name in LOOP_WAITS},
                    telemetry=self._telemetry,
                )
            )
            writer.close()
        return replace(client, records_error=writer.error) if writer else client


async def _flush(writer: RecordWriter) -> None:
    while True:
        await asyncio.sleep(FLUSH_S)
        writer.flush()


def _shared(transports: list[Transport], settings: RunSettings) -> Transport | Balancer:
    return transports[0] if len(transports) == 1 else Balancer(transports, settings.balance or BALANCE)


def timeouts(settings: RunSettings) -> Timeouts:
    """The settings' timeouts in ns."""
    seconds = (settings.connect_timeout, settings.first_token_timeout, settings.stall_timeout, settings.timeout)
    return Timeouts(*(int(s * 1e9) for s in seconds))
