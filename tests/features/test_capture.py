"""The capture holds every read of complete responses, within its size limit and without secrets."""

import contextlib
import errno
import io

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput
from loadgen.features.capture import (
    LIMIT_BYTES,
    READ_BYTES,
    RESPONSE_BYTES,
    Capture,
    CapturedResponse,
    End,
    blanked,
    load,
    patterns,
)
from loadgen.workload.endpoints.generation import CHAT
from loadgen.workload.target import Target
from tests.helpers.run_facts import MS, START, at, planned

TARGET = Target("http://h/v1/chat/completions", "m", CHAT)
ROOM_FOR_ONE = RESPONSE_BYTES + 3 * READ_BYTES + 30


@pytest.fixture
def bounded(tmp_path):
    """Makes a capture with room for so many bytes."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(tmp_path / "c.jsonl", "wb"))
        yield lambda limit_bytes: Capture(file, [TARGET], limit_bytes)


@pytest.fixture
def capture(bounded):
    return bounded(LIMIT_BYTES)


def written(capture, tmp_path):
    capture.start_ns = START
    capture.close()
    return load(str(tmp_path / "c.jsonl")).responses


def begun(capture, index=0, **sending):
    record = planned(index, **sending)
    capture.sent(record)
    return record


def ended(record, outcome=Outcome.OK, *, ms=30.0):
    record.outcome, record.closed = outcome, at(ms)


def test_a_response_is_kept_with_every_read_and_its_times(capture, tmp_path):
    record = begun(capture, 7, due=10, sent=12, tokens=(16, 4))
    capture.read(record, at(20), b"head")
    capture.read(record, at(25), b"body")
    ended(record, ms=25)
    assert written(capture, tmp_path) == (
        CapturedResponse(
            7,
            10 * MS,
            12 * MS,
            16,
            4,
            ((8 * MS, b"head"), (13 * MS, b"body")),
            End.RESPONSE,
            13 * MS,
        ),
    )


def test_responses_stand_in_the_order_of_their_requests(capture, tmp_path):
    for index in (2, 0, 1):
        record = begun(capture, index)
        capture.read(record, at(20), b"x")
        ended(record)
    assert [response.index for response in written(capture, tmp_path)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (Outcome.OK, End.RESPONSE),
        (Outcome.STATUS, End.RESPONSE),
        (Outcome.EMPTY, End.RESPONSE),
        (Outcome.TRUNCATED, End.RESPONSE),
        (Outcome.STALLED, End.CLIENT),
        (Outcome.TIMEOUT_FIRST_TOKEN, End.CLIENT),
        (Outcome.CANCELLED, End.CLIENT),
        (Outcome.PROTOCOL_ERROR, End.CLIENT),
        (None, End.CLIENT),
    ],
)
def test_capture_marks_responses_that_the_client_ended(capture, tmp_path, outcome, end):
    record = begun(capture)
    capture.read(record, at(20), b"x")
    if outcome is not None:
        ended(record, outcome)
    assert written(capture, tmp_path)[0].end is end


@pytest.mark.parametrize(("error", "end"), [(None, End.EOF), (ConnectionResetError(), End.RESET)])
def test_a_connection_that_ends_first_is_told_with_its_time(capture, tmp_path, error, end):
    record = begun(capture)
    capture.lost(record, at(40), error)
    ended(record, Outcome.TRUNCATED, ms=41)
    (response,) = written(capture, tmp_path)
    assert (response.reads, response.end, response.ended_ns) == ((), end, 40 * MS)


def test_bytes_after_the_end_belong_to_no_response(capture, tmp_path):
    record = begun(capture)
    capture.read(record, at(20), b"x")
    ended(record)
    capture.read(record, at(50), b"surprise")
    capture.lost(record, at(60), None)
    (response,) = written(capture, tmp_path)
    assert (len(response.reads), response.end) == (1, End.RESPONSE)


def test_requests_it_was_not_told_of_are_not_kept(capture):
    capture.read(Record(0), at(20), b"x")
    capture.lost(Record(1), at(20), None)
    assert capture.about() == {"responses": 0, "left_out": 0, "error": None}


def test_beyond_the_bound_only_whole_responses_are_kept_and_the_rest_is_counted(bounded, tmp_path):
    capture = bounded(2 * ROOM_FOR_ONE)
    records = [begun(capture, index) for index in range(2)]
    for ms in (1, 2, 3):
        for record in records:
            capture.read(record, at(ms), b"0123456789")
    capture.read(records[0], at(4), b"one too many: this response is left out")
    capture.read(records[1], at(5), b"and leaves its room to the other")
    for record in records:
        ended(record)
    late = begun(capture, 2)
    capture.read(late, at(6), b"")
    ended(late)
    assert capture.about() == {"responses": 1, "left_out": 2, "error": None}
    (response,) = written(capture, tmp_path)
    assert (response.index, len(response.reads)) == (1, 4)


def test_requests_without_any_answer_fill_it_too(bounded):
    capture = bounded(10 * RESPONSE_BYTES)
    for index in range(100):
        begun(capture, index)
    capture.close()
    assert capture.about() == {"responses": 10, "left_out": 90, "error": None}


class Full(io.BytesIO):
    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said_and_ends_no_run():
    capture = Capture(Full(), [TARGET])
    begun(capture)
    capture.close()
    capture.close()
    assert capture.about() == {"responses": 1, "left_out": 0, "error": "No space left on device"}


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    with (
        pytest.raises(BadInput, match=r"--capture: .*No such file.*; name a writable file"),
        Capture.optional(str(tmp_path / "nowhere" / "c.jsonl"), [TARGET]),
    ):
        pass


def test_the_file_is_for_its_owner_alone(tmp_path):
    for name in ("c.jsonl", "c.jsonl.gz"):
        with Capture.optional(str(tmp_path / name), [TARGET]):
            pass
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_without_a_path_there_is_no_capture():
    with Capture.optional(None, [TARGET]) as capture:
        assert capture is None


# -- secrets


def shown(data, headers, cut=None):
    parts = [data] if cut is None else [data[:cut], data[cut:]]
    found = list(blanked(enumerate(parts), patterns(headers)))
    assert [len(part) for _, part in found] == [len(part) for part in parts]
    return b"".join(part for _, part in found)


def test_a_key_is_blanked_wherever_it_is_echoed_and_wherever_reads_cut_it():
    wire = (
        b'HTTP/1.1 401 No\r\nX-You-Sent: Bearer sk-0123456789\r\n\r\n{"error":"bad key '
        b'sk-0123456789"}'
    )
    for cut in range(len(wire)):
        found = shown(wire, {"Authorization": "Bearer sk-0123456789"}, cut)
        assert found == wire.replace(b"sk-0123456789", b"*" * 13)


def test_cookies_are_blanked():
    found = shown(b"HTTP/1.1 200 OK\r\nSet-Cookie: id=1\r\nset-cookie:b\r\nX: y\r\n\r\nbody", {})
    assert found == b"HTTP/1.1 200 OK\r\nSet-Cookie:*****\r\nset-cookie:*\r\nX: y\r\n\r\nbody"


def test_a_key_that_chunks_cut_is_blanked_and_the_framing_stays():
    wire = b"5\r\nis sk\r\nb;x=1\r\n-0123456789\r\n0\r\n\r\n"
    found = shown(wire, {"Authorization": "Bearer sk-0123456789"})
    assert found == b"5\r\nis **\r\nb;x=1\r\n***********\r\n0\r\n\r\n"


def test_a_value_that_is_no_secret_stays():
    wire = b'HTTP/1.1 200 OK\r\nX-Tier: data\r\n\r\ndata: {"a":"data"}\n\n'
    assert shown(wire, {"X-Tier": "data"}) == wire


def test_a_response_without_secrets_is_left_as_it_is():
    wire = b"HTTP/1.1 200 OK\r\n\r\ndata: {}\n\n"
    assert shown(wire, {"Authorization": "Bearer EMPTY"}) == wire
