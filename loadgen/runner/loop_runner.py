"""The runner of one event loop: sends its partition of a run on the clock, and measures."""

import asyncio
import contextlib
from typing import Self

from msgspec.structs import replace

from loadgen.client.balancer import Balancer
from loadgen.client.capture import Capture
from loadgen.client.connection_budget import ConnectionBudget
from loadgen.client.load_loop import Load
from loadgen.client.side_requests import Probe, Warmup
from loadgen.client.timeouts import Timeouts
from loadgen.client.transport import Transport
from loadgen.config.load import WARM
from loadgen.config.target import BALANCE
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.errors import BadInput
from loadgen.metrics import parted_recorder
from loadgen.metrics.client_cpu_usage import UsageSampler
from loadgen.metrics.progress import Progress
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.file import RecordWriter
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.snapshot import Snapshot
from loadgen.runner.job import Job
from loadgen.runner.participant import Participant, Step
from loadgen.util import garbage_collection, source_address
from loadgen.util.clock import clock_for, now_ns
from loadgen.util.scheduling import separate_cores
from loadgen.util.source_address import SourceAddresses
from loadgen.util.tasks import background_tasks, repeat
from loadgen.workload import request_store
from loadgen.workload.request_store import WARM_CACHE_PREFIX, WARMUP_PREFIX, Requests
from loadgen.workload.tokenizer import tokenizer

MAX_WARMING = 32  # requests at once that warm the prefix cache up
FLUSH_S = 1.0  # so much of a run may be lost when its process is killed


class LoopRunner(Participant):
    """Carries out a job in the running loop. Used in `async with`, it closes all that it has
    opened.

    Args:
        linger_ns: For how long the loop's other work may be kept waiting, as for a `ReadLoop`.
    """

    def __init__(self, linger_ns: int = 0) -> None:
        self._linger_ns = linger_ns
        self._stack = contextlib.AsyncExitStack()
        self._transports: list[Transport] = []
        self._warmups: list[Warmup] = []
        self._cache_warmed = 0
        self._phase = "connecting"
        self._stopped: str | None = None
        self._warming: asyncio.Timeout | None = None
        self._recorder: Recorder | None = None
        self._load: Load | None = None
        self._prober: Transport | None = None
        self._probe: Probe | None = None
        self._usage: UsageSampler | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def begin(self, job: Job) -> None:
        """As `Participant.begin`."""
        self._job = job
        self._read_loop = ReadLoop(self._linger_ns)
        settings = job.settings
        addresses = source_address.parse(settings.source_address)
        timeouts = Timeouts.from_settings(settings)
        self._transports = [
            Transport(target, timeouts, self._read_loop, SourceAddresses(addresses, job.partition))
            for target in job.targets
        ]
        self._transport: Transport | Balancer = self._transports[0]
        if len(self._transports) > 1:
            self._transport = Balancer(self._transports, settings.balance or BALANCE, job.partition)
        if not settings.timed_by_data:
            ConnectionBudget(settings, request_store.schedule(job.folder), job.partition).check()
        self._stack.push_async_callback(self._transport.close)
        await self._transport.open()
        if settings.probe_request_rate and job.partition.index == 0:
            sources = SourceAddresses(addresses, job.partition)
            self._prober = Transport(job.targets[0], timeouts, self._read_loop, sources)
            self._stack.push_async_callback(self._prober.close)
            await self._prober.open()
            self._probe = Probe(self._prober, settings.probe_request_rate)

    async def take(self, step: Step) -> None:
        """As `Participant.take`."""
        await getattr(self, step)()

    async def check_ready(self) -> None:
        """Open the requests, and have the first worker check that each target answers."""
        job, settings = self._job, self._job.settings
        schedule = request_store.schedule(job.folder)
        self._schedule = schedule
        self._budget = ConnectionBudget(settings, schedule, job.partition)
        self._budget.check()
        if isinstance(self._transport, Balancer):
            self._transport.follow(schedule)
        self._requests = self._stack.enter_context(Requests(job.folder))
        if job.partition.index == 0:
            self._budget.warn(self._requests.output_tokens)
        self._writer = self._stack.enter_context(
            RecordWriter.optional(job.shard, job.max_record_bytes)
        )
        self._capture = self._stack.enter_context(Capture.optional(settings.capture, job.targets))
        self._phase = "warming up"
        self._warmups = [
            Warmup(transport, lambda: self._stopped is not None) for transport in self._transports
        ]
        if not request_store.warmup_count(settings):
            return
        first = settings.warmup_prompt == "first"
        requests = (
            self._requests
            if first
            else self._stack.enter_context(Requests(job.folder, WARMUP_PREFIX))
        )
        self._warmup_requests = requests
        if job.partition.index == 0 and settings.ready_check_timeout_sec:
            row = 0 if first else settings.num_warmups
            for warmup in self._warmups:
                await warmup.check_ready(requests, row, settings.ready_check_timeout_sec)

    async def warm_up(self) -> None:
        """Send this worker's share of the warm-up requests, as many to each target, and then of
        a warm cache.
        """
        settings, partition = self._job.settings, self._job.partition
        for number, warmup in enumerate(self._warmups if settings.num_warmups else ()):
            rows = range(number, settings.num_warmups, len(self._warmups))[
                partition.index :: partition.count
            ]
            repeats_first = settings.warmup_prompt == "first"
            await warmup.warm_up(
                self._warmup_requests,
                [0] * len(rows) if repeats_first else rows,
                self._job.max_concurrency,
            )
        if settings.cache == WARM:
            concurrency = min(self._job.max_concurrency or MAX_WARMING, MAX_WARMING)
            with Requests(self._job.folder, WARM_CACHE_PREFIX) as requests:
                rows = range(partition.index, len(requests), partition.count)
                for warmup in self._warmups:
                    self._cache_warmed += await warmup.warm_up(requests, rows, concurrency)

    async def connect(self) -> None:
        """Open connections ahead of the clock; all else that takes its time is done now, too."""
        job, settings, schedule = self._job, self._job.settings, self._schedule
        self._stripe = schedule.stripe(job.partition.index, job.partition.count)
        self._header = job.header.with_requests(
            request_store.read_about(job.folder), schedule.about()
        )
        self._sources = self._requests.sources() if settings.records else []
        self._requested_due = None
        if self._writer:
            self._requested_due = request_store.requested_due_ns(
                job.folder, counted_by_data=settings.counted_by_data
            )
        self._warm_connections = await self._warm(
            self._budget.warm_count(self._requests.output_tokens)
        )
        self._usage = UsageSampler(
            job.engine_pids, job.server_pids, (*job.sibling_pids, *job.helper_pids)
        )
        self._frozen = contextlib.ExitStack()
        self._stack.push(self._frozen)
        self._frozen.enter_context(garbage_collection.freeze())
        self._phase = "ready"

    async def carry_out(self, start_ns: int) -> Measurement:
        """As `Participant.carry_out`."""
        job, writer, usage = self._job, self._writer, self._usage
        assert usage is not None, "the loop has connected"
        recorder = self._begin_recording(start_ns)
        load = Load(
            job.settings,
            self._transport,
            self._requests,
            recorder,
            self._stripe,
            clock_for(self._read_loop),
            on_record=writer.write if writer else None,
            count_tokens=self._count_tokens,
            partition=job.partition,
        )
        self._load = load
        if self._stopped is not None:
            load.stop(self._stopped)
        usage.begin()
        # Where several measure, there is no one processor to keep a simulator off.
        simulator_pids = job.engine_pids if job.header.simulated and not job.sibling_pids else ()
        with (
            self._frozen,
            separate_cores(simulator_pids),
            garbage_collection.record_pauses(recorder.waits["gc_pause"].record),
        ):
            background = []
            if writer:
                background.append(repeat(FLUSH_S, writer.flush))
            if self._probe:
                background.append(self._probe.run())
            async with background_tasks(*background):
                await load.run()
                if self._probe:
                    await self._probe.finish()
        client = replace(
            usage.so_far(),
            clock_width_ns=self._read_loop.kernel_clock.max_width_ns,
            connections_reused=self._transport.reuses,
            starved_requests=self._transport.starved,
        )
        await load.count()
        if writer:
            writer.close()
            client = replace(client, records_error=writer.error)
        if self._capture:
            # Seconds of it, and the loop may be the caller's.
            await asyncio.to_thread(self._capture.close)
            client = replace(client, capture=self._capture.about())
        # Nothing of the run is sent any more, and the caller's loop may go on for long.
        await self._stack.aclose()
        report = WorkerReport(
            number=job.partition.index,
            client=client,
            schedule_sha256=self._schedule.sha256,
            cache_warmed=self._cache_warmed,
        )
        trailer = RunTrailer(
            workers=(report,),
            never_sent=tuple(recorder.never_sent),
            tokenized=load.tokenized,
            sampled=load.sampled,
            structured=dict(load.structured),
            probe_e2el_ns=tuple(self._probe.e2el_ns) if self._probe else (),
            probes_failed=self._probe.failed if self._probe else 0,
        )
        return Measurement(recorder.snapshot(self._stopped), trailer)

    def stop(self, reason: str) -> None:
        """As `Participant.stop`."""
        if self._stopped is None:
            self._stopped = reason
            if self._warming is not None:
                self._warming.reschedule(0)
            if self._load is not None:
                self._load.stop(reason)

    def abort(self, reason: str) -> None:
        """Send nothing more, and end requests in flight as cancelled."""
        self.stop(reason)
        for transport in (*self._transports, *([self._prober] if self._prober else [])):
            transport.abandon(Outcome.CANCELLED, reason)

    def progress(self) -> Progress:
        """Return how far it is: a tenth of a millisecond's work, cheap enough for several times
        a second.
        """
        recorder, load = self._recorder, self._load
        if recorder is None or load is None or self._usage is None:
            return Progress(self._phase)
        settings = self._job.settings
        tokens, unseen, surplus = map(
            recorder.count, ("output_tokens", "unseen_tokens", "surplus_events")
        )
        imputed_gaps = recorder.count("imputed_gaps")
        at_ns = now_ns()
        # If two distributions are the same one, it is copied and sent once.
        ttft = recorder.sketch(f"ttft_{settings.latency_from}")
        icl = recorder.sketch("icl")
        ttfo = (
            recorder.sketch(f"ttfo_{settings.latency_from}")
            if recorder.count("reasoning_events")
            else ttft
        )
        return Progress(
            "draining" if load.draining else "running",
            max(0.0, (at_ns - recorder.start_ns) / 1e9),
            0 if load.ends_by_time else recorder.scheduled,
            load.in_flight,
            load.ended,
            load.ended - recorder.failed,
            tokens,
            sent=load.sent,
            never_due=recorder.count("never_due"),
            never_sent=sum(count for _, count in recorder.never_sent),
            waiting=load.pacer.overdue,
            cap=load.pacer.schedule.cap,
            streams=settings.streams,
            closed_loop=load.closed_loop,
            sending_s=load.sending_s,
            oldest_s=0.0 if load.oldest_ns is None else max(0.0, (at_ns - load.oldest_ns) / 1e9),
            reached=load.reached,
            counted_tokens=tokens - unseen + surplus,
            streamed_tokens=load.streamed_tokens,
            imputed_gaps=imputed_gaps,
            failures=recorder.failed_by_class,
            busy_share=self._usage.busy_share,
            ttft=ttft,
            ttfo=ttfo,
            tpot=recorder.sketch("tpot"),
            itl=recorder.sketch("itl") if imputed_gaps else icl,
            icl=icl,
            e2el=recorder.sketch(f"e2el_{settings.latency_from}"),
            lag=recorder.sketch("lag"),
            loop_stall=recorder.sketch("loop_stall"),
            contacts=tuple(
                transport.reachability(recorder.start_ns) for transport in self._transports
            ),
            silent={
                index: (silent_ns - recorder.start_ns) / 1e9
                for transport in self._transports
                for index, silent_ns in transport.silent.items()
            },
        )

    def snapshot(self) -> Snapshot | None:
        """Return what was measured so far, None before the clock starts; takes the loop some
        milliseconds.
        """
        return None if self._recorder is None else self._recorder.snapshot()

    async def _warm(self, count: int) -> int:
        """Open connections until `count` are open or the run is stopped, and return how many
        are.
        """
        if self._stopped is not None:
            return 0
        try:
            async with asyncio.timeout(None) as self._warming:
                return await self._transport.warm(count)
        except TimeoutError:
            return 0
        finally:
            self._warming = None

    def _count_tokens(self, texts: list[str]) -> list[int] | None:
        """Count the tokens of texts by the run's tokenizer; None where it cannot be had."""
        try:
            return tokenizer.tokenizer_of(self._job.settings).count(texts)
        except BadInput:
            return None

    def _begin_recording(self, start_ns: int) -> Recorder:
        """Create the recorder, and begin the files of the run with the start of the clock."""
        job = self._job
        recorder = parted_recorder.recorder_for(job.settings, start_ns, len(self._stripe.numbers))
        self._recorder = recorder
        recorder.counters["warm_connections"] = self._warm_connections
        if self._writer:
            self._writer.begin(
                self._header,
                start_ns,
                self._schedule.count,
                self._sources,
                self._requested_due,
                job.partition,
            )
        if self._capture:
            self._capture.start_ns = start_ns
            self._transport.tap(self._capture)
        return recorder
