"""ToolResult: the result of one run of another tool, and the values of its single requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput
from loadgen.lab.audit.auditor import audit_result
from loadgen.lab.audit.published import Published
from loadgen.util.arrays import Floats

Bools = NDArray[np.bool_]
NEEDED = ("ttfts", "itls", "output_lens")


@dataclass(frozen=True, eq=False)
class ToolRequests:
    """The requests of a run in the order in which the tool lists them; arrays have an entry per
    request.

    Attributes:
        ok: Whether the request succeeded.
        ttft: Time to first token, ms; NaN if it has none.
        tpot: Time per output token after the first, ms; NaN if it has none.
        e2el: End-to-end latency, ms; where the tool does not keep it, TTFT and gaps, which end with
            the last token.
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
            gap: As the attribute.
            where: Names the result in messages.

        Raises:
            BadInput: They are not whole.
        """
        if not all(flat.get(name) for name in NEEDED):
            return None

        def column(name: str) -> Floats:
            return np.array(flat.get(name) or (), dtype=float)

        try:
            gaps = [1000 * np.array(item, dtype=float) for item in flat["itls"]]
            ttft, output, inputs, start_s = map(
                column, ("ttfts", "output_lens", "input_lens", "start_times")
            )
            ttft = 1000 * ttft
            e2el = 1000 * column("latencies")
            errors = flat.get("errors") or [""] * len(ttft)
            ok = np.array([not error for error in errors]) & (output > 0)
            e2el = e2el if e2el.size else ttft + np.array([item.sum() for item in gaps])
            inputs = inputs if inputs.size else np.zeros(len(ttft))
            ttft, e2el = (np.where(ok, item, np.nan) for item in (ttft, e2el))
            tpot = np.where(output > 1, (e2el - ttft) / np.maximum(output - 1, 1), np.nan)
            outputs = np.where(ok, output, 0.0)
            starts = start_s if start_s.size else None
            return cls(ok, ttft, tpot, e2el, gaps, gap, inputs, outputs, starts)
        except (TypeError, ValueError) as error:
            raise BadInput(
                (),
                f"{where} has lists of requests that do not fit together ({error})",
                "name a whole result",
            ) from error

    def __len__(self) -> int:
        return len(self.ok)

    def values(self, latency: str) -> list[Floats]:
        """Return the values of each request that succeeded, ms: one or none of a latency, any
        number of gaps.

        Args:
            latency: ttft, tpot, e2el, or what `gap` names.
        """
        if latency == self.gap:
            return [gaps if ok else gaps[:0] for gaps, ok in zip(self.gaps, self.ok, strict=True)]
        column: Floats = getattr(self, latency)
        return [
            column[i : i + 1] if has_value else column[:0]
            for i, has_value in enumerate(~np.isnan(column))
        ]

    @property
    def latencies(self) -> tuple[str, ...]:
        """The latencies that there are."""
        return ("ttft", "tpot", "e2el", self.gap)


@dataclass(frozen=True)
class ToolResult:
    """The result of one run of another tool.

    Attributes:
        tool: The tool that wrote it.
        flat: Its values, by the names of `vllm bench serve`; latencies in ms, of single requests
            in s.
        gap: What loadgen calls its ITL: icl, the gap between events; itl where it divides a gap by
            the tokens.
        incomparable: What of it cannot be compared, and why; empty: nothing.
        details: Why the values of single requests are missing, after the name of the file.
        where: The path of its file, and the line if it is one of several; for messages.
        published: Its numbers, for the audit; None: the audit does not read such files.
        partial: Why the run ended early; None if it did not, or the file does not say.
    """

    tool: str
    flat: Mapping[str, Any]
    gap: str
    incomparable: str
    details: str
    where: str = ""
    published: Published | None = None
    partial: str | None = None

    @cached_property
    def requests(self) -> ToolRequests | None:
        """The values of single requests; None if it was saved without them.

        Raises:
            BadInput: They are not whole.
        """
        return ToolRequests.of(self.flat, self.gap, self.where)

    def number(self, name: str) -> float | None:
        """Return a number by vLLM's name; None if it has none."""
        value = self.flat.get(name)
        return (
            float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        )

    @property
    def about(self) -> str:
        """Say what it is, how its latencies were measured, and what cannot be compared."""
        not_compared = f"; {self.incomparable}" if self.incomparable else ""
        ended = f", PARTIAL ({self.partial})" if self.partial else ""
        return (
            f"a result of {self.tool}{ended}: latencies are as that tool measures them, from send "
            "and between chunks; there is no verdict, and nothing is known of the client's error"
            f"{not_compared}"
        )

    @property
    def audit(self) -> str:
        """Say in one line what `loadgen audit` finds in it."""
        if self.published is None:
            return "audit: not read by it"
        wrong = [finding for finding in audit_result(self.published) if not finding.note]
        if not wrong:
            return "audit: no inconsistent numbers"
        first = wrong[0]
        should = f", should be {first.should_be}" if first.should_be else ""
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return (
            f"audit: {first.rule}: {first.says}{should}{more}: see loadgen audit {first.place.file}"
        )
