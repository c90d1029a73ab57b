"""Ending: what only those who measured know of a run, and only once all its requests have ended."""

from dataclasses import dataclass, field
from typing import Any, Self

from loadgen.core.histogram import Histogram
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.worker_report import Shard


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The last line of a file of records: with the `Heading` and the records it makes the whole result.

    Attributes:
        scheduled: How many requests were to be sent; where time alone bounded the run, how many were.
        never_sent: Of each worker that was stopped, the number of the first request that no connection was ever asked
            for, and how many those are.
        warm_connections: Connections that were open when the clock started.
        repeated_prompts: As in `snapshot.COUNTERS`.
        tokenized: Output tokens that the tokenizer counted where the server did not, by the number of the request.
        sampled: Tokens of the text of some answers that the server did count, likewise.
        partial: Why the run ended early, or None.
        shards: What became of each worker, but for what is known only after the records are closed.
        histograms: Waits of the loop, by their names; ns.
        telemetry: What servers and GPUs said meanwhile.
        no_answer_since_s: Seconds on the clock from which on the server refused all connections; None: it did not.
    """

    scheduled: int
    never_sent: tuple[tuple[int, int], ...]
    warm_connections: int
    tokenized: dict[int, int]
    partial: str | None
    shards: tuple[Shard, ...]
    histograms: dict[str, Histogram]
    telemetry: Telemetry = Telemetry()
    sampled: dict[int, int] = field(default_factory=dict)
    repeated_prompts: int = 0
    no_answer_since_s: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return vars(self) | {
            "tokenized": sorted(self.tokenized.items()),
            "sampled": sorted(self.sampled.items()),
            "shards": [shard.to_dict() for shard in self.shards],
            "histograms": {name: histogram.to_dict() for name, histogram in self.histograms.items()},
            "telemetry": self.telemetry.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The ending of which `to_dict` made `data`.

        Raises:
            KeyError, TypeError, ValueError: It made something else.
        """
        return cls(
            scheduled=data["scheduled"],
            never_sent=tuple((first, count) for first, count in data["never_sent"]),
            warm_connections=data["warm_connections"],
            tokenized=dict(data["tokenized"]),
            sampled=dict(data.get("sampled", ())),  # older files do not have it
            partial=data["partial"],
            shards=tuple(map(Shard.from_dict, data["shards"])),
            histograms={name: Histogram.from_dict(counts) for name, counts in data["histograms"].items()},
            telemetry=Telemetry.from_dict(data.get("telemetry") or {"sources": [], "gpus": []}),
            repeated_prompts=data.get("repeated_prompts", 0),  # older files do not say
            no_answer_since_s=data.get("no_answer_since_s"),
        )
