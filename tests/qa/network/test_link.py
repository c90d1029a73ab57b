"""Link: bytes are readable in order, whatever comes first."""

import io
import json
import struct
from pathlib import Path
from unittest.mock import Mock

import pytest

from bench.network.link import PADDING, SYN, TIMESTAMP, WHOLE, Log, Refusals, Segment, Stream
from bench.network.readable import readable_times

TIMES = bytes([TIMESTAMP, 10, 0, 0, 1, 2, 0, 0, 0, 0])  # sent at 0x102


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
    assert Segment.of(ip + tcp_header(7, SYN) + b"data") == Segment(8080, 7, 0, True, b"data")
    padded = bytes([PADDING, PADDING, *TIMES])
    assert Segment.of(ip + tcp_header(7, 0, padded)).timestamp == 0x102


@pytest.mark.parametrize("is_refused", [False, True])
def test_segment_that_the_kernel_refused_was_not_given(is_refused: bool) -> None:
    log = io.StringIO()
    refusals = Mock(grew=Mock(return_value=is_refused))
    link = Log(log, refusals)
    ip = bytes([0x45]) + bytes(19)
    newer = bytes([PADDING, PADDING, TIMESTAMP, 10, 0, 0, 1, 3]) + bytes(4)
    link.add(ip + tcp_header(6, SYN, bytes([PADDING, PADDING, *TIMES])), 1, 2)
    link.add(ip + tcp_header(7, 0, newer) + b"ab", 3, 4)
    assert not refusals.grew.called
    link.add(ip + tcp_header(9, 0, bytes([PADDING, PADDING, *TIMES])) + b"cd", 5, 6)
    given = [json.loads(line) for line in log.getvalue().splitlines()]
    assert given == [[8080, 1, 2, None], [8080, 3, 4, "ab"], [8080, 5, 6, "cd"]][: 3 - is_refused]


def test_kernel_has_refused_nothing_since_it_was_asked() -> None:
    assert not Refusals().grew()


def tcp_header(sequence: int, flags: int, options: bytes = b"") -> bytes:
    """Of a segment to port 8080."""
    words = 5 + len(options) // 4
    return struct.pack(">HHIIBBHHH", 80, 8080, sequence, 0, words << 4, flags, 0, 0, 0) + options


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
