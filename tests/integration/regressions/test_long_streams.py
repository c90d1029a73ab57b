"""Long prompts and long events: the client reads what the server writes, whatever its size."""

import asyncio
import sys
from asyncio import selector_events
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util.clock import now_ns
from tests.helpers.fault_requests import Sender
from tests.helpers.response_bytes import DONE, delta, streamed
from tests.helpers.scripted_server import answering, read_request, serving

AIOHTTP = str(Path(aiohttp.__file__).parent)
LONG_PROMPT = b" word" * 50_000
STREAMS, EVENTS = 8, 60
SIXTY_KB = "x" * 60_000


@pytest.mark.asyncio(loop_factories=["asyncio"])  # whose transports can be watched
async def test_at_a_context_of_50k_tokens_the_client_never_stops_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """vllm#39963: aiohttp's reader stops reading at 64 KB of unread bytes, and the server has to
    wait for it.

    Users saw throughput fall from 486 to 44 tok/s and TTFT rise from 1.3 to 134 s at 50k tokens of
    context, while another client found nothing wrong with the same server.
    """
    wire = streamed(
        b"".join(delta(content=SIXTY_KB) for _ in range(EVENTS)) + delta("length") + DONE, 1 << 20
    )
    arrived: list[int] = []
    paused: list[str] = []
    pause = selector_events._SelectorSocketTransport.pause_reading

    def noted(transport: Any) -> None:
        paused.append(sys._getframe(1).f_code.co_filename)
        pause(transport)

    monkeypatch.setattr(selector_events._SelectorSocketTransport, "pause_reading", noted)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if ask := await read_request(reader):
            arrived.append(len(ask.body))
            writer.write(wire)
            await writer.drain()

    async with serving(script) as url, Sender(url) as sender:
        await sender.transport.warm(STREAMS)
        for _ in range(STREAMS):
            record = Record(0, 50_000, EVENTS, now_ns())
            record.ready = record.due
            sender.transport.send(record, LONG_PROMPT)
        records = await sender.ended(STREAMS)
        # Those of ours are paused because a poll reads them, which stops for nothing.
        assert [where for where in paused if where.startswith(AIOHTTP)] == []
        async with aiohttp.ClientSession() as session, session.post(url, data=LONG_PROMPT) as reply:
            assert (await reply.content.readany())[:1]
            while not any(
                where.startswith(AIOHTTP) for where in paused
            ):  # what stops reading would have been seen
                await asyncio.sleep(0.01)
    assert [(record.outcome, record.events) for record in records] == [
        (Outcome.OK, EVENTS)
    ] * STREAMS
    assert arrived == [len(LONG_PROMPT)] * (STREAMS + 1)


async def test_an_event_of_a_megabyte_is_an_event() -> None:
    """sglang#6737: "Chunk too big", raised by aiohttp's reader for a line of more than 128 KB.

    Users saw requests with long contexts fail, and none of the others: the sample was biased
    towards short ones.
    """
    body = (
        delta(content="x" * (1 << 20))
        + delta(content="y", reasoning="z" * (1 << 20))
        + delta("stop")
        + DONE
    )
    async with serving(answering(streamed(body, 1 << 22))) as url, Sender(url) as sender:
        record = await sender.one()
    assert (record.outcome, record.events) == (Outcome.OK, 2)
