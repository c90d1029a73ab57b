"""Measurement: the part of a run that happens on the clock, inside one event loop."""

import asyncio
import gc
import math
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen import machine, slo
from loadgen.beside import beside
from loadgen.clock import now_ns
from loadgen.errors import Unreachable
from loadgen.outcomes import Outcome
from loadgen.pacer import Pacer
from loadgen.recorder import Recorder
from loadgen.records import RecordWriter
from loadgen.requests import Requests
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings, is_closed_loop, seed_of
from loadgen.snapshot import Snapshot
from loadgen.target import Target
from loadgen.transport import Timeouts, Transport
from loadgen.wire import Record

LEAD_NS = 20_000_000  # between "ready" and the first due time
HEARTBEAT_S = 0.02
GUESSED_LATENCY_S = 2.0  # for the size of the pool, when nothing says how long requests take
SPARE_FILES = 64
MOST_WARM = 4096


@dataclass(frozen=True)
class Job:
    """What one measuring process has to do.

    Attributes:
        settings: The run's settings, checked and resolved.
        target: Where to ask.
        folder: Where the requests were written.
        stripe: (i, n): of the run's requests, every n-th from the i-th.
        start_ns: When the clock starts, CLOCK_MONOTONIC; None: as soon as everything is ready.
        engine_pid: The process of an engine that was started for the run.
    """

    settings: RunSettings
    target: Target
    folder: Path
    stripe: tuple[int, int] = (0, 1)
    start_ns: int | None = None
    engine_pid: int | None = None


@dataclass(frozen=True)
class Measured:
    """What one measuring process brings back.

    Attributes:
        snapshot: The numbers.
        schedule_sha256: Of the whole schedule it drew its stripe from.
        client: What the measuring cost: wall_s, cpu_s, busy_share, disturbance.
    """

    snapshot: Snapshot
    schedule_sha256: str
    client: dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """How far a measurement is."""

    phase: str  # connecting, warming up, running or draining
    elapsed_s: float = 0.0
    scheduled: int = 0
    in_flight: int = 0
    ended: int = 0
    ok: int = 0
    output_tokens: int = 0


class Measurement:
    """One job, carried out by `run()`; the other methods may be called in its loop meanwhile.

    Args:
        job: What to do.
        prepared: Awaited, once connections are open, until the requests lie in the job's folder.
    """

    def __init__(self, job: Job, prepared: Awaitable[None]) -> None:
        self.job, self._prepared = job, prepared
        self.progress_phase = "connecting"
        self._recorder: Recorder | None = None
        self._stopped: str | None = None
        self._sent = 0
        self._never_sent = 0
        self._drained = asyncio.Event()
        self._gc_began = 0

    async def run(self) -> Measured:
        """Open the pool, wait for the clock, send, drain, and put everything away.

        Raises:
            Unreachable: The test request, where one was asked for, did not succeed in time.
        """
        settings = self.job.settings
        schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"))
        index, due = schedule.stripe(*self.job.stripe)
        self._transport = Transport(self.job.target, timeouts(settings), self._warm_up_ended)
        try:
            await self._transport.open()
            wanted = warm_count(settings, len(index))
            await self._transport.warm(wanted)  # while the requests are being prepared
            await self._prepared
            with Requests(self.job.folder) as self._requests, RecordWriter.optional(settings.records) as writer:
                sources = self._requests.sources() if writer else []
                await self._check_ready()
                await self._warm_up()
                warm = await self._transport.warm(wanted)  # again: a server may have closed what lay idle
                start_ns = self.job.start_ns or now_ns() + LEAD_NS
                self._recorder = Recorder(
                    start_ns,
                    len(index),
                    limits=slo.parse_goodput(settings.goodput),
                    from_due=settings.latency_from == "due",
                    detailed=settings.save_detailed,
                    on_record=(lambda record: writer.write(record, start_ns, sources)) if writer else None,
                )
                self._recorder.counters["warm_connections"] = warm
                client = await self._on_the_clock(self._recorder, start_ns, index, due)
                if writer:
                    writer.close()
                    client["records_error"] = writer.error
                return Measured(self.snapshot(), schedule.sha256, client)
        finally:
            await self._transport.close()

    def stop(self, reason: str) -> None:
        """Send nothing more, and let what is in flight end."""
        if self._stopped is None:
            self._stopped = reason
            if self._recorder is not None:
                self._forget(self._pacer.stop())

    def abort(self, reason: str) -> None:
        """Send nothing more, and end what is in flight as cancelled."""
        self.stop(reason)
        self._transport.abandon(Outcome.CANCELLED, reason)

    def snapshot(self) -> Snapshot:
        """What has been measured so far. Only after the clock has started."""
        assert self._recorder is not None
        return self._recorder.snapshot(self._stopped)

    def progress(self) -> Progress:
        """How far it is; cheap enough for several times a second."""
        recorder = self._recorder
        if recorder is None:
            return Progress(self.progress_phase)
        return Progress(
            self.progress_phase,
            max(0.0, (now_ns() - recorder.start_ns) / 1e9),
            recorder.scheduled,
            self._sent + self._never_sent - recorder.ended,
            recorder.ended,
            recorder.ok,
            recorder.counters["output_tokens"],
        )

    # -- before the clock --------------------------------------------------------------------------------

    async def _check_ready(self) -> None:
        """One real request must succeed, where --ready-check-timeout-sec asks for it."""
        limit_s = self.job.settings.ready_check_timeout_sec
        deadline = time.monotonic() + limit_s
        while limit_s:
            (record,) = await self._try(1)
            if record.outcome is Outcome.OK:
                return
            if time.monotonic() >= deadline or self._stopped:
                problem = f"{record.outcome} {record.detail or ''}".strip()
                raise Unreachable(
                    f"--ready-check-timeout-sec: no success in {limit_s:g} s at {self.job.target.url}: {problem}"
                )
            await asyncio.sleep(min(1.0, limit_s / 10))

    async def _warm_up(self) -> None:
        settings = self.job.settings
        left = settings.num_warmups
        self.progress_phase = "warming up"
        while left and not self._stopped:
            together = min(left, settings.max_concurrency or left)
            await self._try(together)
            left -= together

    async def _try(self, count: int) -> list[Record]:
        """Send the first `count` requests off the record and wait until they have ended."""
        self._warm_up_records: list[Record] = []
        self._warm_up_done = asyncio.Event()
        self._warm_up_wanted = count
        for number in range(count):
            record = Record(number, *self._requests.tokens(number), now_ns())
            record.ready = record.due
            self._transport.send(record, self._requests.body(number))
        await self._warm_up_done.wait()
        return self._warm_up_records

    def _warm_up_ended(self, record: Record) -> None:
        self._warm_up_records.append(record)
        if len(self._warm_up_records) == self._warm_up_wanted:
            self._warm_up_done.set()

    # -- on the clock ------------------------------------------------------------------------------------

    async def _on_the_clock(self, recorder: Recorder, start_ns: int, index: Any, due: Any) -> dict[str, Any]:
        settings = self.job.settings
        closed_loop = is_closed_loop(settings)
        self._transport.on_end = self._ended
        self._pacer = Pacer(
            start_ns + due,
            index,
            self._send,
            self._transport.bell,
            cap=_share(settings.max_concurrency, self.job.stripe),
            closed_loop=closed_loop,
            until_ns=start_ns + int(settings.duration * 1e9) if settings.duration and closed_loop else None,
        )
        gc.collect()
        gc.freeze()  # what exists by now is not looked at again by any collection during the run
        gc.callbacks.append(self._gc_paused)
        before, engine_before = machine.Busy.now(), machine.process_cpu_s(self.job.engine_pid)
        try:
            async with beside(self._beat(recorder)):
                await self._send_and_drain(recorder, len(index))
        finally:
            self._pacer.stop()  # where the caller has cancelled us
            gc.callbacks.remove(self._gc_paused)
            gc.unfreeze()
        after = machine.Busy.now()
        engine_s = machine.process_cpu_s(self.job.engine_pid) - engine_before
        wall_s, cpu_s = after.at_s - before.at_s, after.own_s - before.own_s
        return {
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "busy_share": cpu_s / wall_s if wall_s else 0.0,
            "peak_memory_bytes": machine.peak_memory_bytes(),
            "engine_cpu_s": engine_s if self.job.engine_pid else None,
            "connections_reused": self._transport.reuses,
            "disturbance": machine.disturbance(before, after, engine_s),
        }

    async def _send_and_drain(self, recorder: Recorder, count: int) -> None:
        self.progress_phase = "running"
        if self._stopped is None:
            self._pacer.start()
            await self._pacer.all_sent.wait()
            recorder.scheduled -= self._pacer.never_due
        else:
            self._forget(count)
        self.progress_phase = "draining"
        if recorder.ended < recorder.scheduled:
            await self._drained.wait()

    def _send(self, index: int, due_ns: int, ready_ns: int) -> None:
        record = Record(index, *self._requests.tokens(index), due_ns)
        record.ready = ready_ns
        self._sent += 1
        self._transport.send(record, self._requests.body(index))

    def _ended(self, record: Record) -> None:
        assert self._recorder is not None
        self._recorder.add(record)
        self._pacer.release()
        if self._pacer.all_sent.is_set() and self._recorder.ended == self._sent + self._never_sent:
            self._drained.set()

    def _forget(self, count: int) -> None:
        """Account for requests that are never sent because the run was stopped."""
        assert self._recorder is not None
        self._never_sent = count
        self._recorder.add_never_sent(count, Outcome.CANCELLED, self._stopped or "")
        if self._recorder.ended == self._sent + self._never_sent:
            self._drained.set()

    async def _beat(self, recorder: Recorder) -> None:
        """Measure how late the loop is to a regular appointment: what any stream may have to wait."""
        while True:
            wanted = now_ns() + int(HEARTBEAT_S * 1e9)
            await asyncio.sleep(HEARTBEAT_S)
            recorder.histograms["loop_stall"].record(max(0, now_ns() - wanted))

    def _gc_paused(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = now_ns()
        elif self._recorder is not None:
            self._recorder.histograms["gc_pause"].record(now_ns() - self._gc_began)


def timeouts(settings: RunSettings) -> Timeouts:
    """The settings' timeouts in ns."""
    seconds = (settings.connect_timeout, settings.first_token_timeout, settings.stall_timeout, settings.timeout)
    return Timeouts(*(int(s * 1e9) for s in seconds))


def warm_count(settings: RunSettings, requests: int) -> int:
    """How many connections to open before the clock starts.

    auto: as many as are likely to be in flight (the cap; the rate times a guessed latency; all of a burst),
    within what file descriptors and local ports allow.
    """
    allowed = max(0, min(machine.open_files_limit() - SPARE_FILES, machine.local_ports() * 9 // 10))
    if settings.warm_connections != "auto":
        return min(int(settings.warm_connections), allowed)
    rate = settings.ramp_up_end_rps or settings.request_rate
    in_flight = min(rate * GUESSED_LATENCY_S, settings.max_concurrency or math.inf, requests, MOST_WARM, allowed)
    return math.ceil(in_flight)


def _share(cap: int | None, stripe: tuple[int, int]) -> int | None:
    """This stripe's part of a cap; the parts add up to the whole."""
    i, n = stripe
    return None if cap is None else cap // n + (i < cap % n)
