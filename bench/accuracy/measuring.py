"""Measuring: a run of loadgen beside what the server knows of it."""

import contextlib
import os
import resource
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import loadgen
from bench.accuracy.conditions import Condition, alone
from bench.accuracy.stillness import STILL_SHARE, patience, stood_still
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.library.accepted import accepted
from loadgen.library.run import carry_out
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.statistic import CLOCK_MS, FLOOR_MS
from loadgen.runner.run_result import Result
from loadgen.runner.workers import open_workers
from loadgen.testing.process import Process
from loadgen.testing.truth import Truth
from loadgen.util import machine
from loadgen.util.scheduling import separate_cores
from loadgen.workload.prompt import Prompt

Int64s = NDArray[np.int64]
CONGESTION_WINDOW = 10  # segments
TOLERANCE_NS = (
    FLOOR_MS + CLOCK_MS
) * 1e6  # what a client error holds beside the intervals of the tokens


@dataclass(frozen=True)
class Short:
    """A data set of one-word prompts that ask for `tokens` tokens each."""

    tokens: int

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts."""
        for i in range(count):
            yield Prompt("tick", 1, self.tokens, f"short/{i}")

    def provenance(self) -> dict[str, Any]:
        """Return what the result says of the data set."""
        return {"name": "short", "tokens": self.tokens}


@dataclass(frozen=True)
class Run:
    """One run as both sides saw it, request by request in the order of the schedule; absolute
    CLOCK_MONOTONIC ns.

    Requests that did not end well are left out of all but `result`.
    """

    result: Result
    records: list[Record]
    truth: Truth

    @cached_property
    def due_ns(self) -> Int64s:
        """Shape (requests,)."""
        return np.array([record.due for record in self.records], dtype=np.int64)

    @cached_property
    def sent_ns(self) -> Int64s:
        """When each request left at the earliest, shape (requests,)."""
        return np.array([record.sent for record in self.records], dtype=np.int64)

    @cached_property
    def left_ns(self) -> Int64s:
        """When each request left at the latest, shape (requests,)."""
        return np.array([record.written for record in self.records], dtype=np.int64)

    @cached_property
    def arrival_ns(self) -> Int64s:
        """When the server had read each request, shape (requests,)."""
        return self.truth.arrival_ns[self._rows]

    @cached_property
    def counts(self) -> Int64s:
        """Tokens of each request, shape (requests,); both sides agree or this raises."""
        seen = np.array([record.events for record in self.records])
        assert np.array_equal(seen, np.diff(self.truth.starts)[self._rows])
        return seen

    @cached_property
    def starts(self) -> Int64s:
        """Where the tokens of each request begin, shape (requests + 1,)."""
        return np.concatenate(([0], np.cumsum(self.counts)))

    @cached_property
    def stamps_ns(self) -> Int64s:
        """When each token arrived, as the client recorded it, shape (tokens,)."""
        return np.frombuffer(b"".join(record.marks for record in self.records), dtype=np.int64)

    @cached_property
    def earliest_ns(self) -> Int64s:
        """When each token can have arrived at the earliest, as the client recorded it, shape
        (tokens,).
        """
        return np.frombuffer(
            b"".join(record.earliest_marks for record in self.records), dtype=np.int64
        )

    @cached_property
    def read_ns(self) -> Int64s:
        """When the client read each token, shape (tokens,)."""
        return np.concatenate([record.read_times for record in self.records])

    @cached_property
    def write_ns(self) -> Int64s:
        """When the server began to write each token, shape (tokens,)."""
        return self.truth.write_ns[self._tokens]

    @cached_property
    def written_ns(self) -> Int64s:
        """When the server had written each token, shape (tokens,)."""
        return self.truth.written_ns[self._tokens]

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        """Of which tokens the client says that they arrived when they were stamped, shape
        (tokens,).
        """
        return np.equal(self.earliest_ns, self.stamps_ns)

    @property
    def is_covered(self) -> NDArray[np.bool_]:
        """Which tokens were written within the interval that the client recorded, shape
        (tokens,).
        """
        began: NDArray[np.bool_] = self.earliest_ns <= self.written_ns + TOLERANCE_NS
        ended: NDArray[np.bool_] = self.stamps_ns >= self.write_ns
        return began & ended

    @property
    def is_held_back(self) -> NDArray[np.bool_]:
        """Which tokens may have left the server's kernel after their write, shape (tokens,).

        Before a client reads, its kernel acknowledges late; and of what is not acknowledged, a
        server's kernel sends no more than its congestion window, which is 10 segments at first (RFC
        6928).
        """
        token = np.arange(len(self.write_ns))
        has_ten_before: NDArray[np.bool_] = (
            token - np.repeat(self.starts[:-1], self.counts) >= CONGESTION_WINDOW
        )
        is_unread: NDArray[np.bool_] = (
            self.read_ns[np.maximum(token - CONGESTION_WINDOW, 0)] > self.write_ns
        )
        return has_ten_before & is_unread

    @property
    def errors_ns(self) -> Int64s:
        """How far each stamp is outside of the server's call that wrote the token, shape
        (tokens,).
        """
        outside: Int64s = np.maximum(
            self.write_ns - self.stamps_ns, self.stamps_ns - self.written_ns
        )
        return outside.clip(0)

    @property
    def server_late_ns(self) -> Int64s:
        """How long after it was due the server began to write each token, shape (tokens,)."""
        return self.write_ns - self.truth.plan_ns[self._tokens]

    @property
    def client(self) -> dict[str, Any]:
        """What the measuring cost and met."""
        about: dict[str, Any] = self.result.data["loadgen"]["client"]
        return about

    @cached_property
    def _tokens(self) -> Int64s:
        """Where the truth has each token."""
        first = self.truth.starts[self._rows]
        return np.repeat(first - self.starts[:-1], self.counts) + np.arange(self.starts[-1])

    @cached_property
    def _rows(self) -> Int64s:
        """Where the truth has each request."""
        row_of = np.full(self.truth.number.max() + 1, -1)
        row_of[self.truth.number] = np.arange(len(self.truth.id))
        return row_of[[record.index for record in self.records]]


async def compared(
    server: Process,
    *,
    tokens: int,
    plan: dict[str, Any] | None = None,
    worker: bool = True,
    beside: Condition = alone,
    processor: int | None = None,
    may_wait: bool = False,
    on_phase: Callable[[str], None] = lambda phase: None,
    **settings: Any,
) -> Run:
    """Run loadgen against a metronome.

    Args:
        server: The metronome.
        tokens: Of each answer.
        plan: What the requests ask of the metronome in place of its own plan.
        worker: Measure in a process of its own, as the command does; else in this event loop, as
            the library does.
        beside: What disturbs the measuring process.
        processor: Of the measuring thread; None: any but the server's.
        may_wait: Whether what the server writes may wait in its socket for the network.
        on_phase: Told a few times a second in which phase the run is.
        settings: Of the run.
    """
    Truth.forget(server.url)
    with tempfile.TemporaryDirectory(prefix="loadgen-accuracy-") as folder:
        path = Path(folder) / "records"
        asked = loadgen.RunSettings(
            base_url=server.url,
            preflight=False,
            backend="openai-chat",
            extra_body={"metronome": plan} if plan else None,
            records=str(path),
            **settings,
        )
        result = await measured(
            server,
            asked,
            tokens,
            worker=worker,
            beside=beside,
            processor=processor,
            on_progress=lambda progress: on_phase(progress.phase),
        )
        ended_well = [record for record in RecordFile(path) if record.outcome is Outcome.OK]
    ended_well.sort(key=lambda record: record.index)
    truth = Truth.fetch(server.url)
    assert may_wait or truth.held_back == 0, (
        "what the server wrote had to wait: the time of a write is not that of its bytes"
    )
    return Run(result, ended_well, truth)


async def measured(
    server: Process,
    settings: loadgen.RunSettings,
    tokens: int,
    *,
    worker: bool = True,
    beside: Condition = alone,
    processor: int | None = None,
    on_progress: Callable[[loadgen.Progress], None] = lambda progress: None,
) -> Result:
    """Run loadgen against a server as if that were on another machine: apart from it.

    Args:
        server: The server.
        settings: Of the run.
        tokens: Of each answer.
        worker: Measure in a process of its own, as the command does; else in this event loop, as
            the library does.
        beside: What disturbs the measuring process.
        processor: Of the measuring thread; None: any but the server's.
        on_progress: Told a few times a second.
    """
    with separate_cores([server.pid], processor):
        async with open_workers(1) if worker else contextlib.nullcontext() as participant:
            pid = participant.pid if participant else None
            async with beside(pid or os.getpid()):
                return await carry_out(accepted(settings), Short(tokens), on_progress, participant)


class Watch:
    """Looks, from its making to `end`, at what the machine does beside this process, its children
    and a server.

    Attributes:
        quietest: The processor that stood still the least before.
    """

    def __init__(self, server: Process) -> None:
        self._server = server
        self._still = patience.stillness()
        self.quietest = min(self._still, key=self._still.__getitem__)
        self._before = machine.CpuTimes.now(), self._friends_s()

    def end(self) -> str:
        """What else kept the machine busy; empty if nothing did."""
        busy, friends_s = self._before
        others = machine.disturbance(busy, machine.CpuTimes.now(), self._friends_s() - friends_s)
        still = max(*self._still.values(), *stood_still().values())
        told = f"a processor stood still for {still:.1%} of the time" if still > STILL_SHARE else ""
        return ", ".join(filter(None, (others, told)))

    def _friends_s(self) -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return machine.process_cpu_s(self._server.pid) + ended.ru_utime + ended.ru_stime


@dataclass(frozen=True)
class Finding:
    """What one attempt found: in words, whether it is within bounds, and what disturbed it."""

    measured: str
    met: bool
    disturbance: str = ""


async def best_of(attempts: int, attempt: Callable[[], Awaitable[Finding]]) -> Finding:
    """The first attempt whose bound is met, else the last: machines are shared."""
    for _ in range(attempts - 1):
        found = await attempt()
        if found.met:
            return found
        print(f"again: {found.measured}; {found.disturbance or 'undisturbed'}")
    return await attempt()


def ms(ns: float) -> str:
    """A time with its unit, to the microsecond."""
    return f"{ns / 1e6:.3f} ms"


def us(ns: float) -> str:
    """A short time with its unit."""
    return f"{ns / 1e3:.1f} us"
