"""Measurement: the part of a run that happens on the clock, inside one event loop."""

import math
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loadgen import garbage, machine, slo
from loadgen.clock import now_ns
from loadgen.errors import BadInput
from loadgen.load import Load
from loadgen.outcomes import Outcome
from loadgen.recorder import Recorder
from loadgen.records import RecordWriter
from loadgen.rehearsal import Rehearsal
from loadgen.requests import Requests
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings, seed_of
from loadgen.snapshot import Snapshot
from loadgen.target import Target
from loadgen.transport import Timeouts, Transport

LEAD_NS = 20_000_000  # between "ready" and the first due time
GUESSED_LATENCY_S = 2.0  # for the size of the pool, when nothing says how long requests take
MOST_WARM = 4096


@dataclass(frozen=True)
class Job:
    """What one measuring process has to do.

    Attributes:
        settings: The run's settings, checked and resolved.
        target: Where to ask.
        folder: Where the requests were written.
        engine_pid: The process of an engine that was started for the run.
    """

    settings: RunSettings
    target: Target
    folder: Path
    engine_pid: int | None = None


@dataclass(frozen=True)
class Measured:
    """What one measuring process brings back.

    Attributes:
        snapshot: The numbers.
        schedule_sha256: Of the schedule it carried out.
        client: What the measuring cost and met, as JSON: wall_s, cpu_s (the process), busy_share (its loop's thread),
            peak_memory_bytes, engine_cpu_s, connections_reused, disturbance, records_error.
    """

    snapshot: Snapshot
    schedule_sha256: str
    client: dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """How far a measurement is."""

    phase: str  # preparing, connecting, warming up, running or draining
    elapsed_s: float = 0.0
    scheduled: int = 0  # 0 where time alone bounds the run
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
        self._transport = Transport(job.target, timeouts(job.settings))
        self._phase = "connecting"
        self._stopped: str | None = None
        self._recorder: Recorder | None = None
        self._load: Load | None = None

    async def run(self) -> Measured:
        """Open the pool, rehearse, send on the clock, drain, and put everything away.

        Raises:
            Unreachable: The test request, where one was asked for, did not succeed in time.
        """
        settings = self.job.settings
        schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"))
        _check_limits(settings, schedule.count)
        try:
            await self._transport.open()
            wanted = warm_count(settings, schedule.count)
            await self._transport.warm(wanted)  # while the requests are being prepared
            await self._prepared
            with Requests(self.job.folder) as requests, RecordWriter.optional(settings.records) as writer:
                self._phase = "warming up"
                rehearsal = Rehearsal(self._transport, requests, lambda: self._stopped is not None)
                await rehearsal.check_ready(settings.ready_check_timeout_sec)
                await rehearsal.warm_up(settings.num_warmups, settings.max_concurrency)
                warm = await self._transport.warm(wanted)  # again: a server may have closed what lay idle
                client = await self._on_the_clock(schedule, requests, writer)
                assert self._recorder is not None
                self._recorder.counters["warm_connections"] = warm
                return Measured(self._recorder.snapshot(self._stopped), schedule.sha256, client)
        finally:
            await self._transport.close()

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
            self._recorder.ended,
            self._recorder.ok,
            self._recorder.counters["output_tokens"],
        )

    async def _on_the_clock(
        self, schedule: Schedule, requests: Requests, writer: RecordWriter | None
    ) -> dict[str, Any]:
        """Carry out the schedule; returns what the measuring cost."""
        settings, pid = self.job.settings, self.job.engine_pid
        sources = requests.sources() if writer else []
        with garbage.frozen():  # first: it takes its time, and the clock must not
            start_ns = now_ns() + LEAD_NS
            self._recorder = recorder = Recorder(
                start_ns,
                schedule.count,
                limits=slo.parse_goodput(settings.goodput),
                from_due=settings.latency_from == "due",
                detailed=settings.save_detailed,
                on_record=(lambda record: writer.write(record, start_ns, sources)) if writer else None,
            )
            self._load = Load(settings, self._transport, requests, recorder, schedule.due_ns, np.arange(schedule.count))
            if self._stopped is not None:
                self._load.stop(self._stopped)
            before, engine_before, thread_before = machine.Busy.now(), machine.process_cpu_s(pid), time.thread_time()
            with garbage.pauses(recorder.histograms["gc_pause"].record):
                await self._load.run()
            after, thread_s = machine.Busy.now(), time.thread_time() - thread_before
        engine_s = machine.process_cpu_s(pid) - engine_before
        if writer:
            writer.close()
        wall_s = after.at_s - before.at_s
        return {
            "wall_s": wall_s,
            "cpu_s": after.own_s - before.own_s,
            "busy_share": thread_s / wall_s if wall_s else 0.0,
            "peak_memory_bytes": machine.peak_memory_bytes(),
            "engine_cpu_s": engine_s if pid else None,
            "connections_reused": self._transport.reuses,
            "disturbance": machine.disturbance(before, after, engine_s),
            "records_error": writer.error if writer else None,
        }


def timeouts(settings: RunSettings) -> Timeouts:
    """The settings' timeouts in ns."""
    seconds = (settings.connect_timeout, settings.first_token_timeout, settings.stall_timeout, settings.timeout)
    return Timeouts(*(int(s * 1e9) for s in seconds))


def _check_limits(settings: RunSettings, requests: int) -> None:
    """Refuse what is sure to need more connections than this process can have."""
    burst = math.isinf(settings.request_rate) and settings.ramp_up_strategy is None
    at_once = min(settings.max_concurrency or requests, requests) if burst else 0
    ahead = 0 if settings.warm_connections == "auto" else int(settings.warm_connections)
    needed, allowed = max(at_once, ahead), machine.most_connections()
    if needed <= allowed:
        return
    flag = "--warm-connections" if ahead > at_once else "--max-concurrency"
    what = "connections ahead" if ahead > at_once else "requests at once need as many connections"
    if needed > (by_ports := machine.most_by_ports()):
        problem = f"{needed} {what}, and this machine's local ports allow {by_ports} to one server"
        remedy = 'widen their range with `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`, or ask for fewer'
    else:
        problem = f"{needed} {what}, and this process may have {allowed}"
        remedy = f"raise the limit with `ulimit -n {needed + 1000}`, or ask for fewer"
    raise BadInput(flag, problem, remedy)


def warm_count(settings: RunSettings, requests: int) -> int:
    """How many connections to open before the clock starts.

    auto: as many as are likely to be in flight (the cap; the rate times a guessed latency; all of a burst),
    within what file descriptors and local ports allow.
    """
    if settings.warm_connections != "auto":
        return int(settings.warm_connections)
    allowed = machine.most_connections()
    rate = settings.ramp_up_end_rps or settings.request_rate
    in_flight = min(rate * GUESSED_LATENCY_S, settings.max_concurrency or math.inf, requests, MOST_WARM, allowed)
    return math.ceil(in_flight)
