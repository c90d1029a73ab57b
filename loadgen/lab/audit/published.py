"""Published: one result as somebody published it, in neutral names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.number import UNKNOWN, Number

# Requests: of sets of n lengths that differ, one in n has a whole number as its mean.
MIN_EQUAL_LENGTHS = 100


def title(name: str) -> str:
    """How a latency is called: mean_ttft_ms -> "mean TTFT", p99_itl_ms -> "P99 ITL"; other names
    as they are.
    """
    if not name.endswith("_ms"):
        return name
    statistic, metric, _ = name.split("_")
    return f"{statistic.upper() if statistic[0] == 'p' else statistic} {metric.upper()}"


@dataclass(frozen=True, slots=True)
class Published:
    """One result.

    Its numbers are `ok`, `failed` and `cap` (requests), `rate` (requests/s that were asked for, if
    limited), `duration_s`, `input_tokens`, `output_tokens`, `retokenized` (tokens of the text of
    the replies), `requests_per_s`, `input_per_s`,
    `output_per_s`, `total_per_s`, `peak_output_per_s`, `peak_in_flight`, `mean_in_flight`, and
    latencies such as `mean_ttft_ms`, `median_itl_ms`, `p99_e2el_ms`, with vLLM's meanings. What was
    not printed, or as n/a, is not among them.

    Attributes:
        numbers: By name.
        places: Where each number stands, by name.
        place: Where the result begins.
        title: What stands above it: a comment; empty where nothing does.
        at: How far into its file it begins, in characters.
        lengths: How many tokens the replies had; None where the file does not tell.
        tpot_with_first: TPOT counts from the start of the request, over all tokens, as guidellm
            defines it.
        verdict: What the tool said of its own run; empty where it says nothing.
        data: What it was read from, where that is JSON by vLLM's names; else empty.
        over_guidellm: It was printed from guidellm's events, whose rates are not of the whole run.
        starts: Of how many starts it is one, chosen to stand for them; numbers elsewhere may be
            their means.
    """

    numbers: Mapping[str, Number]
    places: Mapping[str, Place]
    place: Place
    title: str = ""
    at: int = 0
    lengths: frozenset[int] | None = None
    tpot_with_first: bool = False
    verdict: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    over_guidellm: bool = False
    starts: int = 1

    def get(self, name: str) -> Number | None:
        """A number, or None where it was not published."""
        return self.numbers.get(name)

    def __getitem__(self, name: str) -> Number:
        """A number; unknown where it was not published."""
        return self.numbers.get(name, UNKNOWN)

    def number(self, name: str) -> Number:
        """A number by the name that a table has for it."""
        return self["mean_e2el_ms"] / 1000 if name == "latency_s" else self[name]

    def where(self, name: str) -> Place:
        """Where a number stands."""
        return self.places.get(name, self.place)

    @property
    def reply(self) -> int | None:
        """How many tokens each reply had, where all had as many: 2 or more; None where they did
        not, or nobody knows.

        Without their lengths, a mean that is a whole number is taken for the length of each, of
        MIN_EQUAL_LENGTHS replies or more.
        """
        lengths = self.lengths
        if lengths is None:
            tokens = self["output_tokens"].value
            ok = self["ok"].value
            is_whole = ok >= MIN_EQUAL_LENGTHS and tokens % ok == 0
            lengths = frozenset({int(tokens // ok)} if is_whole else ())
        return next(iter(lengths)) if len(lengths) == 1 and min(lengths) >= 2 else None

    @property
    def mean_reply(self) -> Number:
        """Output tokens of a request that succeeded, on average."""
        return self["output_tokens"] / self["ok"]

    def tokens_per_second(self) -> Number:
        """Input and output tokens by duration, whatever the result says of its rate."""
        return (self["input_tokens"] + self["output_tokens"]) / self["duration_s"]

    def per_request(self) -> tuple[float, float] | None:
        """Input and output tokens of a request that succeeded; None: unknown."""
        prompt = (self["input_tokens"] / self["ok"]).value
        reply = self.mean_reply.value
        return (prompt, reply) if prompt > 0 and reply > 0 else None

    def latency_s(self) -> Number:
        """The mean time of a request: as published, else from TTFT and TPOT."""
        from_parts = self["mean_ttft_ms"] + self["mean_tpot_ms"] * (self.mean_reply - 1)
        return (self["mean_e2el_ms"] or from_parts) / 1000

    def same_run(self, other: "Published") -> bool:
        """Whether both are one run: all that both print is equal, and that is no chance."""
        shared = self.numbers.keys() & other.numbers.keys()
        is_enough = {"duration_s", "output_tokens", "mean_ttft_ms"} <= shared or len(
            self.numbers
        ) == len(shared) > 1
        return is_enough and all(self.numbers[name] == other.numbers[name] for name in shared)

    def decode_ms(self) -> Number:
        """The time from a token to the next, of means: (E2EL - TTFT) / (tokens - 1)."""
        return (self["mean_e2el_ms"] - self["mean_ttft_ms"]) / (self.mean_reply - 1)
