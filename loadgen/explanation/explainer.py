"""Makes the explanation of a run from its records."""

from collections.abc import Iterable

import numpy as np

from loadgen.core.record import Record
from loadgen.explanation.diagnosis import OF_STALLS, Diagnosis
from loadgen.explanation.gaps import Gaps, Stall
from loadgen.explanation.parts import Line, Parts
from loadgen.explanation.request_columns import MAX_EVENTS, MS, RequestColumns
from loadgen.explanation.server_words import ServerWords
from loadgen.explanation.step_costs import CHUNKS, StepCosts, fit, prompt_budget, refusal
from loadgen.explanation.steps import Arrivals, Steps
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.result.explanation import (
    Band,
    EngineSteps,
    Explanation,
    NamedCause,
    StallCount,
)

LEAST_REQUESTS = 50
MOST_UNEXPLAINED = 0.1
SAMPLE = 200
SHORT = 0.2  # of the fastest TTFTs, that prompts are at most to be told from what is outside
BASE_UNKNOWN = "the standard error of the base step is above 1.2 %"


def explain(
    records: Iterable[Record], telemetry: Telemetry | None, *, closed_loop: bool = False
) -> Explanation | None:
    """Explain a run; None where no request has tokens that have times.

    Args:
        records: Its records.
        telemetry: The metrics of its servers.
        closed_loop: Whether requests were due when others had ended.

    Raises:
        BadInput: A record cannot be read.
    """
    requests = RequestColumns.of(records)
    if not len(requests):
        return None
    token_ms = _token_ms(requests)
    line = Line.of(requests.prompt.astype(float), requests.ttft_ms)
    words = ServerWords.of(telemetry)
    steps: Steps | None = None
    costs: StepCosts | None = None
    if not requests.has_events:
        arrivals = gaps = None
        no_steps: str | None = f"the run has more than {MAX_EVENTS} events with tokens"
    else:
        arrivals = Arrivals.of(requests)
        steps = Steps.of(requests, arrivals)
        together = arrivals.tokens_together
        costs = fit(steps)
        gaps = Gaps.of(requests, arrivals, steps, costs, token_ms)
        no_steps = refusal(
            requests,
            steps,
            costs,
            together=together,
            path_stalls=gaps.count(Stall.PATH),
            prompt_slope_ms=line.slope_ms,
        )
        if no_steps is not None:
            costs = None
            gaps = Gaps.of(requests, arrivals, steps, None, token_ms, line.slope_ms)
        elif costs is not None and not costs.knows_base:
            no_steps = BASE_UNKNOWN
    slope_ms = _prompt_slope_ms(requests, line, costs, words, token_ms)
    if slope_ms is not None:
        line = line.with_slope(slope_ms, requests.prompt.astype(float), requests.ttft_ms)
    parts = Parts.by_stamps(requests, line, costs.base_ms if costs else token_ms)
    parts = parts.with_server_times(requests, token_ms).without_late_reads(requests)
    if gaps is not None and arrivals is not None:
        parts = parts.without_stalls(gaps, requests, arrivals)
    is_budget_small = no_steps == CHUNKS and steps is not None and steps.are_alike(token_ms)
    diagnosis = Diagnosis(
        requests,
        arrivals,
        gaps,
        parts,
        costs,
        words,
        token_ms,
        is_budget_small=is_budget_small,
        budget=prompt_budget(steps) if steps is not None else None,
        closed_loop=closed_loop,
    )
    after = dict(diagnosis.after_first_ms())
    e2el_ms = float(requests.e2el_ms.mean())
    unexplained = abs(after.get("other", 0.0)) / e2el_ms if e2el_ms else 0.0
    is_explained = unexplained <= MOST_UNEXPLAINED
    enough = len(requests) >= LEAST_REQUESTS
    causes = diagnosis.named(is_explained=is_explained) if enough else []
    why_not = None if causes else _why_not(requests, unexplained)
    return Explanation(
        answer=_answer(causes, after, why_not, e2el_ms),
        causes=causes,
        requests=len(requests),
        others=requests.others,
        e2el_ms=e2el_ms,
        part_kinds=parts.kinds(),
        mean_ms=parts.mean_ms(),
        bands={
            name: Band(requests=count, parts_ms=parts_ms)
            for name, (count, parts_ms) in parts.bands().items()
        },
        after_first_ms=after,
        stalls=_stalls(gaps),
        steps=_engine_steps(steps, costs) if steps and costs and not no_steps else None,
        no_steps=no_steps,
        unexplained=unexplained,
        contradicted=Parts.contradicted(requests),
    )


def _token_ms(requests: RequestColumns) -> float:
    """The time of a token where the server is least disturbed, ms."""
    first = requests.event_tokens[requests.begin[:-1]] if requests.has_events else 1.0
    later = np.maximum(requests.tokens - first, 1)
    times_ms = ((requests.last - requests.first) * MS / later)[requests.last > requests.first]
    return float(np.percentile(times_ms, 10)) if len(times_ms) else 0.0


def _prompt_slope_ms(
    requests: RequestColumns,
    line: Line,
    costs: StepCosts | None,
    words: ServerWords,
    token_ms: float,
) -> float | None:
    """What a prompt token takes, by the steps; or, where the fastest TTFTs do not tell it, by the
    server's own mean. None: neither tells it better.
    """
    tokens = float(requests.prompt.mean())
    if costs is not None:
        is_short = costs.most_prompt_ms(tokens) <= SHORT * line.start_ms
        if costs.knows_prompt or (is_short and not line.tells_prompt):
            return max(0.0, costs.prompt_ms)
    prefill_ms = words.prefill_ms
    if line.tells_prompt or prefill_ms is None or not tokens:
        return None
    is_possible = 0 <= prefill_ms <= float(requests.ttft_ms.mean())
    return max(0.0, prefill_ms - token_ms) / tokens if is_possible else None


def _why_not(requests: RequestColumns, unexplained: float) -> str | None:
    """Say why no cause may be named; None: it may."""
    if len(requests) < LEAST_REQUESTS:
        return f"{len(requests)} requests are too few, {LEAST_REQUESTS} are needed"
    if unexplained > MOST_UNEXPLAINED:
        return f"{unexplained:.0%} of the time is in no part that loadgen can tell"
    return None


def _answer(
    causes: list[NamedCause], after: dict[str, float], why_not: str | None, e2el_ms: float
) -> str:
    if why_not:
        return f"Not determined: {why_not}."
    if causes:
        sentence = causes[0].sentence
        return f"{sentence[0].upper()}{sentence[1:]}."
    share = f" ({after['model'] / e2el_ms:.0%} of E2EL)" if after and e2el_ms else ""
    return f"Nothing stands out: the time is the model's own speed{share}."


def _stalls(gaps: Gaps | None) -> dict[str, StallCount]:
    if gaps is None:
        return {}
    return {
        name: StallCount(
            count=gaps.count(kind), median_ms=float(np.median(gaps.length_ms[gaps.kind == kind]))
        )
        for kind, name in OF_STALLS.items()
        if gaps.count(kind)
    }


def _engine_steps(steps: Steps, costs: StepCosts) -> EngineSteps:
    chosen = np.unique(np.linspace(0, len(steps) - 1, SAMPLE).astype(int))
    pairs = zip(steps.prompt[chosen], steps.length_ms[chosen], strict=True)
    prompt = costs.knows_prompt
    stream = costs.knows_stream
    return EngineSteps(
        steps=len(steps),
        base_ms=costs.base_ms,
        base_error_ms=costs.base_error_ms,
        prompt_us=1e3 * costs.prompt_ms if prompt else None,
        prompt_error_us=1e3 * costs.prompt_error_ms if prompt else None,
        stream_us=1e3 * costs.stream_ms if stream else None,
        stream_error_us=1e3 * costs.stream_error_ms if stream else None,
        kept=costs.kept,
        within_ms=costs.within_ms,
        sample=[(float(tokens), round(float(ms), 3)) for tokens, ms in pairs],
    )
