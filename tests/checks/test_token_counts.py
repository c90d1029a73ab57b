"""Token counts: red where the server's counts contradict each other, or the stream."""

import pytest
from msgspec import structs

from loadgen.checks.token_counts import (
    COUNTS_DISAGREE,
    EVENTS_BEYOND,
    FIRST_EVENT,
    NOT_STREAMED,
    token_counts,
)
from loadgen.metrics.streamed_tokens import sampled, with_sampled_tpot
from tests.helpers.check_states import failed_checks
from tests.helpers.run_facts import answered, measured, run_data


def reply(index: int, *, tokens: int = 3, total: int = 13, events: int = 3):
    """An answer to 10 prompt tokens, with these counts and so many events."""
    counts = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": total}
    return answered(index, tokens=[20 + 10 * i for i in range(events)], counts=counts)


def of(records):
    """The checks by name."""
    return {check.name: check for check in token_counts(run_data(records))}


def test_counts_that_add_up_are_green():
    checks = of([reply(i) for i in range(9)])
    assert failed_checks(checks) == []
    assert all(check.ok for check in checks.values())


def test_counts_that_do_not_add_up_are_suspect():
    check = of([reply(i, total=26) for i in range(9)])[COUNTS_DISAGREE]
    assert check.ok is False
    assert check.value == (
        "100% of answers, whose prompt and completion tokens are not the total (117 tokens, a "
        "factor of 2)"
    )


def test_few_counts_that_do_not_add_up_are_green():
    records = [reply(0, total=99), *(reply(i) for i in range(1, 101))]
    assert of(records)[COUNTS_DISAGREE].ok


def test_more_events_than_tokens_are_suspect():
    check = of([reply(i, tokens=2, total=12) for i in range(9)])[EVENTS_BEYOND]
    assert (check.ok, check.value) == (False, "50% beyond the counted tokens (9 events)")


def test_one_more_event_is_suspect_where_text_under_unknown_keys_was_a_token():
    records = [reply(i, tokens=40, total=50, events=41) for i in range(9)]
    assert of(records)[EVENTS_BEYOND].ok
    for record in records:
        record.unread = {"delta.trace": (1, "{}")}
    check = of(records)[EVENTS_BEYOND]
    assert (check.ok, check.value) == (
        False,
        "100% of the answers: 9 events beyond the counted tokens, and text under unknown keys "
        "(delta.trace)",
    )


def test_unknown_lines_are_no_unknown_tokens():
    records = [reply(i, tokens=40, total=50, events=41) for i in range(9)]
    for record in records:
        record.unread = {"line": (1, "hello")}
    assert of(records)[EVENTS_BEYOND].ok


@pytest.mark.parametrize(
    ("tokens", "events", "holds"),
    [(12, 12, True), (13, 12, True), (13, 5, False), (121, 60, True), (121, 3, False)],
)
def test_tokens_of_the_first_event_must_matter_little(tokens: int, events: int, holds: bool):
    records = [reply(i, tokens=tokens, total=10 + tokens, events=events) for i in range(9)]
    assert of(records)[FIRST_EVENT].ok is holds


def test_tokens_of_the_first_event_are_compared_with_those_of_the_sample():
    """Texts of 4 of 400 answers tell that TPOT is over 22 tokens, and not over 100."""
    records = [reply(i, tokens=100, total=110, events=20) for i in range(400)]
    sample = tuple(sampled(record, 22) for record in records[:4])
    snapshot = structs.replace(measured(records), sample=sample)
    run = run_data(with_sampled_tpot(snapshot))
    (check,) = (check for check in token_counts(run) if check.name == FIRST_EVENT)
    assert (check.ok, check.value) == (
        True,
        "0.2381% added to TPOT, if the first event has 1.05 tokens as the others do",
    )


@pytest.mark.parametrize(("texts", "holds"), [(20, True), (15, True), (5, False)])
def test_tokens_that_no_text_has_are_suspect(texts: int, holds: bool):
    """Usage counts 20 tokens an answer; up to 8 may be marks that no server sends."""
    records = [reply(i, tokens=20, total=30, events=5) for i in range(40)]
    sample = tuple(sampled(record, texts) for record in records)
    run = run_data(structs.replace(measured(records), sample=sample))
    (check,) = (check for check in token_counts(run) if check.name == NOT_STREAMED)
    assert (check.ok, check.counts) == (holds, True)
    assert check.measured == (0 if holds else 0.75)


@pytest.mark.parametrize("name", [COUNTS_DISAGREE, EVENTS_BEYOND, NOT_STREAMED, FIRST_EVENT])
def test_answers_that_nothing_counts_are_not_judged(name: str):
    assert of([answered(0, tokens=[20, 30])])[name].ok is None
