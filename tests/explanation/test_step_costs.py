"""What a step of the engine costs, from the arrivals alone; and when that is not known."""

import pytest

from loadgen.explanation.explainer import explain
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
