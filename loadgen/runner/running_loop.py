"""The load of one event loop on the clock: what is measured of it, and how far it is."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from msgspec.structs import replace

from loadgen.client.load_loop import Feature, Load
from loadgen.features.answer_tokens import AnswerTokens
from loadgen.features.structured_output import StructuredAnswers
from loadgen.features.trace_context import TraceContext
from loadgen.metrics import parted_recorder
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.runner.loop_stages import Ready
from loadgen.util import garbage_collection
from loadgen.util.clock import clock_for, now_ns, unix_ns
from loadgen.util.scheduling import separate_cores
from loadgen.util.tasks import background_tasks, repeat
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

FLUSH_S = 1.0  # so much of a run may be lost when its process is killed


class RunningLoop:
    """A load that begins at a time on the clock.

    Args:
        ready: What was done before.
        start_ns: When the clock starts, ns of CLOCK_MONOTONIC.

    Attributes:
        load: The load.
        recorder: Counts its requests.
    """

    def __init__(self, ready: Ready, start_ns: int) -> None:
        prepared = ready.prepared
        opened = prepared.opened
        job = opened.job
        writer = prepared.writer
        self._ready = ready
        self._opened = opened
        self._settings = job.settings
        self.recorder = parted_recorder.recorder_for(
            job.settings, start_ns, len(ready.stripe.numbers)
        )
        self.recorder.counters["warm_connections"] = ready.warm_connections
        if writer:
            writer.begin(
                ready.header,
                start_ns,
                prepared.schedule.count,
                ready.sources,
                ready.requested_due,
                job.partition,
            )
        if prepared.capture:
            prepared.capture.start_ns = start_ns
            opened.link.tap(prepared.capture)
        self._features: tuple[Feature, ...] = (
            AnswerTokens(LazyTokenizer(job.settings), self.recorder, job.partition.count),
            StructuredAnswers(prepared.requests),
            TraceContext(ready.header.trace_key),
        )
        self.load = Load(
            job.settings,
            opened.link,
            prepared.requests,
            self.recorder,
            ready.stripe,
            clock_for(opened.read_loop),
            on_record=writer.write if writer else None,
            features=self._features,
            partition=job.partition,
        )

    async def carry_out(self, stack: AsyncExitStack) -> RunTrailer:
        """Send all requests on the clock, and wait until all have ended.

        Args:
            stack: Is closed then: nothing of the run is sent any more, and the caller's loop may
                go on for long.

        Returns:
            What the recorder does not have.
        """
        prepared = self._ready.prepared
        job = self._opened.job
        writer = prepared.writer
        capture = prepared.capture
        usage = self._ready.usage
        facts: dict[str, Any] = {}
        usage.begin()
        # Where several measure, there is no one processor to keep a simulator off.
        simulator_pids = job.engine_pids if job.header.simulated and not job.sibling_pids else ()
        with (
            self._ready.frozen,
            separate_cores(simulator_pids),
            garbage_collection.record_pauses(self.recorder.waits["gc_pause"].record),
        ):
            background = [beside.run() for beside in self._opened.beside]
            if writer:
                background.append(repeat(FLUSH_S, writer.flush))
            async with background_tasks(*background):
                await self.load.run()
                for beside in self._opened.beside:
                    facts |= await beside.finish()
        client = replace(
            usage.so_far(),
            clock_width_ns=self._opened.read_loop.kernel_clock.max_width_ns,
            connections_reused=self._opened.link.reuses,
            starved_requests=self._opened.link.starved,
        )
        for feature in self._features:
            facts |= await feature.finish()
        if writer:
            writer.close()
            client = replace(client, records_error=writer.error)
        if capture:
            # Seconds of it, and the loop may be the caller's.
            await asyncio.to_thread(capture.close)
            client = replace(client, capture=capture.about())
        await stack.aclose()
        report = WorkerReport(
            number=job.partition.index,
            client=client,
            schedule_sha256=prepared.schedule.sha256,
            cache_warmed=prepared.cache_warmed,
            start_unix_ns=unix_ns(self.recorder.start_ns),
        )
        return RunTrailer(
            workers=(report,),
            never_sent=tuple(self.recorder.never_sent),
            facts=facts,
        )

    def progress(self) -> Progress:
        """Return how far it is: a tenth of a millisecond's work, cheap enough for several times
        a second.
        """
        recorder = self.recorder
        load = self.load
        settings = self._settings
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
            unauthorized=load.unauthorized,
            busy_share=self._ready.usage.busy_share,
            ttft=ttft,
            ttfo=ttfo,
            tpot=recorder.sketch("tpot"),
            itl=recorder.sketch("itl") if imputed_gaps else icl,
            icl=icl,
            e2el=recorder.sketch(f"e2el_{settings.latency_from}"),
            lag=recorder.sketch("lag"),
            loop_stall=recorder.sketch("loop_stall"),
            contacts=tuple(
                transport.reachability(recorder.start_ns) for transport in self._opened.transports
            ),
            silent={
                index: (silent_ns - recorder.start_ns) / 1e9
                for transport in self._opened.transports
                for index, silent_ns in transport.silent.items()
            },
        )
