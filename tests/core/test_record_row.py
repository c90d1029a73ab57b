"""A record that was written as a row and read again is the same: its line of JSON has the same
bytes.
"""

import contextlib
import io
import sys
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.event_flags import CHOICE, CONTENT, FINISH, USAGE
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.record_json import record_line
from loadgen.core.record_row import FIELDS, SIZE_BYTES, RowWriter, record_from_row
from loadgen.core.server_times import BY, QUANTITIES
from loadgen.metrics.records.json_lines import record_from_line
from tests.helpers.captured_responses import Golden, goldens
from tests.helpers.run_facts import MS, START, S, answered

NUMBERS = st.integers(-(2**62), 2**62)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
BOOLS = ("is_whole", "done_seen", "reused", "window_filled")
SHORT = ("target", "class_number", "status", "first_status", "counted_by")
FLAGS = [CHOICE | CONTENT, CHOICE | FINISH, USAGE]


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Records with anything in them."""
    record = Record()
    for name in FIELDS:
        values = NUMBERS
        if name in BOOLS:
            values = st.booleans()
        elif name in SHORT:
            values = st.integers(0, 2**31 - 1)
        setattr(record, name, draw(values))
    record.outcome = draw(st.sampled_from(Outcome))
    record.source, record.detail, record.finish_reason = draw(
        st.tuples(*[st.none() | TEXTS.filter(bool)] * 3)
    )
    record.matched_stop = draw(st.none() | TEXTS | st.integers(0, 2**63))
    pairs = st.tuples(st.integers(1, 9), TEXTS)
    record.unread = draw(st.none() | st.dictionaries(TEXTS, pairs, min_size=1))
    ns = st.integers(0, 2**62)
    quantities = st.dictionaries(st.sampled_from(QUANTITIES), ns, min_size=1)
    if times := draw(st.none() | quantities):
        record.add_times({"by": draw(st.sampled_from(BY)), **times})
    if parts := draw(st.none() | st.fixed_dictionaries({"dns": ns, "tcp": ns, "tls": ns})):
        record.connect_parts = parts
    if numbers := draw(st.none() | st.tuples(*[st.integers(0, 2**31 - 1)] * 4)):
        record.tcp_info = numbers
    count = draw(st.integers(0, 5))

    def column(numbers: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(numbers, min_size=count, max_size=count))

    small = st.integers(-(2**60), 2**60)
    stamps, late = column(small), column(small)
    earliest = list(zip(range(count), column(small), strict=True))
    record.restore(
        stamps,
        draw(st.none() | st.just(column(st.integers(0, 99)))),
        draw(st.none() | st.lists(st.tuples(st.sampled_from(FLAGS), st.integers(1, 2**60)))),
        draw(TEXTS),
        draw(st.none() | st.just(earliest)),
        draw(st.none() | st.just(late)),
    )
    return record


def row_of(record: Record, *, answers: bool = False) -> bytes:
    """The row that a writer makes of a record."""
    file = io.BytesIO()
    writer = RowWriter(file)
    writer.keeps_answers = answers
    if record.source is not None:
        writer.sources = [record.source]
    writer.write(record)
    writer.flush()
    return file.getvalue()


def assert_same(record: Record, **options: Any) -> None:
    """Assert that the row of a record gives the same line of JSON, with and without its answer."""
    for answers in (False, True):
        again = record_from_row(row_of(record, answers=answers))
        line = record_line(record, START, answer=answers, **options)
        assert record_line(again, START, answer=answers, **options) == line


@given(records(), st.none() | TEXTS)
def test_any_record_has_the_same_line_after_it_was_a_row(
    record: Record, class_name: str | None
) -> None:
    assert_same(record, class_name=class_name)
    again = record_from_row(row_of(record))
    facts = (*FIELDS, "stamps", "earliest", "read_times", "token_counts", "stream", "unread")
    facts += ("server_times", "connect_parts", "tcp_info")
    assert {name: getattr(again, name) for name in facts} == {
        name: getattr(record, name) for name in facts
    }


@pytest.mark.parametrize("golden", goldens(), ids=lambda golden: golden.name)
def test_answers_of_servers_have_the_same_line(golden: Golden) -> None:
    dialect = golden.api.dialect
    response, record = Response(None if dialect is None else DialectScanner(dialect)), golden.asked
    record.keeps_answer = True
    response.begin(record)
    for number, (_, data) in enumerate(golden.response.reads):
        if not response.complete:
            response.feed(data, START + (number + 1) * MS)
    if record.outcome is None:
        record.end(Outcome.TRUNCATED, "the connection broke", START + S)
    assert_same(record)


def test_huge_texts_and_many_events_are_kept() -> None:
    record = answered(tokens=list(range(20, 5020)))
    record.outcome, record.detail = Outcome.STATUS, "\U0001f600\n\x00" * 1_000_000
    record.restore([], answer="é" * 3_000_000)
    assert_same(record)
    assert len(record_from_row(row_of(record)).stamps) == 5000


def test_sources_are_those_of_the_prompts_in_turn() -> None:
    writer = RowWriter(file := io.BytesIO())
    writer.sources = ["a", "b"]
    writer.write(answered(3))
    writer.flush()
    assert record_from_row(file.getvalue()).source == "b"
    assert record_from_row(row_of(answered(3))).source is None


def test_times_are_moved_and_what_did_not_happen_stays_so() -> None:
    record = answered(2, due=5, reasoning=[20], tokens=[30, 40])
    again = record_from_row(row_of(record), 7)
    assert (again.due, again.closed, again.stamps, again.written) == (
        record.due + 7,
        record.closed + 7,
        [at_ns + 7 for at_ns in record.stamps],
        0,
    )
    assert orjson.loads(record_line(again, START + 7)) == orjson.loads(record_line(record, START))


def full() -> Record:
    """A record with all that only some have."""
    record = answered()
    record.add_times({"by": "vllm", "queue": 5, "prefill": 7, "headers": 9})
    record.connect_parts = {"dns": 1, "tcp": 2, "tls": 0}
    record.tcp_info = (30_325, 30_410, 0, 2)
    return record


def test_what_the_server_and_tcp_say_is_read_back_from_a_row_and_from_a_line() -> None:
    line = record_line(full(), START)
    data = orjson.loads(line)
    assert data["server_times"] == {"by": "vllm", "queue": 5, "prefill": 7, "headers": 9}
    assert data["connect_parts"] == {"dns": 1, "tcp": 2, "tls": 0}
    assert data["tcp"] == [30_325, 30_410, 0, 2]
    assert record_line(record_from_line(data, START), START) == line
    assert len(row_of(full())) - len(row_of(answered())) <= 100, "bytes a request"
    assert {"server_times", "connect_parts", "tcp"}.isdisjoint(
        orjson.loads(record_line(answered(), START))
    )


def test_each_cut_of_a_row_is_refused() -> None:
    row = row_of(full())
    assert int.from_bytes(row[:SIZE_BYTES], "little") == len(row)
    for size in range(len(row)):
        with pytest.raises((IndexError, TypeError, ValueError)):
            record_from_row(row[:size])


@pytest.mark.parametrize("damage", [-(2**63), -1, 2**31, 2**61, 2**63 - 1])
def test_a_row_with_any_damaged_number_is_read_or_refused(damage: int) -> None:
    row = row_of(answered())
    for begin in range(0, len(row) - SIZE_BYTES, SIZE_BYTES):
        word = damage.to_bytes(SIZE_BYTES, sys.byteorder, signed=True)
        with contextlib.suppress(IndexError, OverflowError, TypeError, ValueError):
            record_from_row(row[:begin] + word + row[begin + SIZE_BYTES :])


def test_rows_are_handed_over_when_they_are_many() -> None:
    file = io.BytesIO()
    writer = RowWriter(file)
    sizes = set()
    for index in range(500):
        writer.write(answered(index))
        sizes.add(file.tell())
    assert len(sizes) > 2
    assert max(sizes) < 500 * len(row_of(answered(1)))
    writer.flush()
    assert file.tell() == 500 * len(row_of(answered(1)))


def test_nothing_is_written_after_the_limit() -> None:
    size = len(row_of(answered(1)))
    file = io.BytesIO()
    writer = RowWriter(file, 2.5 * size)
    for _ in range(4):
        writer.write(answered(1))
    writer.flush()
    assert (writer.error, file.tell()) == ("the file has reached its limit", 2 * size)
