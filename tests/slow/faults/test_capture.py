"""A capture of the real transport is replayed as the server sent it."""

import asyncio
import gzip
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.engines.sim.connection import NO_LINGER
from loadgen.features import capture
from loadgen.features.capture import CapturedResponse, End
from loadgen.testing.process import Process
from tests.helpers.fault_runs import job, recorded, run
from tests.helpers.response_bytes import HEAD, answer, chunked, delta, event, streamed, usage
from tests.helpers.scripted_server import GOOD, answering, read_request, serving

PAUSE_S = 0.05


async def captured(
    url: str, tmp_path: Path, count: int = 1, **settings: Any
) -> tuple[CapturedResponse, ...]:
    path = str(tmp_path / "c.jsonl")
    found = (
        (await run(job(url, tmp_path, count, capture=path, **settings)))
        .trailer.workers[0]
        .client.capture
    )
    responses = capture.load(path).responses
    assert found == {"responses": len(responses), "left_out": 0, "error": None}
    return responses


async def reset(writer: asyncio.StreamWriter, first: bytes) -> None:
    writer.write(first)
    await writer.drain()
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    writer.transport.abort()


def whole(response: CapturedResponse) -> bytes:
    return b"".join(data for _, data in response.reads)


async def test_every_response_is_kept_byte_for_byte_and_the_rehearsal_is_not(
    tmp_path: Path,
) -> None:
    async with serving(answering(GOOD)) as url:
        responses = await captured(
            url, tmp_path, 5, num_warmups=3, ready_check_timeout_sec=5.0, max_concurrency=1
        )
    assert [response.index for response in responses] == [0, 1, 2, 3, 4]
    assert {whole(response) for response in responses} == {GOOD}
    assert {
        (response.end, response.input_tokens, response.output_tokens) for response in responses
    } == {(End.RESPONSE, 2, 2)}
    assert all(0 <= response.due_ns <= response.sent_ns for response in responses)


@pytest.mark.parametrize(
    "first", [b"", HEAD + b"\r\n" + delta(content="a")], ids=["before any byte", "in mid-stream"]
)
async def test_a_reset_is_kept_as_one(tmp_path: Path, first: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await reset(writer, first)

    async with serving(script) as url:
        (response,) = await captured(url, tmp_path)
    assert (whole(response), response.end) == (first, End.RESET)


async def test_silence_until_a_timeout_is_kept_as_silence(tmp_path: Path) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await reader.read()

    async with serving(script) as url:
        (response,) = await captured(url, tmp_path, timeout=0.1)
    assert (response.reads, response.end) == ((), End.CLIENT)
    assert response.ended_ns > 100_000_000


ODD = [
    GOOD,
    streamed(
        delta(reasoning="a") + answer("b", " c") + usage(prompt_tokens=2, completion_tokens=5)
    ),
    b"HTTP/1.1 503 Busy\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nbusy",
    HEAD + b"\r\n" + answer("until", " close", finish="length"),
    streamed(delta(content="a") + event(error={"message": "out of memory"})),
    streamed(answer("cut"))[:-40],
    HEAD
    + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    + chunked(gzip.compress(answer("x", "y"))),
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"SSH-2.0\r\n\r\n",
    b"",
]


def facts(path: Path) -> list[dict[str, Any]]:
    """What each request brought, in order, without when."""
    names = ["outcome", "detail", "finish_reason", "status", "events"]
    names += ["prompt_tokens", "completion_tokens"]
    return [{name: getattr(record, name) for name in names} for record in recorded(path)]


async def test_a_server_with_every_oddity_is_replayed_as_what_it_was(
    tmp_path: Path, replay: Callable[..., Process]
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ask = await read_request(reader)
        assert ask is not None
        assert ask.index is not None
        if ask.index == len(ODD):
            await reset(writer, GOOD[:120])
        else:
            writer.write(ODD[ask.index])
            await writer.drain()

    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
    options = {"records": str(tmp_path / "first"), "capture": str(tmp_path / "c.jsonl.gz")}
    count = len(ODD) + 1
    async with serving(script) as url:
        await run(job(url, tmp_path / "1", count, request_rate=200.0, **options))
    server = replay(tmp_path / "c.jsonl.gz")
    await run(
        job(server.url, tmp_path / "2", count, request_rate=200.0, records=str(tmp_path / "second"))
    )
    first, second = facts(tmp_path / "first"), facts(tmp_path / "second")
    assert len({fact["outcome"] for fact in first}) == 7
    assert second == first


async def test_the_times_between_events_come_back(
    tmp_path: Path, replay: Callable[..., Process]
) -> None:
    """One stream of a second: a ratio of what was recorded to what is replayed, on a machine
    that others use too.
    """

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + b"\r\n")
        for part in answer(*"abcdefgh").split(b"\n\n")[:-1]:
            writer.write(part + b"\n\n")
            await asyncio.sleep(PAUSE_S)

    async with serving(script) as url:
        (first,) = await captured(url, tmp_path)
    server = replay(tmp_path / "c.jsonl", "--speed", "0.5")
    again = tmp_path / "again"
    again.mkdir()
    for _ in range(10):
        (second,) = await captured(server.url, again)
        spans = [response.reads[-1][0] - response.reads[0][0] for response in (first, second)]
        if spans[1] / spans[0] == pytest.approx(2, rel=0.05):
            break
    assert whole(second) == whole(first)
    assert spans[1] / spans[0] == pytest.approx(2, rel=0.05)
