"""What a step of the engine costs, from the arrivals alone; and when that is not known."""

from typing import Any

import pytest
from msgspec import structs

from loadgen.explanation import request_columns
from loadgen.explanation.explainer import BASE_UNKNOWN, explain
from loadgen.explanation.request_columns import MAX_EVENTS, RequestColumns
from loadgen.explanation.step_costs import fit, refusal
from loadgen.explanation.steps import Arrivals, Steps
from loadgen.report.result.explanation import Explanation
from tests.helpers.planted_records import MS, Answer, records, served


def explained(answers: list[Answer]) -> Explanation:
    explanation = explain(records(answers), None)
    assert explanation is not None
    return explanation


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("base_ms", "prompt_us", "stream_us"),
    [(10.0, 20.0, 50.0), (24.0, 9.0, 120.0), (6.0, 100.0, 20.0)],
)
def test_the_costs_of_a_step_are_found(
    base_ms: float, prompt_us: float, stream_us: float, seed: int
) -> None:
    steps = explained(
        served(base_ms=base_ms, prompt_us=prompt_us, stream_us=stream_us, seed=seed)
    ).steps
    assert steps is not None
    assert steps.base_ms == pytest.approx(base_ms + stream_us / 1e3, rel=0.03)
    assert steps.prompt_us is not None
    assert steps.prompt_us == pytest.approx(prompt_us, rel=0.1)


def test_a_few_steps_that_came_together_do_not_make_streams_dear() -> None:
    period = 2500 * MS

    def late(at: int) -> int:
        return max(at, at - at % period + 14 * MS)

    answers = served(max_num_seqs=2, rate=12, prompts=(256, 256), answers=(32, 32))
    steps = explained([answer.later(late) for answer in answers]).steps
    assert steps is not None
    assert steps.base_ms == pytest.approx(10.1, rel=0.03)
    assert steps.stream_us is None


def test_few_steps_are_refused() -> None:
    explanation = explained(served(count=1, answers=(20, 20)))
    assert explanation.steps is None
    assert explanation.no_steps == ("only 19 steps of the engine can be seen, fewer than 40")


def test_tokens_that_come_together_are_refused() -> None:
    period = 120 * MS
    answers = [answer.later(lambda at: -(-at // period) * period) for answer in served()]
    explanation = explained(answers)
    assert explanation.steps is None
    assert explanation.no_steps is not None
    assert explanation.no_steps.startswith("tokens come ")


def test_speculative_decoding_without_counts_is_refused() -> None:
    answers = [
        Answer(answer.due, answer.sent, answer.prompt, answer.tokens, together=3)
        for answer in served()
    ]
    explanation = explained(answers)
    assert explanation.no_steps == "events bear 3.0 tokens each, and do not say how many"


def test_several_engines_behind_one_url_are_refused() -> None:
    engines = [served(seed=seed, rate=12, answers=(60, 90)) for seed in (1, 2, 3)]
    explanation = explained([answer for answers in engines for answer in answers])
    assert explanation.steps is None
    assert explanation.no_steps is not None
    assert "several engines behind one URL" in explanation.no_steps


def test_prompts_that_take_several_steps_are_refused() -> None:
    explanation = explained(
        served(max_num_batched_tokens=64, max_num_seqs=60, prompts=(100, 600), rate=6)
    )
    assert explanation.no_steps == "prompts take several steps (chunks)"


def test_prompts_of_one_length_that_take_several_steps_are_refused() -> None:
    explanation = explained(
        served(max_num_batched_tokens=128, max_num_seqs=60, prompts=(300, 300), rate=6)
    )
    assert explanation.no_steps == "prompts take several steps (chunks)"


def test_a_fit_that_describes_less_than_half_of_the_steps_is_refused() -> None:
    requests = RequestColumns.of(records(served()))
    steps = Steps.of(requests, Arrivals.of(requests))
    costs = fit(steps)
    assert costs is not None
    for kept, reason in ((0.5, None), (0.49, "the fit describes only 49% of the steps")):
        fitted = structs.replace(costs, kept=kept)
        known = {"together": 1.0, "path_stalls": 0, "prompt_slope_ms": costs.prompt_ms}
        assert refusal(requests, steps, fitted, **known) == reason


def test_a_base_with_a_large_standard_error_is_not_printed() -> None:
    explanation = explained(served(count=8, noise=0.3, prompts=(64, 64)))
    assert explanation.steps is None
    assert explanation.no_steps == BASE_UNKNOWN


def test_runs_with_very_many_events_have_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_columns, "MAX_EVENTS", 100)
    explanation = explained(served())
    assert explanation.steps is None
    assert explanation.no_steps == f"the run has more than {MAX_EVENTS} events with tokens"
    assert explanation.stalls == explanation.after_first_ms == {}


@pytest.mark.parametrize(
    ("served_so", "known"),
    [
        ({"prompt_us": 0.05}, ["stream_us"]),
        ({"stream_us": 5.0}, ["prompt_us"]),
        ({"prompt_us": 0.05, "stream_us": 5.0}, []),
    ],
)
def test_a_cost_with_a_large_standard_error_is_not_printed(
    served_so: dict[str, Any], known: list[str]
) -> None:
    steps = explained(served(**{"stream_us": 300.0} | served_so)).steps
    assert steps is not None
    costs = ("prompt_us", "stream_us")
    assert [name for name in costs if getattr(steps, name) is not None] == known


def test_a_way_that_stands_still_is_refused() -> None:
    def held(at: int) -> int:
        within = at % (1000 * MS)
        return at if within >= 300 * MS else at + 300 * MS - within

    explanation = explained([answer.later(held) for answer in served()])
    assert explanation.steps is None
    assert explanation.no_steps is not None
    assert explanation.no_steps.startswith("the way to the server stood still ")


def test_servers_of_a_run_do_not_disturb_each_other() -> None:
    engines = [served(seed=seed, base_ms=10.0) for seed in (1, 2)]
    answers = [
        Answer(answer.due, answer.sent, answer.prompt, answer.tokens, target=target)
        for target, answers in enumerate(engines)
        for answer in answers
    ]
    steps = explained(answers).steps
    assert steps is not None
    assert steps.base_ms == pytest.approx(10.05, rel=0.03)
