"""Link: bytes are readable in order, whatever comes first."""

import json
from pathlib import Path

import pytest

from bench.network.link import WHOLE, Segment, Stream
from bench.network.readable import readable_times


@pytest.mark.parametrize("begin", [1000, WHOLE - 3])
def test_bytes_behind_a_missing_segment_wait_for_it(begin: int) -> None:
    stream = Stream(begin)
    assert stream.deliver(begin, b"ab") == b"ab"
    assert stream.deliver((begin + 4) % WHOLE, b"ef") == b""
    assert stream.deliver((begin + 6) % WHOLE, b"gh") == b""
    assert stream.deliver((begin + 2) % WHOLE, b"cd") == b"cdefgh"


def test_bytes_that_come_again_are_not_read_again() -> None:
    stream = Stream(1000)
    assert stream.deliver(1000, b"abcd") == b"abcd"
    assert stream.deliver(1002, b"cdef") == b"ef"
    assert stream.deliver(1000, b"abcd") == b""


def test_segment_is_read_from_a_packet() -> None:
    ip = bytes([0x46]) + bytes(23)  # with an option
    tcp = bytes.fromhex("0050 1f90 00000007 00000000 60 02 0000 0000 0000") + bytes(4)
    assert Segment.of(ip + tcp + b"data") == Segment(8080, 7, True, b"data")


def test_tokens_are_readable_with_their_last_byte(tmp_path: Path) -> None:
    log = tmp_path / "log"
    token = '7f\r\ndata: {"id":"chatcmpl-3","plan_ns":  1,"write_ns":  2}\n\n\r\n'
    role = 'data: {"id":"chatcmpl-3","choices":[]}\n\n'
    lines = [
        [80, 1, 2, "another run"],
        [80, 3, 4, None],
        [80, 5, 6, role + token + token[:20]],
        [80, 7, 8, token[20:]],
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    start = len(json.dumps(lines[0])) + 1
    assert readable_times(log, start) == {3: [(5, 6), (7, 8)]}
