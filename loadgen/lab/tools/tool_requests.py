"""ToolRequests: the values of single requests that another tool has kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput
from loadgen.util.arrays import Floats

Bools = NDArray[np.bool_]
NEEDED = ("ttfts", "itls", "output_lens")


@dataclass(frozen=True, eq=False)
class ToolRequests:
    """The requests of a run in the order in which the tool lists them; arrays have an entry per request.

    Attributes:
        ok: Whether the request succeeded.
        ttft: Time to first token, ms; NaN if it has none.
        tpot: Time per output token after the first, ms; NaN if it has none.
        e2el: End-to-end latency, ms; where the tool does not keep it, TTFT and gaps, which end with the last token.
        gaps: The gaps of each request, ms.
        gap: What loadgen calls them: icl or itl.
        input: Input tokens.
        output: Output tokens.
        start_s: When it was sent, s on a clock of its own; None if unknown.
    """

    ok: Bools
    ttft: Floats
    tpot: Floats
    e2el: Floats
    gaps: list[Floats]
    gap: str
    input: Floats
    output: Floats
    start_s: Floats | None

    @classmethod
    def of(cls, flat: Mapping[str, Any], gap: str, where: str) -> Self | None:
        """Read them from the values of a result; None if it was saved without them.

        Args:
            flat: The values, by vLLM's names.
            where: Names the result in messages.

        Raises:
            BadInput: They are not whole.
        """
        if not all(flat.get(name) for name in NEEDED):
            return None

        def column(name: str) -> Floats:
            return np.array(flat.get(name) or (), dtype=float)

        try:
            gaps = [1000 * np.array(each, dtype=float) for each in flat["itls"]]
            ttft, output, inputs, start_s = map(column, ("ttfts", "output_lens", "input_lens", "start_times"))
            ttft, e2el = 1000 * ttft, 1000 * column("latencies")
            errors = flat.get("errors") or [""] * len(ttft)
            ok = np.array([not error for error in errors]) & (output > 0)
            e2el = e2el if e2el.size else ttft + np.array([each.sum() for each in gaps])
            inputs = inputs if inputs.size else np.zeros(len(ttft))
            ttft, e2el = (np.where(ok, each, np.nan) for each in (ttft, e2el))
            tpot = np.where(output > 1, (e2el - ttft) / np.maximum(output - 1, 1), np.nan)
            outputs, starts = np.where(ok, output, 0.0), start_s if start_s.size else None
            return cls(ok, ttft, tpot, e2el, gaps, gap, inputs, outputs, starts)
        except (TypeError, ValueError) as error:
            raise BadInput(
                "FILE", f"{where} has lists of requests that do not fit together ({error})", "name a whole result"
            ) from error

    def __len__(self) -> int:
        return len(self.ok)

    def values(self, latency: str) -> list[Floats]:
        """Return the values of each request that succeeded, ms: one or none of a latency, any number of gaps.

        Args:
            latency: ttft, tpot, e2el, or what `gap` names.
        """
        if latency == self.gap:
            return [gaps if ok else gaps[:0] for gaps, ok in zip(self.gaps, self.ok, strict=True)]
        column: Floats = getattr(self, latency)
        return [column[i : i + 1] if known else column[:0] for i, known in enumerate(~np.isnan(column))]

    @property
    def latencies(self) -> tuple[str, ...]:
        """The latencies that there are."""
        return ("ttft", "tpot", "e2el", self.gap)
