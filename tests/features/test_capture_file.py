"""A capture file is read back byte for byte; an invalid one is refused with its line number."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.errors import BadInput
from loadgen.features.capture import CapturedResponse, End, first_line, load, to_line

ONE = CapturedResponse(
    7, 1000, 1200, 16, 4, ((500, b"HTTP/1.1 200 OK\r\n\r\n"), (900, b"data: x\n\n")), End.EOF, 950
)


def responses():
    reads = st.lists(
        st.tuples(st.integers(0, 2**40), st.binary() | st.text().map(str.encode)), max_size=4
    )
    numbers = st.integers(0, 2**40)
    made = st.builds(
        CapturedResponse,
        numbers,
        numbers,
        numbers,
        numbers,
        numbers,
        reads.map(tuple),
        st.sampled_from(End),
        numbers,
    )
    return st.lists(made, min_size=1, max_size=4, unique_by=lambda response: response.index)


@given(responses())
def test_capture_file_is_read_back_in_request_order(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("capture") / "c.jsonl"
    path.write_bytes(first_line("m") + b"".join(map(to_line, found)))
    recording = load(str(path))
    assert recording.model == "m"
    assert recording.responses == tuple(sorted(found, key=lambda response: response.index))


def test_text_is_readable_and_what_is_none_is_base64():
    line = to_line(
        CapturedResponse(
            0, 0, 0, 0, 0, ((1, "größer\n".encode()), (2, b"\xc3"), (3, b"\x1b[2J")), End.EOF, 3
        )
    )
    assert '[1,"größer\\n"],[2,"ww==","base64"],[3,"G1sySg==","base64"]' in line.decode()


def test_a_name_that_ends_in_gz_is_unzipped(tmp_path: Path):
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(first_line("m") + to_line(ONE)))
    assert load(str(path)).responses == (ONE,)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "line 1"),
        (b"{}\n", "line 1: without 'format'"),
        (
            b'{"format": "loadgen capture", "version": 2}\n',
            "line 1: not 'loadgen capture' of version 1",
        ),
        (b"[]\n", "line 1"),
        (first_line("m"), "it holds no response"),
        (first_line("m") + to_line(ONE) + b"{", "line 3"),
        (
            first_line("m") + to_line(ONE).replace(b'"eof"', b'"bang"'),
            "line 2: 'bang' is not a valid End",
        ),
        (
            first_line("m") + to_line(ONE).replace(b'"data: x\\n\\n"', b'"YQ==","rot13"'),
            "line 2: 'rot13' is no encoding",
        ),
        (first_line("m") + to_line(ONE).replace(b'"data: x\\n\\n"', b'"*","base64"'), "line 2"),
        (first_line("m") + to_line(ONE).replace(b'"reads"', b'"rads"'), "line 2: without 'reads'"),
        (b"\x1f\x8b\x08", "line 1"),
    ],
)
def test_invalid_capture_is_refused_with_its_line(tmp_path: Path, content: bytes, problem: str):
    path = tmp_path / "c.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="loadgen run --capture") as caught:
        load(str(path))
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    "content",
    [b"plain text", gzip.compress(b"x" * 1000)[:-10], gzip.compress(b"x")[:12] + b"!!"],
    ids=["none", "cut off", "broken"],
)
def test_a_broken_gzip_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        load(str(path))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="No such file"):
        load(str(tmp_path / "nothing.jsonl"))
