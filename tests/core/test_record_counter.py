"""The counter of records that have ended: equal to a plain count in Python."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.accumulator import Latency, Tally
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.record_counter import RecordCounter, RecordDivider
from loadgen.core.request_rows import RequestRows
from loadgen.metrics.snapshot import BIN_NS, LATENCIES, ROW, WAITS
from tests.helpers.run_facts import MS, START, answered, failed

SILENCE_NS = 500 * MS
WORDS = 20  # that are counted apart


class Counted:
    """A counter, with what it adds to.

    Attributes:
        tally, rows: What it adds to.
        failures, retried, unread, silences, details: The numbers of the records that it handed on
            as such.
        counter: The counter.
    """

    def __init__(self, *, detailed: bool = False) -> None:
        latencies = {name: Latency() for name in LATENCIES}
        self.tally = Tally(START, BIN_NS, latencies, {name: Histogram() for name in WAITS})
        self.rows = RequestRows(START, from_due=True)
        self.failures, self.retried = list[int](), list[int]()
        self.unread, self.silences, self.details = list[int](), list[int](), list[int]()
        self.counter = RecordCounter(
            self.tally,
            self.rows,
            self,
            silence_ns=SILENCE_NS,
            add_details=self.add_details if detailed else None,
        )

    def add_failure(self, record: Record) -> None:
        self.failures.append(record.index)

    def add_retried(self, record: Record) -> None:
        self.retried.append(record.index)

    def add_unread(self, record: Record) -> None:
        self.unread.append(record.index)

    def add_silence(self, record: Record) -> None:
        self.silences.append(record.index)

    def add_details(self, record: Record) -> None:
        self.details.append(record.index)


def ended(draw: st.DrawFn, index: int) -> Record:
    """A record of any outcome and with any of what the counter looks at."""
    outcome = draw(st.sampled_from([Outcome.OK, Outcome.OK, Outcome.OK, *Outcome]))
    if outcome is not Outcome.OK:
        return failed(index, outcome)
    counts = draw(st.sampled_from([None, {"completion_tokens": 2}, {"completion_tokens": 9}]))
    record = answered(index, tokens=[20, 30], counts=counts, closed=draw(st.integers(500, 540)))
    record.output_tokens = draw(st.integers(0, 10))
    record.finish_reason = draw(st.sampled_from([None, "", *(f"word {n}" for n in range(30))]))
    record.matched_stop = draw(st.sampled_from([None, None, 7, "\n", "x" * 100]))
    record.results = draw(st.sampled_from([-1, -1, 3]))
    record.attempts = draw(st.sampled_from([1, 1, 1, 2]))
    record.unread = draw(st.sampled_from([None, None, {"field": (1, "x")}]))
    return record


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """The records of a run."""
    return [ended(draw, index) for index in range(draw(st.integers(0, 60)))]


def count(words: Counter[str], word: str) -> None:
    """Count a word; words beyond WORDS are counted together."""
    words[word if word in words or len(words) < WORDS else "other"] += 1


@given(records())
def test_it_counts_as_plain_python_does(run: list[Record]) -> None:
    counted = Counted()
    finishes, early_stops = Counter[str](), Counter[str]()
    answers = [record for record in run if record.outcome is Outcome.OK]
    for record in run:
        counted.counter.add(record)
    for record in answers:
        if record.results < 0:
            count(finishes, record.finish_reason or "")
        if record.counts_tokens and record.answer_tokens < record.output_tokens:
            stop = record.matched_stop
            quoted = json.dumps(stop[:64]) if isinstance(stop, str) else f"token {stop}"
            word = record.finish_reason or "none"
            count(early_stops, word if stop is None else f"{word} ({quoted})")
    assert (counted.counter.ended, counted.counter.ok) == (len(run), len(answers))
    assert counted.counter.finishes == finishes
    assert counted.counter.early_stops == early_stops
    assert counted.failures == [r.index for r in run if r.outcome is not Outcome.OK]
    assert counted.retried == [r.index for r in run if r.attempts > 1]
    assert counted.unread == [r.index for r in run if r.unread]
    silent = [r.index for r in run if r.first_token and r.closed - r.first_token >= SILENCE_NS]
    assert counted.silences == silent
    assert counted.details == []
    assert counted.tally.output_tokens == sum(record.answer_tokens for record in answers)
    assert len(bytes(counted.rows)) == len(run) * ROW.size


def test_details_are_kept_of_every_record() -> None:
    counted = Counted(detailed=True)
    for index in range(3):
        counted.counter.add(answered(index))
    assert counted.details == [0, 1, 2]


def test_each_record_is_counted_by_the_counter_of_its_target_and_class() -> None:
    parts = [Counted() for _ in range(6)]
    divider = RecordDivider([part.counter.add for part in parts], 3)
    for index in range(8):
        record = answered(index)
        record.target, record.class_number = index % 2, index % 3
        divider.add(record)
    assert [part.counter.ok for part in parts] == [2, 1, 1, 1, 2, 1]


@pytest.mark.parametrize("target", [1, -1])
def test_a_record_of_a_target_that_is_not_there_is_refused(target: int) -> None:
    divider = RecordDivider([Counted().counter.add], 1)
    record = answered()
    record.target = target
    with pytest.raises(IndexError):
        divider.add(record)


def test_what_is_no_record_is_refused() -> None:
    counted = Counted()
    for add in (counted.counter.add, RecordDivider([counted.counter.add], 1).add):
        with pytest.raises(TypeError, match="record"):
            add(None)  # type: ignore[arg-type]
    assert counted.counter.ended == 0


def test_what_fails_while_it_counts_is_raised() -> None:
    counted = Counted(detailed=True)
    counted.details = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        counted.counter.add(answered())
