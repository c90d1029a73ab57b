"""Meaning: the distributions of a result that a comparison reads, so that all sides use one definition."""

from dataclasses import dataclass

from loadgen.config import slo
from loadgen.report.result.latencies import Clock


@dataclass(frozen=True, slots=True)
class Meaning:
    """How the latencies of all sides are read.

    Attributes:
        clock: Where latencies start: due or sent.
        as_vllm: Whether TPOT divides by the output tokens but one, as other tools do, and not by those after the first
            event.
    """

    clock: Clock
    as_vllm: bool = False

    def distribution(self, latency: str) -> str:
        """Return the distribution of a latency: ttft, ttfo, tpot, icl, itl or e2el."""
        return "tpot_n1" if self.as_vllm and latency == "tpot" else slo.distribution(latency, self.clock)
