"""Measurement: the part of a run that happens on the clock, inside one event loop."""

import asyncio
import contextlib
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from loadgen.client import connection_budget
from loadgen.client.balancer import Balancer
from loadgen.client.capture import Capture
from loadgen.client.load_loop import Load
from loadgen.client.timeouts import Timeouts
from loadgen.client.transport import Transport
from loadgen.client.warmup import Rehearsal
from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.target import BALANCE
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.errors import BadInput
from loadgen.metrics import per_target
from loadgen.metrics.progress import Progress
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.file import RecordWriter
from loadgen.metrics.records.header import Heading
from loadgen.metrics.records.trailer import Ending
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.snapshot import LOOP_WAITS, Snapshot
from loadgen.metrics.usage_sampler import Cost
from loadgen.metrics.worker_report import Shard
from loadgen.runner.metrics_scraper_main import Order
from loadgen.util import garbage_collection, source_address
from loadgen.util.affinity import separate_cores
from loadgen.util.clock import clock_for, now_ns
from loadgen.util.partition import WHOLE, Partition
from loadgen.util.source_address import SourceAddresses
from loadgen.util.tasks import background_tasks
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.request_store import REHEARSAL, Requests
from loadgen.workload.target import Target

FLUSH_S = 1.0  # so much of a run may be lost when its process is killed
JOURNAL_BYTES = 1 << 28


@dataclass(frozen=True)
class Job:
    """What one worker has to do.

    Attributes:
        heading: What the run is: its settings, checked and resolved, and where all else comes from but the prompts.
        targets: Where to ask: one, or several that share the requests.
        folder: Where the requests were written.
        engine_pids: The processes of engines that were started for the run.
        records: The file in which it writes its records; None: nowhere.
        scraping: Who is to be asked of itself meanwhile, or None.
        stripe: Which part of the run it is to carry out.
        sibling_pids: The processes that carry out the others on the same machine.
        preparer_pid: The process on it that makes further requests meanwhile, or None.
    """

    heading: Heading
    targets: tuple[Target, ...]
    folder: Path
    engine_pids: tuple[int, ...] = ()
    records: Path | None = None
    scraping: Order | None = None
    stripe: Partition = WHOLE
    sibling_pids: tuple[int, ...] = ()
    preparer_pid: int | None = None

    @property
    def settings(self) -> RunSettings:
        """The run's settings."""
        return self.heading.settings

    @property
    def cap(self) -> int | None:
        """Its share of --max-concurrency."""
        whole = self.settings.max_concurrency
        return None if whole is None else self.stripe.share(whole)

    @property
    def most_bytes(self) -> float:
        """How large its records may grow: what nobody has asked for is bounded."""
        return math.inf if self.settings.records else JOURNAL_BYTES // self.stripe.count


@dataclass(frozen=True)
class Measured:
    """What one worker brings back, or several.

    Attributes:
        snapshot: The numbers.
        shards: What became of each worker.
        never_sent: As in `Ending`.
        tokenized, sampled: As in `Ending`.
        telemetry: What servers and GPUs said meanwhile.
        no_answer_since_s: As in `Evidence`.
    """

    snapshot: Snapshot
    shards: tuple[Shard, ...]
    never_sent: tuple[tuple[int, int], ...] = ()
    tokenized: dict[int, int] = field(default_factory=dict)
    sampled: dict[int, int] = field(default_factory=dict)
    telemetry: Telemetry = Telemetry()
    no_answer_since_s: float | None = None

    @property
    def records_error(self) -> str | None:
        """Why the records are not complete, or None."""
        return next((error for shard in self.shards if (error := shard.client.records_error)), None)

    def with_records_error(self, error: str | None) -> Self:
        """The same, had the records not been complete for this reason too."""
        if error is None or self.records_error:
            return self
        first, *others = self.shards
        first = replace(first, client=replace(first.client, records_error=error))
        return replace(self, shards=(first, *others))

    @property
    def ending(self) -> Ending:
        """What stands at the end of its records."""
        return Ending(
            scheduled=self.snapshot.scheduled,
            never_sent=self.never_sent,
            warm_connections=self.snapshot.counters["warm_connections"],
            repeated_prompts=self.snapshot.counters["repeated_prompts"],
            tokenized=self.tokenized,
            sampled=self.sampled,
            partial=self.snapshot.partial,
            shards=self.shards,
            histograms={name: self.snapshot.histograms[name] for name in LOOP_WAITS},
            telemetry=self.telemetry,
            no_answer_since_s=self.no_answer_since_s,
        )

    def merge(self, other: Self) -> Self:
        """The whole of two parts, but for telemetry, which neither has."""
        return replace(
            self,
            snapshot=self.snapshot.merge(other.snapshot),
            shards=tuple(sorted(self.shards + other.shards, key=lambda shard: shard.number)),
            never_sent=self.never_sent + other.never_sent,
            tokenized=self.tokenized | other.tokenized,
            sampled=self.sampled | other.sampled,
        )


class Measurement:
    """One job, carried out step by step in `async with`, which puts everything away: a `Part` in the running loop.

    Args:
        job: What to do.
        linger_ns: For how long the loop's other work may be kept waiting, as for a `ReadLoop`.
    """

    workers = 1

    def __init__(self, job: Job, linger_ns: int = 0) -> None:
        self.job, self._poll, limits = job, ReadLoop(linger_ns), timeouts(job.settings)
        own, most = (
            source_address.parse(job.settings.source_address),
            connection_budget.most(job.settings) // len(job.targets),
        )
        self._transports = [
            Transport(one, limits, self._poll, SourceAddresses(own, job.stripe), most) for one in job.targets
        ]
        self._transport = _shared(self._transports, job)
        self._stack = contextlib.AsyncExitStack()
        self._rehearsals: list[Rehearsal] = []
        self._phase = "connecting"
        self._stopped: str | None = None
        self._warming: asyncio.Timeout | None = None
        self._recorder: Recorder | None = None
        self._load: Load | None = None
        self._cost: Cost | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def open(self) -> None:
        """Prepare to connect, while the requests may still be in the making.

        Raises:
            BadInput: More are needed than can be had, or a file cannot be written.
        """
        job, settings = self.job, self.job.settings
        if not settings.timed_by_data:
            expected = Schedule.from_settings(settings, seed_of(settings, "arrivals"))
            connection_budget.check_limits(settings, expected, job.stripe)
        self._stack.push_async_callback(self._transport.close)
        await self._transport.open()

    async def check_ready(self) -> None:
        """Take up the requests, which have been prepared; the first worker sees that each target answers one.

        Raises:
            BadInput: More connections are needed than can be had, or a file cannot be written.
            Unreachable: The test request, where one was asked for, did not succeed in time.
        """
        job, settings = self.job, self.job.settings
        self._asked_due = request_store.asked(job.folder)
        self._schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), self._asked_due)
        connection_budget.check_limits(settings, self._schedule, job.stripe)
        if isinstance(self._transport, Balancer):
            self._transport.follow(self._schedule)
        self._requests = self._stack.enter_context(Requests(job.folder))
        if job.stripe.index == 0:
            connection_budget.warn_of_limits(settings, self._schedule, self._requests.output_tokens, job.stripe)
        self._writer = self._stack.enter_context(RecordWriter.optional(job.records, job.most_bytes))
        self._capture = self._stack.enter_context(Capture.optional(settings.capture, job.targets))
        self._phase = "warming up"
        if not request_store.rehearsed(settings):
            return
        first = settings.warmup_prompt == "first"
        asked = self._requests if first else self._stack.enter_context(Requests(job.folder, REHEARSAL))
        self._rehearsals = [
            Rehearsal(transport, asked, lambda: self._stopped is not None) for transport in self._transports
        ]
        if job.stripe.index == 0 and settings.ready_check_timeout_sec:
            for rehearsal in self._rehearsals:
                await rehearsal.check_ready(0 if first else settings.num_warmups, settings.ready_check_timeout_sec)

    async def warm_up(self) -> None:
        """Send this worker's share of the warm-ups, as many to each target."""
        settings, stripe = self.job.settings, self.job.stripe
        for number, rehearsal in enumerate(self._rehearsals):
            rows = range(number, settings.num_warmups, len(self._rehearsals))[stripe.index :: stripe.count]
            same = settings.warmup_prompt == "first"
            await rehearsal.warm_up([0] * len(rows) if same else rows, self.job.cap)

    async def connect(self) -> None:
        """Get ready for the clock: all that takes its time is done now."""
        job = self.job
        self._index, _ = self._schedule.stripe(job.stripe.index, job.stripe.count)
        self._heading = job.heading.with_requests(request_store.about(job.folder), self._schedule.about())
        self._sources = self._requests.sources() if job.settings.records else []
        count = connection_budget.warm_count(job.settings, self._schedule, self._requests.output_tokens, job.stripe)
        self._at_hand = await self._warm(count)
        self._transport.keep_spare(
            connection_budget.spare_count(job.settings, self._schedule, self._at_hand, job.stripe)
        )
        self._frozen = contextlib.ExitStack()
        self._stack.push(self._frozen)
        self._frozen.enter_context(garbage_collection.freeze())
        self._phase = "ready"

    async def carry_out(self, start_ns: int) -> Measured:
        """Send on a clock that starts at `start_ns` (CLOCK_MONOTONIC), and wait until all has ended."""
        job, settings, recorder, writer = self.job, self.job.settings, self._begun(start_ns), self._writer
        self._load = load = Load(
            settings.replace(max_concurrency=job.cap),
            self._transport,
            self._requests,
            recorder,
            self._schedule.due_ns,
            self._index,
            clock_for(self._poll),
            on_record=writer.write if writer else None,
            count_tokens=self._count_tokens,
            workers=job.stripe.count,
        )
        if self._stopped is not None:
            load.stop(self._stopped)
        helpers = () if job.preparer_pid is None else (job.preparer_pid,)
        self._cost = cost = Cost(job.engine_pids, (*job.sibling_pids, *helpers))
        # Where several measure, there is no one processor to keep a simulator off.
        simulator_pids = job.engine_pids if job.heading.simulated and not job.sibling_pids else ()
        with (
            self._frozen,
            separate_cores(simulator_pids),
            garbage_collection.record_pauses(recorder.histograms["gc_pause"].record),
        ):
            async with background_tasks(self._until_all_sent(load), *([_flush(writer)] if writer else [])):
                await load.run()
        spare = self._transport.spare_opened
        client = replace(cost.so_far(), connections_reused=self._transport.reuses, spare_connections=spare)
        await load.count()
        if writer:
            writer.close()
            client = replace(client, records_error=writer.error)
        if self._capture:
            await asyncio.to_thread(self._capture.close)  # seconds of it, and the loop may be the caller's
            client = replace(client, capture=self._capture.about())
        return Measured(
            recorder.snapshot(self._stopped),
            (Shard(number=job.stripe.index, client=client, schedule_sha256=self._schedule.sha256),),
            tuple(recorder.never_sent),
            load.tokenized,
            load.sampled,
        )

    def stop(self, reason: str) -> None:
        """Send nothing more, and let what is in flight end."""
        if self._stopped is None:
            self._stopped = reason
            if self._warming is not None:
                self._warming.reschedule(0)
            if self._load is not None:
                self._load.stop(reason)

    def abort(self, reason: str) -> None:
        """Send nothing more, and end what is in flight as cancelled."""
        self.stop(reason)
        self._transport.abandon(Outcome.CANCELLED, reason)

    def progress(self) -> Progress:
        """How far it is: a tenth of a millisecond's work, cheap enough for several times a second."""
        recorder, load, clock = self._recorder, self._load, self.job.settings.latency_from
        if recorder is None or load is None or self._cost is None:
            return Progress(self._phase)
        tokens, unseen, surplus = map(recorder.count, ("output_tokens", "unseen_tokens", "surplus_events"))
        return Progress(
            "draining" if load.draining else "running",
            max(0.0, (now_ns() - recorder.start_ns) / 1e9),
            0 if load.ends_by_time else recorder.scheduled,
            load.in_flight,
            load.ended,
            load.ended - recorder.failed,
            tokens,
            sent=load.sent,
            never_due=recorder.count("never_due"),
            waiting=load.waiting,
            cap=self.job.cap,
            closed_loop=load.closed_loop,
            sending_s=load.sending_s,
            reached=load.reached,
            counted_tokens=tokens - unseen + surplus,
            streamed_tokens=load.streamed_tokens,
            imputed_gaps=recorder.count("imputed_gaps"),
            failures=recorder.failures,
            busy_share=self._cost.busy_share,
            ttft=recorder.sketch(f"ttft_{clock}"),
            e2el=recorder.sketch(f"e2el_{clock}"),
            itl=recorder.sketch("itl"),
            icl=recorder.sketch("icl"),
            lag=recorder.sketch("lag"),
            loop_stall=recorder.sketch("loop_stall"),
            contacts=tuple(transport.contact(recorder.start_ns) for transport in self._transports),
            silent={
                index: (at_ns - recorder.start_ns) / 1e9
                for transport in self._transports
                for index, at_ns in transport.silent.items()
            },
        )

    def snapshot(self) -> Snapshot | None:
        """What was measured so far, None before the clock starts; takes the loop some milliseconds."""
        return None if self._recorder is None else self._recorder.snapshot()

    async def _warm(self, count: int) -> int:
        """Open connections ahead until `count` are at hand or the run is stopped; how many there are then."""
        if self._stopped is not None:
            return 0
        try:
            async with asyncio.timeout(None) as self._warming:
                return await self._transport.warm(count)
        except TimeoutError:
            return 0
        finally:
            self._warming = None

    async def _until_all_sent(self, load: Load) -> None:
        """Keep no spare connections while answers alone are waited for."""
        await load.all_sent.wait()
        self._transport.keep_spare(0)

    def _count_tokens(self, texts: list[str]) -> list[int] | None:
        """The tokens of texts by the run's tokenizer; None where it cannot be had."""
        from loadgen.workload.tokenizer import tokenizer

        try:
            return tokenizer.of_settings(self.job.settings).count(texts)
        except BadInput:
            return None

    def _begun(self, start_ns: int) -> Recorder:
        """A recorder of what begins at `start_ns`, of which the files are told too."""
        self._recorder = recorder = per_target.of(self.job.settings, start_ns, len(self._index))
        recorder.counters["warm_connections"] = self._at_hand
        if self._writer:
            self._writer.begin(
                self._heading, start_ns, self._schedule.count, self._sources, self._asked_due, self.job.stripe
            )
        if self._capture:
            self._capture.start_ns = start_ns
            self._transport.tap(self._capture)
        return recorder


async def _flush(writer: RecordWriter) -> None:
    while True:
        await asyncio.sleep(FLUSH_S)
        writer.flush()


def _shared(transports: list[Transport], job: Job) -> Transport | Balancer:
    if len(transports) == 1:
        return transports[0]
    return Balancer(transports, job.settings.balance or BALANCE, job.stripe)


def timeouts(settings: RunSettings) -> Timeouts:
    """The settings' timeouts in ns."""
    seconds = (settings.connect_timeout, settings.first_token_timeout, settings.stall_timeout, settings.timeout)
    return Timeouts(*(int(s * 1e9) for s in seconds))
