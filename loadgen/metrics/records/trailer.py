"""The trailer of a run: what only the measuring processes know. Last line of a records file."""

from typing import Any, Literal, Self

from msgspec import Struct, field, structs
from msgspec.structs import replace

from loadgen.config.slo import StopCondition
from loadgen.core.histogram import Histogram
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.snapshot import OF_LOOP, LoopTotals
from loadgen.metrics.sums import add_facts

Moment = Literal["before", "during", "after"]


class WorkerReport(Struct, frozen=True, kw_only=True):
    """What one worker, a process or a loop, reports of its own partition of the run.

    Attributes:
        number: The index of that partition, from 0.
        client: Resources that measuring took, and disturbances.
        schedule_sha256: Hash of the whole schedule that the worker had; None where it died before
            it could say.
        host: The address of its machine; None: the one that coordinated the run.
        lost: How the worker died, as in "was killed by signal 9"; None where it came to its end.
        cache_warmed: Requests that succeeded before the clock started, to warm the server's prefix
            cache up.
        start_unix_ns: When the clock started, ns since 1970; None where it died before it could
            say.
    """

    number: int = 0
    client: ClientUsage = ClientUsage()
    schedule_sha256: str | None = None
    host: str | None = None
    lost: str | None = None
    cache_warmed: int = 0
    start_unix_ns: int | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the report from its JSON form.

        Raises:
            KeyError, TypeError: `data` is no report.
        """
        return cls(**data | {"client": ClientUsage.from_dict(data["client"])})


class ServerCall(Struct, frozen=True):
    """A call to a server beside the load, of its profiler or to empty its caches: one POST, and how
    it ended.

    Attributes:
        moment: Before the clock started, while it ran, or after the last request.
        url: Where it went, without credentials.
        took_ms: How long the answer took, ms.
        error: Why it failed; None: it did not.
    """

    moment: Moment
    url: str
    took_ms: float
    error: str | None = None


class StopEvent(Struct, frozen=True):
    """The condition of --stop-when that ended a run.

    Attributes:
        condition: The condition, as the flag spells it.
        at_s: When it held, s on the clock.
        value: The value at that time: ms of a latency, a share of an error rate, a number of
            errors; None: it falls among requests that failed.
    """

    condition: str
    at_s: float
    value: float | None

    def __str__(self) -> str:
        return f"--stop-when {self.condition}: {self.shown} at {self.at_s:.1f} s"

    @property
    def shown(self) -> str:
        """The value as text."""
        if self.value is None:
            return "the percentile is a failed request,"
        (condition,) = StopCondition.parse(self.condition)
        return condition.with_unit(self.value)


class RunTrailer(Struct, frozen=True, kw_only=True):
    """Facts that are known once all requests have ended, and that no record holds.

    With the header, the records and `LoopTotals` they make the whole result. The last line of a
    records file holds the trailer and the totals.

    Attributes:
        workers: The report of each worker; `records_error` and `capture` are known only after the
            line is written.
        never_sent: For each worker that was stopped, the number of the first request that it did
            not hand to a connection, and how many those are.
        telemetry: Server and GPU metrics during the run.
        no_answer_since_s: Seconds on the clock since when the server refused all connections; None:
            it did not.
        stopped: The condition of --stop-when that ended the run; None: none did.
        calls: Calls to the servers beside the load, in their order.
        facts: What features of the run have found, by its name: a number, a list, or facts. Those
            of parts of a run add up.
    """

    workers: tuple[WorkerReport, ...]
    never_sent: tuple[tuple[int, int], ...] = ()
    telemetry: Telemetry = Telemetry()
    no_answer_since_s: float | None = None
    stopped: StopEvent | None = None
    calls: tuple[ServerCall, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def tokenized(self) -> dict[int, int]:
        """Output tokens of answers that the server did not count, by the number of the request."""
        return dict(self.facts.get("tokenized", ()))

    @property
    def sampled(self) -> dict[int, int]:
        """Tokens in the text of some that it did count, by the number of the request."""
        return dict(self.facts.get("sampled", ()))

    @property
    def records_error(self) -> str | None:
        """Why the records are not complete, or None."""
        return next(
            (error for worker in self.workers if (error := worker.client.records_error)), None
        )

    def with_records_error(self, error: str | None) -> Self:
        """Return a copy whose first worker reports this error, unless a worker reports one
        already.
        """
        if error is None or self.records_error:
            return self
        first, *others = self.workers
        first = replace(first, client=replace(first.client, records_error=error))
        return replace(self, workers=(first, *others))

    def merge(self, other: Self) -> Self:
        """Combine the facts of two parts of a run; telemetry, calls and what ended it are set on
        the whole.
        """
        return replace(
            self,
            workers=tuple(sorted(self.workers + other.workers, key=lambda worker: worker.number)),
            never_sent=self.never_sent + other.never_sent,
            facts=add_facts(self.facts, other.facts),
        )

    def to_dict(self, totals: LoopTotals) -> dict[str, Any]:
        """Return what orjson writes of the trailer.

        Args:
            totals: What the snapshot of the run holds and its records do not; the same line holds
                it.
        """
        line = structs.asdict(self) | structs.asdict(totals)
        del line["workers"]
        return line | {
            "shards": self.workers,
            "histograms": {
                name: histogram.to_dict() for name, histogram in totals.histograms.items()
            },
            "telemetry": self.telemetry.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> tuple[Self, LoopTotals]:
        """Read the trailer from its JSON form.

        Returns:
            The trailer, and the totals of the same line.

        Raises:
            KeyError, TypeError, ValueError: `data` is no trailer.
        """
        trailer = cls(
            workers=tuple(map(WorkerReport.from_dict, data["shards"])),
            never_sent=tuple((first, count) for first, count in data["never_sent"]),
            telemetry=Telemetry.from_dict(data.get("telemetry") or {"sources": [], "gpus": []}),
            no_answer_since_s=data.get("no_answer_since_s"),
            stopped=StopEvent(**stopped) if (stopped := data.get("stopped")) else None,
            calls=tuple(ServerCall(**call) for call in data.get("calls", ())),
            facts=data["facts"],
        )
        totals = LoopTotals(
            scheduled=data["scheduled"],
            **{name: data.get(name, 0) for name in OF_LOOP},  # older files do not have all of them
            partial=data["partial"],
            histograms={
                name: Histogram.from_dict(counts) for name, counts in data["histograms"].items()
            },
        )
        return trailer, totals
