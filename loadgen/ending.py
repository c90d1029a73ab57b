"""Ending: what only the measuring process knows of a run, and only once all its requests have ended."""

from dataclasses import dataclass
from typing import Any, Self

from loadgen.client import Client
from loadgen.histogram import Histogram
from loadgen.telemetry import Telemetry


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The last line of a file of records: with the `Heading` and the records it makes the whole result.

    Attributes:
        scheduled: How many requests were to be sent; where time alone bounded the run, how many were.
        never_sent: How many of them no connection was ever asked for.
        warm_connections: Connections that were open when the clock started.
        tokenized: Output tokens that the tokenizer counted, by the number of the request.
        partial: Why the run ended early, or None.
        client: What the measuring cost and met, but for what is known only after the records are closed.
        histograms: Waits of the loop, by their names; ns.
        telemetry: What servers and GPUs said meanwhile.
    """

    scheduled: int
    never_sent: int
    warm_connections: int
    tokenized: dict[int, int]
    partial: str | None
    client: Client
    histograms: dict[str, Histogram]
    telemetry: Telemetry = Telemetry()

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return vars(self) | {
            "tokenized": sorted(self.tokenized.items()),
            "client": self.client.to_dict(),
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
            never_sent=data["never_sent"],
            warm_connections=data["warm_connections"],
            tokenized=dict(data["tokenized"]),
            partial=data["partial"],
            client=Client.from_dict(data["client"]),
            histograms={name: Histogram.from_dict(counts) for name, counts in data["histograms"].items()},
            telemetry=Telemetry.from_dict(data.get("telemetry") or {"sources": [], "gpus": []}),
        )
