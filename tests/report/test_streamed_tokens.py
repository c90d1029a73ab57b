"""The console's remarks on tokens that were not streamed or came several per event."""

import pytest
from msgspec import structs

from loadgen.checks import examine
from loadgen.config.settings import RunSettings
from loadgen.metrics.streamed_tokens import sampled, with_sampled_tpot
from loadgen.report import RunResult, render
from loadgen.workload.prompt import UNPLANNED
from tests.helpers.console_lines import unwrapped
from tests.helpers.run_facts import answered, measured, run_data


def said(records, **options):
    """The console of a run, with the checks that it would be put to."""
    told = run_data(records, **options)
    return "\n".join(unwrapped(render(RunResult.of(told, examine(told))).splitlines()))


def test_hidden_reasoning_tokens_are_named_beside_what_divides_by_them():
    counts = {"completion_tokens": 503, "completion_tokens_details": {"reasoning_tokens": 500}}
    console = said([answered(counts=counts)])
    assert "500 reasoning tokens never streamed: in throughput, and not in TPOT" in console
    assert "not streamed" not in said([answered(counts={"completion_tokens": 3})])


def test_a_sample_that_shows_hidden_tokens_is_named_with_the_difference():
    record = answered(counts={"completion_tokens": 503})
    snapshot = with_sampled_tpot(structs.replace(measured([record]), sample=(sampled(record, 3),)))
    console = said(snapshot)
    assert (
        "3 tokens where 503 were counted (medians of 1 answer; 500 per answer were not streamed)"
        in console
    )
    assert (
        "TPOT is over the streamed tokens of these answers alone, as --tokenizer counts them"
        in console
    )
    assert "between groups of tokens" not in console


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (answered(tokens=[20, 30, 40], counts={"completion_tokens": 9}), "3 tokens per event"),
        (answered(tokens=[20, 20.01, 40, 40.01, 60, 60.01]), "of gaps are shorter"),
        (answered(tokens=[20, 20, 40, 40]), "came with another"),
    ],
)
def test_bundles_are_named_beside_the_gaps(record, reason):
    lines = said([record]).splitlines()
    place = next(number for number, row in enumerate(lines) if row.startswith("ICL: inter-chunk"))
    assert "between groups of tokens" in lines[place + 1]
    assert reason in lines[place + 1]


@pytest.mark.parametrize("counted", [3, 2, None])
def test_gaps_between_single_tokens_are_no_gaps_between_bundles(counted):
    counts = None if counted is None else {"completion_tokens": counted}
    assert "between groups of tokens" not in said([answered(counts=counts)])


@pytest.mark.parametrize("disable_stream", [False, True])
def test_numbers_that_are_none_unplanned_prompts_and_wrong_totals_are_named(disable_stream):
    counts = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 15}
    record = answered(tokens=[20, 30, 40], counts=counts)
    record.nan_events, record.input_tokens = 2, UNPLANNED
    lines = said([record], settings=RunSettings(disable_stream=disable_stream)).splitlines()
    assert "2 events had NaN or infinity: the model's logits may be broken" in lines
    assert "1 prompt without a planned length: only the server counted them" in lines
    assert (
        "1 answer with prompt and completion tokens that do not add up to their total: 2 tokens "
        "apart" in lines
    )
    whole = "Each answer came in one piece (--disable-stream): its tokens have no times"
    assert (whole in lines) is disable_stream
