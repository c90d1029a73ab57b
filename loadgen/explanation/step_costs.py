"""StepCosts: what a step of the engine costs, fitted to the steps that the arrivals show; or why it
is not known.
"""

import numpy as np
from msgspec import Struct, structs

from loadgen.explanation.request_columns import RequestColumns
from loadgen.explanation.steps import Steps
from loadgen.stats.trimmed_fit import TrimmedFit
from loadgen.util.arrays import Floats

LEAST_STEPS = 40
LEAST_OTHERS = 20  # steps with another number of streams than most, that tell what a stream costs
LEAST_KEPT = 0.5  # share of the steps that the fit describes
LEAST_IN_TURN = 0.7  # share of the gaps that are one step long
MAX_TOGETHER = 1.5  # mean tokens of an arrival
MAX_STALLS = 0.02  # stalls of the way for each step
# Greatest standard errors, as shares: two and a half of them are 3, 10 and 20 %.
BASE_ERROR, PROMPT_ERROR, STREAM_ERROR = 0.012, 0.04, 0.08
SURE = 2.5  # standard errors by which a cost is off at most
CHUNKED = 2.0  # times as long as its step that a prompt may take
LEAST_SPREAD = 64  # prompt tokens, between which the lengths of prompts must lie to show that
WINDOW = 4  # prompts, over which the tokens of a step are averaged
# Quartiles of that apart, as a share, where each step is full of prompts; and beside those of the
# number of prompts.
PACE, PACE_BESIDE = 0.1, 0.6
LONG_BEFORE = 0.5  # share of the steps before those in which a prompt ends
LEAST_SPREAD_MS, NOISE = 0.5, 0.1  # that a step may differ by, and as a share of its length
CHUNKS = "prompts take several steps (chunks)"


class StepCosts(Struct, frozen=True):
    """length = base + prompt x prompt tokens + stream x (streams - 1), ms.

    Attributes:
        base_ms, prompt_ms, stream_ms: The costs.
        base_error_ms, prompt_error_ms, stream_error_ms: Their standard errors; NaN where the steps
            do not tell them.
        streams: Mean number of streams in a step.
        kept: Share of the steps that it describes.
        within_ms: How far these are from it at most.
    """

    base_ms: float
    prompt_ms: float
    stream_ms: float
    base_error_ms: float
    prompt_error_ms: float
    stream_error_ms: float
    streams: float
    kept: float
    within_ms: float

    def tilted(self, errors: float) -> "StepCosts":
        """Return costs with a stream that costs so many standard errors more, and steps of the
        usual number of streams that take as long as before.
        """
        stream_ms = max(0.0, self.stream_ms + errors * self.stream_error_ms)
        base_ms = self.base_ms - (stream_ms - self.stream_ms) * (self.streams - 1)
        return structs.replace(self, base_ms=base_ms, stream_ms=stream_ms)

    @property
    def knows_base(self) -> bool:
        """Whether the base is known well enough to be shown."""
        return self.base_error_ms <= BASE_ERROR * self.base_ms

    @property
    def knows_prompt(self) -> bool:
        """Whether the cost of a prompt token is known well enough to be shown."""
        return self.prompt_error_ms <= PROMPT_ERROR * self.prompt_ms

    def most_prompt_ms(self, tokens: float) -> float:
        """Return what so many prompt tokens take at most; NaN: that is not known."""
        return (max(0.0, self.prompt_ms) + SURE * self.prompt_error_ms) * tokens

    @property
    def knows_stream(self) -> bool:
        """Whether the cost of a stream is known well enough to be shown."""
        return self.stream_error_ms <= STREAM_ERROR * self.stream_ms


def fit(steps: Steps) -> StepCosts | None:
    """Fit the costs; None where the steps are too few."""
    if len(steps) < LEAST_STEPS:
        return None
    usual = int(np.bincount(steps.streams.astype(int)).argmax())
    is_told = (steps.streams != usual).sum() >= LEAST_OTHERS
    streams = steps.streams - 1 if is_told else np.zeros(len(steps))
    columns = np.column_stack([np.ones(len(steps)), steps.prompt, streams])
    fitted = TrimmedFit.of(columns, steps.length_ms, least=LEAST_SPREAD_MS, share=NOISE)
    base_ms, prompt_ms, stream_ms = fitted.coefficients.tolist()
    base_error_ms, prompt_error_ms, stream_error_ms = fitted.errors.tolist()
    return StepCosts(
        base_ms,
        prompt_ms,
        stream_ms,
        base_error_ms,
        prompt_error_ms,
        stream_error_ms,
        streams=float(steps.streams.mean()),
        kept=float(fitted.kept.mean()),
        within_ms=max(LEAST_SPREAD_MS, 3.5 * fitted.spread),
    )


def refusal(
    requests: RequestColumns,
    steps: Steps,
    costs: StepCosts | None,
    *,
    together: float,
    path_stalls: int,
    prompt_slope_ms: float,
) -> str | None:
    """Say why the costs are not known; None: they are.

    Args:
        requests: The requests.
        steps: Their steps.
        costs: The fit.
        together: Mean tokens of an arrival.
        path_stalls: How often the way to the server stood still.
        prompt_slope_ms: By how much a prompt token delays the first token of the fastest requests,
            ms.
    """
    if together >= MAX_TOGETHER:
        if requests.uncounted.mean() > 0.5:
            return f"events bear {together:.1f} tokens each, and do not say how many"
        return f"tokens come {together:.1f} at a time"
    if costs is None:
        return f"only {len(steps)} steps of the engine can be seen, fewer than {LEAST_STEPS}"
    if steps.in_turn < LEAST_IN_TURN:
        return (
            f"streams take turns: {1 - steps.in_turn:.0%} of their gaps span steps of others, as "
            "with several engines behind one URL"
        )
    if path_stalls > MAX_STALLS * len(steps):
        return f"the way to the server stood still {path_stalls} times"
    if costs.kept < LEAST_KEPT:
        return f"the fit describes only {costs.kept:.0%} of the steps"
    spread = float(np.ptp(np.percentile(requests.prompt, [5, 95])))
    slope_ms = max(CHUNKED * costs.prompt_ms, costs.prompt_ms + costs.base_ms / max(spread, 1.0))
    is_steep = spread >= LEAST_SPREAD and prompt_slope_ms > slope_ms
    if is_steep or _share_long_before(steps, costs) > LONG_BEFORE or prompt_budget(steps):
        return CHUNKS
    return None


def prompt_budget(steps: Steps) -> float | None:
    """The prompt tokens of each step, if each is full of them: prompts end at the pace of their
    tokens. None: they end at another.
    """
    ends = np.flatnonzero(steps.prompt > 0)
    if len(ends) < LEAST_STEPS:
        return None
    tokens = np.cumsum(steps.prompt)[ends]
    taken = ends[WINDOW:] - ends[:-WINDOW]
    a_step = (tokens[WINDOW:] - tokens[:-WINDOW]) / taken
    is_even = _spread(a_step) < min(PACE, PACE_BESIDE * _spread(WINDOW / taken))
    return float(np.median(a_step)) if is_even else None


def _spread(values: Floats) -> float:
    low, median, high = np.percentile(values, [25, 50, 75]).tolist()
    return float((high - low) / median)


def _share_long_before(steps: Steps, costs: StepCosts) -> float:
    """How many of the steps before those in which a prompt ends have a part of its prompt."""
    begin_ms = steps.end_ms - steps.length_ms
    follows = np.append(False, np.abs(begin_ms[1:] - steps.end_ms[:-1]) < costs.within_ms)
    ends = np.flatnonzero(follows & (steps.prompt > 0))
    ends = ends[steps.prompt[ends - 1] == 0]
    if len(ends) < LEAST_STEPS:
        return 0.0
    before = ends - 1
    usual_ms = costs.base_ms + costs.stream_ms * (steps.streams[before] - 1)
    return float((steps.length_ms[before] > usual_ms + costs.within_ms).mean())
