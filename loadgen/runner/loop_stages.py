"""The stages of one event loop before the clock starts: its connections are open, its requests are
prepared, and all is ready.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from loadgen.client.balancer import Balancer
from loadgen.client.compiled_transport import CompiledTransport
from loadgen.client.timeouts import Timeouts
from loadgen.client.transport import Transport
from loadgen.client.warmup import Warmup
from loadgen.config.load import WARM
from loadgen.config.target import AIOHTTP, BALANCE
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.features.capture import Capture
from loadgen.features.probe import Probe
from loadgen.metrics.client_cpu_usage import UsageSampler
from loadgen.metrics.records.file import RecordWriter
from loadgen.runner.connection_budget import ConnectionBudget
from loadgen.runner.job import Job
from loadgen.util import garbage_collection, source_address
from loadgen.util.source_address import SourceAddresses
from loadgen.workload import request_store
from loadgen.workload.request_store import WARM_CACHE_PREFIX, WARMUP_PREFIX, Requests
from loadgen.workload.target import Target

MAX_WARMING = 32  # requests at once that warm the prefix cache up


class Opened:
    """The transports of a job, in the loop that sends.

    Args:
        job: The job.

    Attributes:
        job: The same.
        read_loop: Reads the connections of all of them.
        transports: Those to each target.
        link: What the load is sent over: the only one of them, or a balancer.
        beside: Sends requests beside the load, if the run has them.

    Raises:
        BadInput: The job needs more connections than it can have.
    """

    def __init__(self, job: Job) -> None:
        settings = job.settings
        self.job = job
        self.read_loop = ReadLoop()
        self.transports = [self._transport(target) for target in job.targets]
        self.link: Transport | Balancer = self.transports[0]
        if len(self.transports) > 1:
            self.link = Balancer(self.transports, settings.balance or BALANCE, job.partition)
        self.beside: list[Probe] = []
        if settings.probe_request_rate and job.partition.index == 0:
            self.beside = [Probe(self._transport(job.targets[0]), settings.probe_request_rate)]
        if not settings.timed_by_data:
            ConnectionBudget(settings, request_store.schedule(job.folder), job.partition).check()

    async def open(self, stack: AsyncExitStack) -> None:
        """Begin to read connections, until the stack closes them."""
        for link in (self.link, *(probe.transport for probe in self.beside)):
            stack.push_async_callback(link.close)
            await link.open()

    @property
    def _all(self) -> list[Transport]:
        return [*self.transports, *(probe.transport for probe in self.beside)]

    def use(self, targets: tuple[Target, ...]) -> None:
        """Send the next requests with the credentials of these targets."""
        for transport, target in zip(self._all, (*targets, targets[0]), strict=False):
            transport.use(target)

    def abandon(self, reason: str) -> None:
        """End requests in flight as cancelled."""
        for transport in self._all:
            transport.abandon(Outcome.CANCELLED, reason)

    def _transport(self, target: Target) -> Transport:
        settings = self.job.settings
        addresses = source_address.parse(settings.source_address)
        sources = SourceAddresses(addresses, self.job.partition)
        arguments = (target, Timeouts.from_settings(settings), self.read_loop, sources)
        if settings.transport == AIOHTTP:
            # imports aiohttp, which takes most of the time that a worker needs to start
            from loadgen.client.aiohttp_transport import AiohttpTransport

            return AiohttpTransport(*arguments)
        return CompiledTransport(*arguments)


class Prepared:
    """The requests of a job, and the files that its loop writes.

    Args:
        opened: The transports.
        stack: Closes the files.
        is_stopped: Whether to send no more warm-up requests.

    Attributes:
        opened: The same.
        schedule: The due times of the whole run.
        budget: How many connections this loop may have.
        requests: The requests of the run.
        writer: Writes the records; None: nobody wants them.
        capture: Stores the raw responses, or None.
        cache_warmed: Requests that were sent to warm the prefix cache up.

    Raises:
        BadInput: The job needs more connections than it can have, or a file cannot be written.
    """

    def __init__(
        self, opened: Opened, stack: AsyncExitStack, is_stopped: Callable[[], bool]
    ) -> None:
        job = opened.job
        settings = job.settings
        self.opened = opened
        self.schedule = request_store.schedule(job.folder)
        self.budget = ConnectionBudget(settings, self.schedule, job.partition)
        self.budget.check()
        if isinstance(opened.link, Balancer):
            opened.link.follow(self.schedule)
        self.requests = stack.enter_context(Requests(job.folder))
        if job.partition.index == 0:
            self.budget.warn(self.requests.output_tokens)
        self.writer = stack.enter_context(RecordWriter.optional(job.shard, job.max_record_bytes))
        self.capture = stack.enter_context(Capture.optional(settings.capture, job.targets))
        self.cache_warmed = 0
        self._warmups = [Warmup(transport, is_stopped) for transport in opened.transports]
        self._repeats_first = settings.warmup_prompt == "first"
        self._warmup_requests = self.requests
        if request_store.warmup_count(settings) and not self._repeats_first:
            self._warmup_requests = stack.enter_context(Requests(job.folder, WARMUP_PREFIX))

    async def check_ready(self) -> None:
        """Have the first worker check that each target answers.

        Raises:
            Unreachable: The test request, where one was asked for, did not succeed in time.
        """
        job = self.opened.job
        timeout_s = job.settings.ready_check_timeout_sec
        if job.partition.index == 0 and timeout_s:
            row = 0 if self._repeats_first else job.settings.warmup_requests
            for warmup in self._warmups:
                await warmup.check_ready(self._warmup_requests, row, timeout_s)

    def _warmup_rows(self) -> list[Sequence[int]]:
        """Return which requests warm each target up: this worker's share of them."""
        partition, targets = self.opened.job.partition, len(self._warmups)
        every = range(self.opened.job.settings.warmup_requests)
        rows = [
            every[number::targets][partition.index :: partition.count] for number in range(targets)
        ]
        return [[0] * len(share) if self._repeats_first else share for share in rows]

    async def warm_up(self) -> None:
        """Send this worker's share of the warm-up requests, as many to each target, and then of
        a warm cache.
        """
        job = self.opened.job
        settings = job.settings
        partition = job.partition
        cap, targets = job.max_concurrency, len(self._warmups)
        shares = list(zip(self._warmups, self._warmup_rows(), strict=True))
        if settings.warmup is None:
            for warmup, rows in shares:
                await warmup.warm_up(self._warmup_requests, rows, cap)
        else:
            gap_s = partition.count * targets / settings.request_rate
            together = None if cap is None else -(-cap // targets)
            timed = [
                warmup.warm_up_for(
                    settings.warmup, self._warmup_requests, rows, gap_s=gap_s, together=together
                )
                for warmup, rows in shares
            ]
            await asyncio.gather(*timed)
        if settings.cache == WARM:
            concurrency = min(job.max_concurrency or MAX_WARMING, MAX_WARMING)
            with Requests(job.folder, WARM_CACHE_PREFIX) as requests:
                rows = range(partition.index, len(requests), partition.count)
                for warmup in self._warmups:
                    self.cache_warmed += await warmup.warm_up(requests, rows, concurrency)


class Ready:
    """All else that takes its time, done ahead of the clock.

    Args:
        prepared: The requests and files.
        stack: Thaws the frozen objects.
        warm_connections: How many connections are open.

    Attributes:
        prepared: The same.
        stripe: Which requests this loop sends, and when.
        header: The head of the file of records.
        sources: Where each prompt comes from, for that file.
        requested_due: The due times that the prompts ask for, ns, for it, or None.
        warm_connections: The same.
        usage: Measures the CPU time of the processes.
        frozen: Until it is closed, objects that exist now are not collected.
    """

    def __init__(self, prepared: Prepared, stack: AsyncExitStack, warm_connections: int) -> None:
        job = prepared.opened.job
        settings = job.settings
        schedule = prepared.schedule
        self.prepared = prepared
        self.stripe = schedule.stripe(job.partition.index, job.partition.count)
        self.header = job.header.with_requests(
            request_store.read_about(job.folder), schedule.about()
        )
        self.sources = prepared.requests.sources() if settings.records else []
        self.requested_due = (
            request_store.requested_due_ns(job.folder, counted_by_data=settings.counted_by_data)
            if prepared.writer
            else None
        )
        self.warm_connections = warm_connections
        self.usage = UsageSampler(
            job.engine_pids, job.server_pids, (*job.sibling_pids, *job.helper_pids)
        )
        self.frozen = contextlib.ExitStack()
        stack.push(self.frozen)
        self.frozen.enter_context(garbage_collection.freeze())
