"""Explanation: where the time of the requests went, and what caused it; `loadgen.explanation` makes
it of the records of a run.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

MOST_SLOWER = 1.25  # times as long as before, that requests may take for shorter gaps
PartKind = Literal["exact", "server", "estimate", "at most"]
# The phases of a request until its first token, by the parts that are in them.
PHASES = {
    "client": ("cap", "retries", "client", "read_late"),
    "path": ("connect", "outside", "path_stall"),
    "queue": ("queue", "engine_stall"),
    "prefill": ("prompt",),
}


class Band(Struct, frozen=True, kw_only=True):
    """Requests that were equally fast, by the time from due to the first token."""

    requests: Annotated[int, "How many."]
    parts_ms: Annotated[dict[str, float], "Mean of each part, ms. The parts add up to that time."]

    @property
    def total_ms(self) -> float:
        """The mean time from due to the first token, ms."""
        return sum(self.parts_ms.values())


class StallCount(Struct, frozen=True, kw_only=True):
    """Long gaps of one kind."""

    count: Annotated[int, "How many gaps of streams."]
    median_ms: Annotated[float, "Their median length, ms."]


class EngineSteps(Struct, frozen=True, kw_only=True):
    """What a step of the engine costs, fitted to the steps that the arrivals show."""

    steps: Annotated[int, "Steps that were seen."]
    base_ms: Annotated[float, "A step without a prompt and with one stream, ms."]
    base_error_ms: Annotated[float, "Its standard error, ms."]
    prompt_us: Annotated[float | None, "Each prompt token, us; null: not known within 10 %."]
    prompt_error_us: Annotated[float | None, "Its standard error, us."]
    stream_us: Annotated[float | None, "Each further stream, us; null: not known within 20 %."]
    stream_error_us: Annotated[float | None, "Its standard error, us."]
    kept: Annotated[float, "Share of the steps that the fit describes, 0 to 1."]
    within_ms: Annotated[float, "How far these are from it at most, ms."]
    sample: Annotated[
        list[tuple[float, float]], "Up to 200 steps: tokens of prompts that ended, and length, ms."
    ]


class BeforeAfter(Struct, frozen=True, kw_only=True):
    """A latency as measured, and as predicted of a change."""

    now_ms: Annotated[float, "As measured, ms."]
    then_ms: Annotated[float, "As predicted, ms."]


class PredictedChange(Struct, frozen=True, kw_only=True):
    """What a change would bring, by a replay of the run with the costs of its steps."""

    change: Annotated[str, "What is changed."]
    ttft_p50: Annotated[BeforeAfter, "Median of TTFT from sent."]
    ttft_p99: Annotated[BeforeAfter, "Its 99th percentile."]
    gap_p99: Annotated[BeforeAfter, "99th percentile of the gaps between tokens."]
    e2el: Annotated[BeforeAfter, "Mean E2EL from due."]
    error: Annotated[float, "By how much a replay without the change is off, a share."]

    @property
    def is_bad(self) -> bool:
        """Whether requests would take longer, and either much longer or with gaps that are not
        halved.
        """
        slower = self.e2el.then_ms / self.e2el.now_ms
        is_halved = self.gap_p99.then_ms <= self.gap_p99.now_ms / 2
        return slower > MOST_SLOWER or (slower > 1 and not is_halved)


class NamedCause(Struct, frozen=True, kw_only=True):
    """A cause that is named."""

    name: Annotated[str, "Its name (docs/explain.md)."]
    side: Annotated[Literal["client", "way", "server"], "Where it is."]
    ms: Annotated[float, "Its time, ms a request, or what it adds to the slowest."]
    where: Annotated[Literal["mean", "tail"], "Whether all requests have it, or the slowest."]
    sentence: Annotated[str, "What it is."]
    evidence: Annotated[str, "What shows it."]
    advice: Annotated[str, "What to do."]
    predicted: Annotated[
        PredictedChange | None, "What that would bring; null: it cannot be predicted."
    ] = None


class Explanation(Struct, frozen=True, kw_only=True):
    """Where the time of the requests went, and what caused it."""

    answer: Annotated[str, "The answer in one sentence."]
    causes: Annotated[list[NamedCause], "At most three causes, the largest first."]
    requests: Annotated[int, "Requests that ended well with tokens that have times."]
    others: Annotated[int, "Requests of the run that are not among them."]
    e2el_ms: Annotated[float, "Mean time from due to the last token, ms."]
    part_kinds: Annotated[
        dict[str, PartKind], "How each part of the time to the first token is known."
    ]
    mean_ms: Annotated[dict[str, float], "Mean of each part over all requests, ms."]
    bands: Annotated[
        dict[str, Band],
        "The parts of the fastest fifth (p10), of 40 to 60 % (p50), of 85 to 95 % (p90) and of "
        "98 to 100 % (p99).",
    ]
    after_first_ms: Annotated[
        dict[str, float], "What the time after the first token was, ms a request."
    ]
    stalls: Annotated[dict[str, StallCount], "Long gaps by their kind."]
    steps: Annotated[EngineSteps | None, "The engine's steps; null: `no_steps` says why."]
    no_steps: Annotated[str | None, "Why the cost of a step is not known."]
    unexplained: Annotated[float, "Share of the time that is in no part, 0 to 1."]
    contradicted: Annotated[int, "Requests whose server said more time than there was."]

    @property
    def phases(self) -> dict[str, float]:
        """Shares of the mean E2EL, 0 to 1: PHASES, and decode after them."""
        shares = {
            phase: sum(self.mean_ms.get(part, 0.0) for part in parts) / self.e2el_ms
            for phase, parts in PHASES.items()
        }
        return shares | {"decode": 1 - sum(shares.values())}
