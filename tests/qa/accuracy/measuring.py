"""Measuring: a run of loadgen beside what the server knows of it."""

import contextlib
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
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.run_result import Result
from loadgen.runner.workers import open_workers
from loadgen.testing.process import Process
from loadgen.testing.truth import Truth
from loadgen.util import machine
from loadgen.util.affinity import separate_cores
from loadgen.workload.prompt import Prompt
from tests.qa.accuracy.stillness import STILL_SHARE, patience, stood_still

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Short:
    """A data set of one-word prompts that ask for `tokens` tokens each."""

    tokens: int

    def prompts(self, count: int) -> Iterator[Prompt]:
        for i in range(count):
            yield Prompt("tick", 1, self.tokens, f"short/{i}")

    def provenance(self) -> dict[str, Any]:
        return {"name": "short", "tokens": self.tokens}


@dataclass(frozen=True)
class Run:
    """One run as both sides saw it, request by request in the order of the schedule; absolute CLOCK_MONOTONIC ns.

    Requests that did not end well are left out of all but `result`.
    """

    result: Result
    records: list[Record]
    truth: Truth
    machine_disturbance: str

    @cached_property
    def due_ns(self) -> Int64s:
        """Shape (requests,)."""
        return np.array([record.due for record in self.records], dtype=np.int64)

    @cached_property
    def sent_ns(self) -> Int64s:
        """Shape (requests,)."""
        return np.array([record.sent for record in self.records], dtype=np.int64)

    @cached_property
    def arrival_ns(self) -> Int64s:
        """When the server had read each request, shape (requests,)."""
        return self.truth.arrival_ns[self._rows]

    @cached_property
    def way_ns(self) -> Int64s:
        """From the client's send until the server had read each request, shape (requests,)."""
        return self.arrival_ns - self.sent_ns

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
    def seen_ns(self) -> Int64s:
        """The client's stamps, shape (tokens,)."""
        return np.frombuffer(b"".join(record.marks for record in self.records), dtype=np.int64)

    @cached_property
    def written_ns(self) -> Int64s:
        """The server's, shape (tokens,)."""
        return self.truth.write_ns[self._tokens]

    @cached_property
    def server_late_ns(self) -> Int64s:
        """How long after it was due the server wrote each token, shape (tokens,)."""
        return self.written_ns - self.truth.plan_ns[self._tokens]

    @property
    def errors_ns(self) -> Int64s:
        """Client's stamp less server's, shape (tokens,)."""
        return self.seen_ns - self.written_ns

    @property
    def client(self) -> dict[str, Any]:
        """What the measuring cost and met."""
        about: dict[str, Any] = self.result.data["loadgen"]["client"]
        return about

    def excuse(self, *, sound: bool, server_late: bool = False) -> str:
        """What else kept the machine busy, or the server from keeping its own time; empty if nothing did.

        Others make a run worse, but hardly every moment of it: what is not `sound`, judged by its best samples, has no
        excuse. `server_late` says that the server was, by more than its writing shows.
        """
        server = "the server was late itself" if self.truth.overloaded or server_late else ""
        return ", ".join(filter(None, (self.machine_disturbance, server))) if sound else ""

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
    on_phase: Callable[[str], None] = lambda phase: None,
    **settings: Any,
) -> Run:
    """Run loadgen against a metronome.

    Args:
        server: The metronome.
        tokens: Of each answer.
        plan: What the requests ask of the metronome in place of its own plan.
        worker: Measure in a process of its own, as the command does; else in this event loop, as the library does.
        on_phase: Told a few times a second in which phase the run is.
        settings: Of the run.
    """
    Truth.forget(server.url)
    watch = Watch(server)
    with tempfile.TemporaryDirectory(prefix="loadgen-accuracy-") as folder:
        path = Path(folder) / "records"
        asked = loadgen.RunSettings(
            base_url=server.url,
            backend="openai-chat",
            extra_body={"metronome": plan} if plan else None,
            records=str(path),
            **settings,
        )
        result = await measured(
            server, asked, tokens, watch.quietest, worker=worker, on_progress=lambda progress: on_phase(progress.phase)
        )
        ended_well = [record for record in RecordFile(path) if record.outcome is Outcome.OK]
    ended_well.sort(key=lambda record: record.index)
    return Run(result, ended_well, Truth.fetch(server.url), watch.end())


async def measured(
    server: Process,
    settings: loadgen.RunSettings,
    tokens: int,
    processor: int,
    *,
    worker: bool = True,
    on_progress: Callable[[loadgen.Progress], None] = lambda progress: None,
) -> Result:
    """Run loadgen against a server as if that were on another machine: apart from it.

    Args:
        server: The server.
        settings: Of the run.
        tokens: Of each answer.
        processor: Of the measuring thread.
        worker: Measure in a process of its own, as the command does; else in this event loop, as the library does.
        on_progress: Told a few times a second.
    """
    with separate_cores([server.pid], processor):
        async with open_workers(1) if worker else contextlib.nullcontext() as participant:
            return await loadgen.run(settings, dataset=Short(tokens), participant=participant, on_progress=on_progress)


class Watch:
    """Looks, from its making to `end`, at what the machine does beside this process, its children and a server.

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
