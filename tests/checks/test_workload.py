"""Workload notes: were the prompts and answers those that the settings asked for?"""

from typing import Any

import pytest
from msgspec import structs

from loadgen.checks import workload
from loadgen.checks.workload import PAST_THE_END, PROMPTS_CUT
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics.streamed_tokens import sampled
from loadgen.workload.prompt import UNPLANNED
from tests.helpers.check_states import failed_checks
from tests.helpers.run_facts import answered, failed, measured, result, run_data


def reply(index=0, *, prompt=10, tokens=3, events=3, cached=None):
    """An answer whose usage counts these prompt and output tokens, with so many events."""
    counts = {"prompt_tokens": prompt, "completion_tokens": tokens}
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    stamps = [20 + 10 * i for i in range(events)]
    return answered(index, tokens=stamps, counts=counts)


def of(records, settings=None, **options):
    """The checks by name."""
    checks = workload(run_data(records, settings, **options))
    return {check.name: check for check in checks}


def test_answers_as_planned_are_green():
    checks = of([reply(i) for i in range(20)])
    assert failed_checks(checks) == []
    assert all(check.ok for check in checks.values())


# -- prompts


def test_lengths_by_loadgens_own_tokenizer_are_a_note_alone():
    settings = RunSettings(tokenizer="built-in", slo="ttft_p50<1s")
    records = [reply(i, prompt=2) for i in range(10)]
    checks = of(records, settings)
    assert failed_checks(checks) == ["input length off", "prompts cut"]
    assert not any(checks[name].counts for name in failed_checks(checks))
    assert "lengths are approximate" in checks["input length off"].advice
    assert of(records, settings.replace(strict=True))["input length off"].counts


def test_prompts_of_another_length_are_red_with_the_mean_difference():
    checks = of([reply(i, prompt=21) for i in range(10)])
    assert failed_checks(checks) == ["input length off"]
    expected = "0% of prompts have the planned length (11 tokens more by the server's mean)"
    assert checks["input length off"].value == expected


def test_lengths_of_prompts_with_images_are_not_judged():
    check = of([reply(i, prompt=300) for i in range(10)], prompts={"images": 10})[
        "input length off"
    ]
    assert (check.ok, check.limit) == (None, "only the server counts the tokens of images")


@pytest.mark.parametrize(
    ("requested", "prefix", "missed"),
    [
        ([4, 4], 0, "prompts have 10.0 tokens on average where 4 were requested"),
        ([20, 30], 0, "prompts have 10.0 tokens on average where 20 to 30 were requested"),
        ([4, 4], 6, None),
        ([9, 9], 0, "prompts have 10.0 tokens on average where 9 were requested"),
        ([10, 10], 0, None),
        ([11, 11], 0, None),  # as where neighbouring tokens merge
    ],
)
def test_prompts_of_a_rule_that_are_far_from_the_request_are_noted(requested, prefix, missed):
    facts = {
        "name": "random",
        "rule": "vllm-0.11",
        "input_tokens": requested,
        "prefix_tokens": prefix,
    }
    check = of([reply(i) for i in range(10)], RunSettings(dataset_rule="vllm-0.11"), prompts=facts)[
        "input length off"
    ]
    assert (check.ok, check.counts) == (missed is None, False)
    if missed:
        assert check.value == missed
        assert "name that of a real model" in check.advice


def predicted(record, tokens):
    record.server_tokens = tokens
    return record


def test_prompts_are_held_against_what_the_server_was_expected_to_count():
    assert of([predicted(reply(i, prompt=18), 18) for i in range(10)])["input length off"].ok
    said = {"server_tokens": {"overhead": 8, "source": "the chat template x"}}
    check = of([predicted(reply(i, prompt=16), 18) for i in range(10)], prompts=said)[
        "input length off"
    ]
    assert check.ok is False
    expected = "0% of prompts have the predicted length (2 tokens fewer by the server's mean)"
    assert check.value == expected
    assert "(the chat template x; 8 tokens beyond the text's)" in check.advice


def test_a_prediction_for_some_alone_is_not_called_one():
    check = of([predicted(reply(0, prompt=18), 18), reply(1, prompt=11)])["input length off"]
    assert (
        check.value
        == "50% of prompts have the planned length (0.5 tokens more by the server's mean)"
    )
    assert "chat template adds tokens" in check.advice


@pytest.mark.parametrize(("wrong", "expected"), [(1, True), (2, False)])
def test_prompts_off_plan_fail_above_one_in_a_thousand(wrong, expected):
    records = [reply(i, prompt=10 if i >= wrong else 11) for i in range(1000)]
    assert of(records)["input length off"].ok is expected


def test_only_repeats_are_judged_without_server_counts():
    checks = of([answered(i) for i in range(5)])
    assert [name for name, check in checks.items() if check.ok is not None] == ["prompts repeated"]
    assert [name for name, check in of([failed()]).items() if check.ok is not None] == [
        "prompts repeated"
    ]


# -- answers


def test_answers_that_ended_early_are_red_with_their_finish_reasons():
    records = [reply(i) for i in range(6)]
    short = [reply(6 + i, events=2, tokens=2) for i in range(4)]
    for record in short:
        record.output_tokens = 3
    check = of([*records, *short])["output length off"]
    assert check.ok is False
    means = "2.6 of 3 tokens on average"
    assert (
        check.value == f"60% of answers have the requested length ({means}; 4 ended early: stop 4)"
    )
    assert "--ignore-eos" in check.advice


def test_no_length_is_missed_where_none_is_asked():
    short = reply(0, events=2, tokens=2)
    short.output_tokens = 3
    check = of([short], RunSettings(no_max_tokens=True))["output length off"]
    assert (check.ok, check.limit) == (None, "no length is asked with --no-max-tokens")


def test_early_end_under_ignore_eos_names_its_stop_reason():
    short = reply(0, events=2, tokens=2)
    short.output_tokens, short.matched_stop = 3, 151645
    check = of([short], RunSettings(ignore_eos=True))["output length off"]
    assert (check.ok, "1 ended early: stop (token 151645) 1" in check.value) == (False, True)
    assert "--ignore-eos" not in check.advice


def test_answers_cut_at_a_length_of_the_servers_own_advise_the_other_key():
    short = reply(0, events=2, tokens=2)
    short.output_tokens, short.finish_reason = 3, "length"
    settings = RunSettings(ignore_eos=True, backend="openai-chat")
    check = of([short], settings)["output length off"]
    assert "--omit max_completion_tokens" in check.advice


def test_hidden_tokens_are_no_tokens_of_events():
    counts = {"completion_tokens": 510, "completion_tokens_details": {"reasoning_tokens": 500}}
    told = answered(tokens=list(range(20, 120, 10)), counts=counts)
    check = of([told])["several tokens per event"]
    assert (check.ok, check.value) == (True, "1 tokens per event")


def test_tokens_that_a_sample_shows_hidden_are_no_tokens_of_events():
    told = answered(tokens=list(range(20, 120, 10)), counts={"completion_tokens": 510})
    snapshot = structs.replace(measured([told]), sample=(sampled(told, 10),))
    assert of(snapshot)["several tokens per event"].ok
    assert not of(measured([told]))["several tokens per event"].ok


def test_multi_token_events_fail_without_advice_on_tpot():
    check = of([reply(0, tokens=30, events=10)])["several tokens per event"]
    assert (check.ok, "TPOT" in check.advice) == (False, False)


def test_several_tokens_in_each_event_are_red():
    records = [reply(i, tokens=30, events=10) for i in range(5)]
    for record in records:
        record.output_tokens = 30
    checks = of(records)
    assert failed_checks(checks) == ["several tokens per event"]
    assert checks["several tokens per event"].value == "3 tokens per event"


def test_events_that_bear_no_token_are_red():
    checks = of([reply(i, tokens=7, events=10) for i in range(5)])
    assert checks["several tokens per event"].ok is False


def test_the_end_token_that_no_event_shows_is_allowed():
    assert of([reply(i, tokens=4, events=3) for i in range(5)])["several tokens per event"].ok


# -- repeats


@pytest.mark.parametrize(("distinct", "expected"), [(100, True), (99, True), (98, False)])
def test_more_than_one_prompt_in_a_hundred_repeated_is_red(distinct, expected):
    records = [reply(i) for i in range(100)]
    check = of(records, prompts={"requests": 100, "distinct": distinct})["prompts repeated"]
    assert check.ok is expected
    repeats = 100 - distinct
    seen = f"{repeats} of 100 requests repeated an earlier prompt"
    assert check.value == f"{repeats}% of the prompts: {seen}"


def test_requests_beyond_those_prepared_start_over_and_are_repeats():
    records = [reply(i) for i in range(100)]
    made = {"requests": 60, "distinct": 50}
    assert of(records, prompts=made)["prompts repeated"].value.startswith("50% of ")
    assert result(records, prompts=made)["loadgen"]["repeated_prompts"] == 50


def test_cache_share_is_printed_with_the_repeats():
    records = [reply(i, prompt=10, cached=8) for i in range(10)]
    check = of(records, prompts={"requests": 5, "distinct": 5})["prompts repeated"]
    assert check.value.endswith("(the server took 80% of its input from a cache)")


def test_prompts_sent_before_the_clock_are_repeats_too():
    records = [reply(i) for i in range(100)]
    made = {"requests": 100, "distinct": 100}
    assert of(records, prompts=made | {"sent_before": 1})["prompts repeated"].ok
    check = of(records, prompts=made | {"sent_before": 2})["prompts repeated"]
    assert check.ok is False
    assert "2 of the measured prompts had been sent before" in check.value


def test_prompts_made_during_the_run_are_judged_by_requests():
    made = {"requests": 60, "distinct": 60, "further": True}
    assert of([reply(i) for i in range(100)], prompts=made)["prompts repeated"].ok


BOUNDED = RunSettings(max_concurrency=4, duration=10.0)


@pytest.mark.parametrize(
    ("settings", "counts"),
    [(BOUNDED, True), (BOUNDED.replace(num_prompts=10), False), (RunSettings(), False)],
)
def test_repeats_count_where_only_a_duration_ends_the_loop(settings, counts):
    check = of([reply(i) for i in range(10)], settings, prompts={"requests": 5, "distinct": 5})[
        "prompts repeated"
    ]
    assert (check.ok, check.counts) == (False, counts)


def known(shared_tokens: int) -> dict[str, Any]:
    """What is known of 10 prompts of 10 tokens, of which so many are shared."""
    return {
        "requests": 10,
        "distinct": 10,
        "prefix_cache": {"tokens": 100, "shared_tokens": shared_tokens},
    }


KNOWN = known(0)
UNKNOWN = {
    "requests": 10,
    "distinct": 10,
    "prefix_cache": {"unknown": "the data set has no tokenizer"},
}


@pytest.mark.parametrize(
    ("prompts", "cached", "expected"),
    [
        (KNOWN, 9, False),
        (KNOWN, 0, True),
        (known(90), 9, True),
        (known(50), 9, False),
        (UNKNOWN, 9, True),
        (KNOWN | {"further": True}, 9, True),
    ],
    ids=[
        "repeat",
        "cold",
        "shared prefix",
        "more than the prefix",
        "no tokenizer",
        "prompts made meanwhile",
    ],
)
def test_input_cached_from_an_earlier_run_is_red(prompts, cached, expected):
    check = of([reply(i, prompt=10, cached=cached) for i in range(10)], prompts=prompts)[
        "prompts repeated"
    ]
    assert check.ok is expected
    assert ("--seed" in check.advice) is not expected


def test_cached_tokens_of_empty_prompts_are_ignored():
    check = of([reply(i, prompt=0, cached=5) for i in range(10)], prompts=KNOWN)["prompts repeated"]
    assert check.ok


def test_a_cached_chat_template_is_no_earlier_run():
    check = of([reply(i, prompt=30, cached=20) for i in range(10)], prompts=KNOWN)[
        "prompts repeated"
    ]
    assert check.ok


# -- notes


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        (RunSettings(), False),
        (RunSettings(strict=True), True),
        (RunSettings(slo="error_rate<1%"), True),
    ],
)
def test_workload_checks_count_only_if_a_decision_rests_on_them(settings, counts):
    records = [reply(i, prompt=11, tokens=9) for i in range(10)]
    checks = of(records, settings, prompts={"requests": 5, "distinct": 5})
    assert len(failed_checks(checks)) == 4
    counting = {check.counts for name, check in checks.items() if name != PROMPTS_CUT}
    assert counting == {counts}


# -- answers that are to go on past their end


@pytest.mark.parametrize(("broken", "ok"), [(1, True), (5, False)])
def test_answers_that_break_off_under_ignore_eos_name_the_remedy(broken, ok):
    records = [
        *(reply(i) for i in range(20 - broken)),
        *(failed(20 - i, Outcome.STREAM_ERROR) for i in range(broken)),
    ]
    check = of(records, RunSettings(ignore_eos=True))[PAST_THE_END]
    assert (check.ok, check.counts) == (ok, False)
    assert "--no-ignore-eos" in check.advice


@pytest.mark.parametrize(
    ("settings", "outcome"),
    [
        (RunSettings(), Outcome.STREAM_ERROR),
        (RunSettings(ignore_eos=True), Outcome.REFUSED),
        (RunSettings(ignore_eos=True), Outcome.TRUNCATED),  # a server that dies
    ],
)
def test_other_failures_are_not_past_the_end(settings, outcome):
    assert PAST_THE_END not in of([reply(0), failed(1, outcome)], settings)


def test_prompts_without_token_count_are_not_held_to_a_plan():
    unknown = [reply(i) for i in range(10)]
    for record in unknown:
        record.input_tokens = UNPLANNED
    check = of(unknown, RunSettings(tokenizer="none"))["input length off"]
    assert (check.ok, check.value) == (None, "n/a")
    assert "--tokenizer none" in check.limit
