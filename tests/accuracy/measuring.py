"""Measuring: a run of loadgen beside what the server knows of it."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

import loadgen
from loadgen.measurer import Worker
from loadgen.prompts import Prompt
from loadgen.runner import Result
from loadgen.testing.truth import Truth

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
    records: list[dict[str, Any]]
    truth: Truth

    @cached_property
    def due_ns(self) -> Int64s:
        """Shape (requests,)."""
        return self.result.snapshot.start_ns + self._column("due")

    @cached_property
    def sent_ns(self) -> Int64s:
        """Shape (requests,)."""
        return self.due_ns + self._column("sent")

    @cached_property
    def arrival_ns(self) -> Int64s:
        """When the server had read each request, shape (requests,)."""
        return self.truth.arrival_ns[self._rows]

    @cached_property
    def counts(self) -> Int64s:
        """Tokens of each request, shape (requests,); both sides agree or this raises."""
        seen = np.array([len(record["token_events"]) for record in self.records])
        assert np.array_equal(seen, np.diff(self.truth.starts)[self._rows])
        return seen

    @cached_property
    def starts(self) -> Int64s:
        """Where the tokens of each request begin, shape (requests + 1,)."""
        return np.concatenate(([0], np.cumsum(self.counts)))

    @cached_property
    def seen_ns(self) -> Int64s:
        """The client's stamps, shape (tokens,)."""
        stamps = np.concatenate([np.array(record["token_events"], dtype=np.int64) for record in self.records])
        return stamps + np.repeat(self.due_ns, self.counts)

    @cached_property
    def written_ns(self) -> Int64s:
        """The server's, shape (tokens,)."""
        first = self.truth.starts[self._rows]
        rows = np.repeat(first - self.starts[:-1], self.counts) + np.arange(self.starts[-1])
        return self.truth.write_ns[rows]

    @property
    def errors_ns(self) -> Int64s:
        """Client's stamp less server's, shape (tokens,)."""
        return self.seen_ns - self.written_ns

    @property
    def client(self) -> dict[str, Any]:
        """What the measuring cost and met."""
        about: dict[str, Any] = self.result.data["loadgen"]["client"]
        return about

    @property
    def disturbance(self) -> str:
        """What else kept the machine busy, or the server from keeping its own time; empty if nothing did."""
        server = "the server was late itself" if self.truth.overloaded else ""
        return ", ".join(filter(None, (self.client["disturbance"], server)))

    @cached_property
    def _rows(self) -> Int64s:
        """Where the truth has each request."""
        row_of = np.full(self.truth.number.max() + 1, -1)
        row_of[self.truth.number] = np.arange(len(self.truth.id))
        return row_of[[record["index"] for record in self.records]]

    def _column(self, name: str) -> Int64s:
        return np.array([record[name] for record in self.records], dtype=np.int64)


async def measured(url: str, *, tokens: int, plan: dict[str, Any] | None = None, **settings: Any) -> Run:
    """Run loadgen as its command does, in a process of its own, against the metronome at `url`.

    Args:
        url: Of the metronome.
        tokens: Of each answer.
        plan: What the requests ask of the metronome in place of its own plan.
        settings: Of the run.
    """
    Truth.forget(url)
    with tempfile.TemporaryDirectory(prefix="loadgen-accuracy-") as folder:
        path = Path(folder) / "records"
        asked = loadgen.RunSettings(
            base_url=url,
            backend="openai-chat",
            extra_body={"metronome": plan} if plan else None,
            records=str(path),
            **settings,
        )
        async with Worker() as worker:
            result = await loadgen.run(asked, dataset=Short(tokens), measurer=worker)
        records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    ended_well = sorted((r for r in records if r["outcome"] == "ok"), key=lambda record: int(record["index"]))
    return Run(result, ended_well, Truth.fetch(url))
