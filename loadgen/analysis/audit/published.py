"""Published: one result as somebody published it, in names that are neither console's nor file's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.analysis.audit.finding import Place
from loadgen.analysis.audit.number import Number

MIN_EQUAL_LENGTHS = 100  # requests: of sets of n lengths that differ, one in n has a whole number as its mean


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
        over_guidellm: It was printed from guidellm's events, whose rates are not of the whole run.
        starts: Of how many starts it is one, chosen to stand for them; numbers elsewhere may be their means.
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
    over_guidellm: bool = False
    starts: int = 1

    def get(self, name: str) -> Number | None:
        """A number, or None where it was not published."""
        return self.numbers.get(name)

    def number(self, name: str) -> Number | None:
        """A number by the name that a table has for it."""
        e2el = self.get("mean_e2el_ms")
        return e2el / 1000 if name == "latency_s" and e2el is not None else self.get(name)

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

        Without their lengths, a mean that is a whole number is taken for the length of each, of MIN_EQUAL_LENGTHS
        replies or more.
        """
        if self.lengths is not None:
            lengths = self.lengths
        elif counts := self.all("output_tokens", "ok"):
            tokens, ok = (int(count.value) for count in counts)
            lengths = frozenset({tokens // ok}) if ok >= MIN_EQUAL_LENGTHS and tokens % ok == 0 else frozenset()
        else:
            lengths = frozenset()
        return next(iter(lengths)) if len(lengths) == 1 and min(lengths) >= 2 else None

    def tokens_per_second(self) -> Number | None:
        """Input and output tokens by duration, whatever the result says of its rate."""
        counts = self.all("input_tokens", "output_tokens", "duration_s")
        if counts is None or counts[2].low <= 0:
            return None
        return (counts[0] + counts[1]) / counts[2]

    def per_request(self) -> tuple[float, float] | None:
        """Input and output tokens of a request that succeeded; None where they were not published."""
        counts = self.all("input_tokens", "output_tokens", "ok")
        if counts is None or min(count.value for count in counts) <= 0:
            return None
        return counts[0].value / counts[2].value, counts[1].value / counts[2].value

    def latency_s(self) -> Number | None:
        """The mean time of a request: as published, else TTFT and the gaps of a reply of mean length."""
        if e2el := self.get("mean_e2el_ms"):
            return e2el / 1000
        known = self.all("mean_ttft_ms", "mean_tpot_ms", "output_tokens", "ok")
        if known is None or known[3].low <= 0:
            return None
        ttft, tpot, tokens, ok = known
        return (ttft + tpot * (tokens / ok - 1)) / 1000

    def same_run(self, other: "Published") -> bool:
        """Whether both are one and the same run: all that both print is equal, and that is enough to be no chance."""
        shared = self.numbers.keys() & other.numbers.keys()
        known = {"duration_s", "output_tokens", "mean_ttft_ms"} <= shared or len(self.numbers) == len(shared) > 1
        return known and all(self.numbers[name] == other.numbers[name] for name in shared)

    def decode_ms(self) -> Number | None:
        """The time from a token to the next, over all tokens: (E2EL - TTFT) / (tokens - 1), each of means."""
        known = self.all("mean_e2el_ms", "mean_ttft_ms", "output_tokens", "ok")
        if known is None or known[3].low <= 0:
            return None
        e2el, ttft, tokens, ok = known
        gaps = tokens / ok - 1
        return (e2el - ttft) / gaps if gaps.low > 0 else None
