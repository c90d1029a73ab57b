"""Published: one result as somebody published it, in names that are neither console's nor file's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.analysis.audit.finding import Place
from loadgen.analysis.audit.number import Number

SURE = 100  # requests: of sets of n lengths that differ, one in n has a whole number as its mean


def title(name: str) -> str:
    """How a latency is called: mean_ttft_ms -> "mean TTFT", p99_itl_ms -> "P99 ITL"; other names as they are."""
    if not name.endswith("_ms"):
        return name
    statistic, metric, _ = name.split("_")
    return f"{statistic.upper() if statistic[0] == 'p' else statistic} {metric.upper()}"


@dataclass(frozen=True, slots=True)
class Published:
    """One result.

    Its numbers are `ok`, `failed` and `cap` (requests), `rate` (requests/s that were asked for, if limited),
    `duration_s`, `input_tokens`, `output_tokens`, `requests_per_s`, `input_per_s`, `output_per_s`, `total_per_s`,
    `peak_output_per_s`, `peak_in_flight`, `mean_in_flight`, and latencies such as `mean_ttft_ms`, `median_itl_ms`,
    `p99_e2el_ms`, with vLLM's meanings. What was not printed, or as n/a, is not among them.

    Attributes:
        numbers: By name.
        places: Where each stands, by name.
        place: Where the result begins.
        title: What stands above it: a comment. Empty where nothing does.
        at: How far into its file it begins, in characters.
        lengths: How many tokens the replies had, where a file tells of each.
        tpot_with_first: TPOT counts from the start of the request, over all tokens, as guidellm defines it.
        verdict: What the tool said of its own run, where it says such a thing.
        data: What it was read from, where that is JSON by vLLM's names; else empty.
    """

    numbers: Mapping[str, Number]
    places: Mapping[str, Place]
    place: Place
    title: str = ""
    at: int = 0
    lengths: frozenset[int] | None = field(default=None)
    tpot_with_first: bool = False
    verdict: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Number | None:
        """A number, or None where it was not published."""
        return self.numbers.get(name)

    def where(self, name: str) -> Place:
        """Where a number stands."""
        return self.places.get(name, self.place)

    def all(self, *names: str) -> tuple[Number, ...] | None:
        """These numbers; None where one of them was not published."""
        found = tuple(self.numbers[name] for name in names if name in self.numbers)
        return found if len(found) == len(names) else None

    @property
    def reply(self) -> int | None:
        """How many tokens each reply had, where all had as many: 2 or more; None where they did not, or nobody knows.

        Without their lengths, a mean that is a whole number is taken for the length of each, of SURE replies or more.
        """
        if self.lengths is not None:
            lengths = self.lengths
        elif counts := self.all("output_tokens", "ok"):
            tokens, ok = (int(count.value) for count in counts)
            lengths = frozenset({tokens // ok}) if ok >= SURE and tokens % ok == 0 else frozenset()
        else:
            lengths = frozenset()
        return next(iter(lengths)) if len(lengths) == 1 and min(lengths) >= 2 else None

    def tokens_per_second(self) -> Number | None:
        """Input and output tokens by duration, whatever the result says of its rate."""
        counts = self.all("input_tokens", "output_tokens", "duration_s")
        if counts is None or counts[2].low <= 0:
            return None
        return (counts[0] + counts[1]) / counts[2]

    def decode_ms(self) -> Number | None:
        """The time from a token to the next, over all tokens: (E2EL - TTFT) / (tokens - 1), each of means."""
        known = self.all("mean_e2el_ms", "mean_ttft_ms", "output_tokens", "ok")
        if known is None or known[3].low <= 0:
            return None
        e2el, ttft, tokens, ok = known
        gaps = tokens / ok - 1
        return (e2el - ttft) / gaps if gaps.low > 0 else None
