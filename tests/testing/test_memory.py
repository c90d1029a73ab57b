"""A network in memory feeds the real reader: the record shows each reply at its time."""

import asyncio

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.testing import virtual
from loadgen.testing.memory import Memory, Reply
from loadgen.testing.memory_servers import answered, distant, planned, queued, stalled
from loadgen.testing.virtual import EPOCH_NS, timed
from loadgen.util.clock import KERNEL
from tests.helpers.response_bytes import HEAD, delta, usage
from tests.helpers.run_facts import CHUNKED, LAST_CHUNK, MS, S, chunk


class Client:
    """Sends requests and keeps what ended, in order."""

    def __init__(self, server, clock=None):
        self.memory = Memory(server, clock or virtual.clock())
        self.memory.on_end = self._ended
        self.ended, self._changed = [], asyncio.Event()

    def send(self, index=0, body=b"{}"):
        record = Record(index, 2, 2, self.memory.clock.now_ns())
        record.ready = record.due
        self.memory.send(record, body)
        return record

    async def all(self, count):
        while len(self.ended) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.ended

    def _ended(self, record):
        self.ended.append(record)
        self._changed.set()


async def answer_to(server):
    client = Client(server)
    client.send()
    return (await client.all(1))[0]


def at_ms(*parts, **ends):
    """A server whose replies say when in ms after the request."""

    def server(index, body, arrived_ns):
        closes = ends.get("closes")
        return Reply(
            [(arrived_ns + ms * MS, data) for ms, data in parts],
            None if closes is None else arrived_ns + closes * MS,
            ends.get("error"),
        )

    return server


# -- what a record shows


@timed
async def test_bytes_become_stamps_at_the_times_the_server_said():
    end = chunk(delta("stop") + usage(prompt_tokens=7, completion_tokens=2)) + LAST_CHUNK
    parts = [
        (3, CHUNKED),
        (20, chunk(delta(content="a"))),
        (30, chunk(delta(content="b"))),
        (31, end),
    ]
    record = await answer_to(at_ms(*parts))
    assert (record.outcome, record.finish_reason, record.prompt_tokens) == (Outcome.OK, "stop", 7)
    since_sent = [
        (at - record.sent) / MS for at in (record.first_byte, *record.stamps, record.closed)
    ]
    assert since_sent == [3, 20, 30, 31]
    assert record.sent == record.due == EPOCH_NS
    assert record.ordered


@timed
async def test_the_server_is_told_what_is_asked_and_when():
    seen = []

    def server(index, body, arrived_ns):
        seen.append((index, body, arrived_ns - EPOCH_NS))
        return answered([arrived_ns])

    client = Client(server)
    client.send(5, b'{"a":1}')
    await asyncio.sleep(2)
    client.send(3, b'{"b":2}')
    await client.all(2)
    assert seen == [(5, b'{"a":1}', 0), (3, b'{"b":2}', 2 * S)]


@pytest.mark.parametrize(
    ("server", "outcome", "ended_ms"),
    [
        (at_ms(closes=4), Outcome.REFUSED, 4),
        (at_ms((2, HEAD + b"\r\n"), closes=4), Outcome.EMPTY, 4),
        (at_ms((2, HEAD + b"\r\n" + delta(content="a")), closes=4), Outcome.TRUNCATED, 4),
        (
            at_ms((2, CHUNKED + chunk(delta(content="a"))), closes=4, error="reset"),
            Outcome.TRUNCATED,
            4,
        ),
        (
            at_ms((2, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), closes=4),
            Outcome.STATUS,
            2,
        ),
        (at_ms((2, b"nonsense\r\n\r\n")), Outcome.PROTOCOL_ERROR, 2),
    ],
    ids=["closed at once", "no token", "cut off", "reset", "status", "no HTTP"],
)
@timed
async def test_every_ending_is_the_real_one(server, outcome, ended_ms):
    record = await answer_to(server)
    assert (record.outcome, record.closed - record.sent) == (outcome, ended_ms * MS)
    await asyncio.sleep(1)


@timed
async def test_a_reply_that_never_ends_hangs_until_it_is_abandoned():
    client = Client(at_ms((2, CHUNKED + chunk(delta(content="a")))))
    sent = [client.send(number) for number in range(3)]
    await asyncio.sleep(3600)
    assert client.ended == []
    client.memory.abandon(Outcome.STALLED, "enough")
    assert client.ended == sent
    assert {(r.outcome, r.detail, r.closed - r.sent) for r in sent} == {
        (Outcome.STALLED, "enough", 3600 * S)
    }
    client.memory.abandon(Outcome.CANCELLED, "again")
    assert len(client.ended) == 3


@timed
async def test_abandoned_reply_adds_no_event():
    client = Client(planned(lambda index: [5 * MS, 10 * MS]))
    record = client.send()
    await asyncio.sleep(0.007)
    client.memory.abandon(Outcome.CANCELLED, "enough")
    await asyncio.sleep(1)
    assert (record.events, len(client.ended)) == (1, 1)


@timed
async def test_bytes_are_read_late_while_the_loop_is_busy():
    client = Client(planned(lambda index: [5 * MS, 6 * MS, 30 * MS]))
    record = client.send()
    virtual.spend(20 * MS)
    await client.all(1)
    assert [at - record.sent for at in record.stamps] == [20 * MS, 20 * MS, 30 * MS]


@timed
async def test_a_read_rings_the_bell_once_it_is_due_and_not_before():
    rung, client = [], Client(planned(lambda index: [5 * MS, 10 * MS, 15 * MS]))
    client.memory.hook.due_ns = EPOCH_NS + 10 * MS
    client.memory.hook.callback = lambda: rung.append(virtual.now_ns() - EPOCH_NS)
    client.send()
    await client.all(1)
    assert rung == [10 * MS, 15 * MS]


def test_a_reply_whose_times_are_out_of_order_is_refused():
    for reply in ({"parts": [(2, b""), (1, b"")]}, {"parts": [(2, b"")], "closes_ns": 1}):
        with pytest.raises(ValueError, match="not in order"):
            Reply(**reply)


async def test_memory_network_works_on_the_kernel_clock():
    client = Client(planned(lambda index: [MS, 2 * MS]), KERNEL)
    record = client.send()
    await asyncio.wait_for(client.all(1), 30)
    assert record.outcome is Outcome.OK
    assert record.first_token - record.sent >= MS
    assert record.last_token - record.sent >= 2 * MS


# -- servers ready made


@timed
async def test_planned_server_sends_tokens_by_plan_and_usage():
    client = Client(planned(lambda index: [MS * (index + 1), MS * 10]))
    for index in range(3):
        client.send(index)
    for record in await client.all(3):
        assert [at - record.sent for at in record.stamps] == [MS * (record.index + 1), MS * 10]
        assert (record.outcome, record.completion_tokens, record.done_seen) == (Outcome.OK, 2, True)


@pytest.mark.parametrize(
    ("servers", "ends_ms"), [(1, [5, 6, 10, 21]), (2, [1, 5, 5, 21]), (9, [1, 4, 5, 21])]
)
@timed
async def test_queue_serves_in_order_with_all_its_servers(servers, ends_ms):
    client = Client(queued([5 * MS, 1 * MS, 4 * MS, 1 * MS].__getitem__, servers))
    for index in range(3):
        client.send(index)
    await asyncio.sleep(0.02)
    client.send(3)
    ended = await client.all(4)
    assert sorted((record.last_token - EPOCH_NS) / MS for record in ended) == ends_ms


@timed
async def test_stalled_server_catches_up_after_the_stall():
    server = stalled(
        planned(lambda index: [2 * MS, 6 * MS]), EPOCH_NS + 5 * MS, EPOCH_NS + 100 * MS
    )
    client, sent = Client(server), []
    for until_ms in (0, 4, 50, 100):
        await asyncio.sleep((EPOCH_NS + until_ms * MS - virtual.now_ns()) / S)
        sent.append(client.send())
    await client.all(4)
    expected = [[2, 100], [100, 100], [102, 106], [102, 106]]
    assert [[(at - EPOCH_NS) / MS for at in record.stamps] for record in sent] == expected


@pytest.mark.parametrize(("from_ms", "closed_ms"), [(0, 57), (5, 50), (8, 7)])
@timed
async def test_a_stall_moves_the_end_of_a_connection_too(from_ms, closed_ms):
    record = await answer_to(stalled(at_ms(closes=7), EPOCH_NS + from_ms * MS, EPOCH_NS + 50 * MS))
    assert (record.outcome, record.closed - record.sent) == (Outcome.REFUSED, closed_ms * MS)


@timed
async def test_everything_from_a_distant_server_comes_later():
    near = at_ms((3, CHUNKED), (5, chunk(delta(content="a"))), closes=7, error="reset")
    record = await answer_to(distant(near, 20 * MS))
    assert [
        (at - record.sent) / MS for at in (record.first_byte, record.first_token, record.closed)
    ] == [23, 25, 27]
    assert (record.outcome, record.detail) == (Outcome.TRUNCATED, "reset")


@timed
async def test_a_late_server_answers_when_it_says():
    replies = []

    def later(index, body, arrived_ns):
        replies.append(asyncio.get_running_loop().create_future())
        return replies[-1]

    client = Client(later)
    first, second = client.send(0), client.send(1)
    await asyncio.sleep(1)
    replies[1].set_result(answered([virtual.now_ns(), virtual.now_ns() + S]))
    await client.all(1)
    assert (client.ended, second.first_token - EPOCH_NS, second.last_token - EPOCH_NS) == (
        [second],
        S,
        2 * S,
    )
    client.memory.abandon(Outcome.CANCELLED, "enough")
    replies[0].set_result(answered([virtual.now_ns()]))
    await asyncio.sleep(1)
    assert (client.ended, first.outcome) == ([second, first], Outcome.CANCELLED)
