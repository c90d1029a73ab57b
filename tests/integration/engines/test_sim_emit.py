"""The simulator's write path: order, backpressure, slow and disconnected readers."""

import asyncio
import json
import re
import socket
from typing import Any

import pytest

from loadgen.engines.sim.emit import Grouped, Stream, Words, emit
from tests.helpers.socket_pair import Pair, on_both_loops

WORDS = Words(["alpha", "be", "gammaray"])
HEAD, TAIL = b'data: {"t":"', b'"}\n\n'


def stream(pair: Pair, seed: int = 1, **options: Any) -> Stream:
    return Stream(pair.transport, WORDS, seed, HEAD, TAIL, **options)


def chunks(data: bytes) -> list[bytes]:
    """Undo the chunking, strictly."""
    found, position = [], 0
    while position < len(data):
        size = re.compile(rb"([1-9a-f][0-9a-f]*)\r\n").match(data, position)
        assert size
        end = size.end() + int(size[1], 16)
        assert data[end : end + 2] == b"\r\n"
        found.append(data[size.end() : end])
        position = end + 2
    return found


def tokens(data: bytes) -> list[str]:
    """The token of each event."""
    return [json.loads(chunk.removeprefix(b"data: "))["t"] for chunk in chunks(data)]


@on_both_loops
async def test_each_token_is_one_event_in_one_chunk(pair: Pair) -> None:
    stream(pair).write(tokens=5)
    pair.transport.close()
    received = tokens(await pair.receive_all())
    assert len(received) == 5
    assert "".join(received) == WORDS.text(1, 5)


@on_both_loops
async def test_emitting_writes_one_token_to_each_stream_and_skips_none(pair: Pair) -> None:
    one, other = stream(pair, seed=1), stream(pair, seed=2)
    for _ in range(3):
        emit([one, None, other])
    assert (one.tokens, other.tokens) == (3, 3)
    pair.transport.close()
    received = tokens(await pair.receive_all())
    assert "".join(received[0::2]) == WORDS.text(1, 3)
    assert "".join(received[1::2]) == WORDS.text(2, 3)


@on_both_loops
async def test_pieces_before_and_after_go_out_as_they_are(pair: Pair) -> None:
    stream(pair).write(b"<", 1, b">")
    pair.transport.close()
    received = await pair.receive_all()
    assert received[:1] + received[-1:] == b"<>"
    assert len(tokens(received[1:-1])) == 1


@on_both_loops
async def test_the_last_event_may_end_otherwise(pair: Pair) -> None:
    one = stream(pair)
    one.write(tokens=2)
    one.write(tokens=1, tail=b'","end":"of a longer tail than all before"}\n\n')
    pair.transport.close()
    received = [
        json.loads(chunk.removeprefix(b"data: ")) for chunk in chunks(await pair.receive_all())
    ]
    assert ["end" in event for event in received] == [False, False, True]
    assert "".join(event["t"] for event in received) == WORDS.text(1, 3)


@on_both_loops
async def test_reasoning_comes_first_and_parts_start_without_space(pair: Pair) -> None:
    stream(pair, reasoning_head=b'data: {"t":"!', reasoning_tokens=2).write(tokens=5)
    pair.transport.close()
    received = tokens(await pair.receive_all())
    assert [each[0] for each in received[:2]] == ["!", "!"]
    assert "".join(each[1:] for each in received[:2]) == WORDS.text(1, 2)
    assert "".join(received[2:]) == WORDS.text(1, 3, skip=2)


@on_both_loops
async def test_bytes_of_earlier_response_in_transport_go_first(pair: Pair) -> None:
    pair.transport.write(b"first" * 200_000)
    stream(pair, limit=8 << 20).write(b"second")
    pair.transport.close()
    assert (await pair.receive_all()) == b"first" * 200_000 + b"second"


@on_both_loops
async def test_a_reader_that_pauses_gets_everything_in_order(pair: Pair) -> None:
    paused = stream(pair, limit=64 << 20)
    buffered = 0
    for _ in range(20):
        paused.write(tokens=1000)
        buffered = max(buffered, pair.transport.get_write_buffer_size())
    assert buffered > 0
    pair.transport.close()
    received = tokens(await pair.receive_all())
    assert len(received) == 20_000
    assert "".join(received) == WORDS.text(1, 20_000)


@on_both_loops
async def test_after_a_pause_the_socket_is_written_directly_again(pair: Pair) -> None:
    paused = stream(pair, limit=64 << 20)
    while not pair.transport.get_write_buffer_size():
        paused.write(tokens=1000)
    loop, received = asyncio.get_running_loop(), b""
    while pair.transport.get_write_buffer_size():
        received += await loop.sock_recv(pair.peer, 1 << 20)
    before = paused.tokens
    paused.write(tokens=1)
    assert pair.transport.get_write_buffer_size() == 0
    pair.transport.close()
    received += await pair.receive_all()
    assert "".join(tokens(received)) == WORDS.text(1, before + 1)


@on_both_loops
async def test_a_reader_that_never_reads_is_cut_at_the_limit(pair: Pair) -> None:
    slow = stream(pair, limit=100_000)
    for _ in range(20_000):
        slow.write(tokens=100)
        if slow.cut:
            break
    assert slow.cut
    await pair.lost.wait()
    written = slow.tokens
    emit([slow])
    slow.write(b"more")
    assert slow.tokens == written


@on_both_loops
async def test_a_reader_that_has_gone_ends_the_connection(pair: Pair) -> None:
    gone = stream(pair)
    pair.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    pair.peer.close()
    for _ in range(3):
        emit([gone])
    await pair.lost.wait()
    assert not gone.cut


@on_both_loops
async def test_closed_stream_writes_no_token(pair: Pair) -> None:
    closed = stream(pair)
    closed.close()
    closed.write(b"x", 1)
    emit([closed])
    assert closed.tokens == 0


def test_words_that_would_need_escaping_are_refused() -> None:
    for words in ([], ["a b"], ['"'], ["é"], [""]):
        with pytest.raises(ValueError, match="ASCII letters"):
            Words(words)


USAGE = {"prompt_tokens": 5, "between": b',"own":', "end": b"}\n\n"}


def grouped(pair: Pair, group: int, **options: Any) -> Grouped:
    return Grouped(
        pair.transport, WORDS, 1, HEAD, options.pop("tail", TAIL), group=group, **options
    )


@on_both_loops
async def test_group_is_one_event_and_the_rest_another(pair: Pair) -> None:
    stream = grouped(pair, 4)
    for _ in range(9):
        emit([stream])
    stream.write(b"<", 1, b">")
    pair.transport.close()
    received = await pair.receive_all()
    head, _, rest = received.partition(b"<")
    events = tokens(head) + tokens(rest.removesuffix(b">"))
    assert [len(event.split()) for event in events] == [4, 4, 2]
    assert "".join(events) == WORDS.text(1, 10)
    assert stream.tokens == 10


@on_both_loops
async def test_a_group_never_spans_the_end_of_the_reasoning(pair: Pair) -> None:
    grouped(pair, 4, reasoning_head=b'data: {"t":"!', reasoning_tokens=6).write(
        b"", 12, b"0\r\n\r\n"
    )
    pair.transport.close()
    events = tokens((await pair.receive_all()).removesuffix(b"0\r\n\r\n"))
    assert [len(event.lstrip("!").split()) for event in events] == [4, 2, 4, 2]
    assert [event[0] == "!" for event in events] == [True, True, False, False]
    assert "".join(event[1:] for event in events[:2]) == WORDS.text(1, 6)
    assert "".join(events[2:]) == WORDS.text(1, 6, skip=6)


@on_both_loops
async def test_events_say_how_many_tokens_there_are_so_far(pair: Pair) -> None:
    grouped(pair, 1, tail=b'","all":', **USAGE).write(tokens=1005)
    pair.transport.close()
    events = [
        json.loads(chunk.removeprefix(b"data: ")) for chunk in chunks(await pair.receive_all())
    ]
    assert [event["own"] for event in events] == list(range(1, 1006))
    assert [event["all"] for event in events] == list(range(6, 1011))
    assert "".join(event["t"] for event in events) == WORDS.text(1, 1005)


@on_both_loops
async def test_grouped_stream_without_groups_equals_stream(pair: Pair) -> None:
    grouped(pair, 1).write(tokens=50)
    stream(pair).write(tokens=50)
    pair.transport.close()
    received = await pair.receive_all()
    assert received[: len(received) // 2] == received[len(received) // 2 :]
