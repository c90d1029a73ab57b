"""A sender over a link of the test's own: what it sends, counts and asks its hooks for, in which
order, and what a fault of ours in any of these does.
"""

import asyncio
import os
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import SendHook
from loadgen.core.record import Record
from loadgen.core.request_table import RequestTable
from loadgen.core.schedule import Schedule
from loadgen.core.sender import Sender
from loadgen.testing import virtual
from loadgen.testing.virtual import timed

MS = 1_000_000


@pytest.fixture
def table(tmp_path: Path) -> Iterator[RequestTable]:
    """Two requests, whose bodies are their numbers."""
    (tmp_path / "bodies").write_bytes(b"01")
    file = os.open(tmp_path / "bodies", os.O_RDONLY)
    table = RequestTable(file)
    table.extend(array("q", [1, 2]), *[array("q", [0, 0])] * 5)
    yield table
    os.close(file)


class Link:
    """Keeps what it was given to send."""

    def __init__(self) -> None:
        self.hook = SendHook()
        self.sent: list[tuple[Record, bytes]] = []
        self.on_end: Callable[[Record], object] = lambda record: None

    def send(self, record: Record, body: bytes) -> None:
        self.sent.append((record, body))

    def end(self, number: int = -1, outcome: Outcome = Outcome.OK) -> None:
        record, _ = self.sent[number]
        record.end(outcome, None, virtual.now_ns())
        self.on_end(record)


def sender_over(link: Link, table: RequestTable, log: list[Record], **options: int) -> Sender:
    start_ns = virtual.now_ns()
    schedule = Schedule(start_ns, range(2), [0, MS], **options)
    return Sender(schedule, table, link, log.append, virtual.clock())


@timed
async def test_each_request_is_sent_with_its_body_and_counted_when_it_has_ended(
    table: RequestTable,
) -> None:
    link, counted = Link(), list[Record]()
    sender = sender_over(link, table, counted)
    sender.pacer.start()
    assert [(record.index, body) for record, body in link.sent] == [(0, b"0")]
    await asyncio.sleep(0.001)
    assert list(sender.in_flight) == [0, 1]
    link.end(1)
    assert ([record.index for record in counted], sender.ended) == ([1], 1)
    assert (list(sender.in_flight), sender.drained.is_set()) == ([0], False)
    link.end(0)
    assert (sender.ended, sender.drained.is_set()) == (2, True)


@timed
async def test_a_request_that_has_ended_gives_its_slot_to_the_next(table: RequestTable) -> None:
    link = Link()
    sender_over(link, table, [], cap=1).pacer.start()
    await asyncio.sleep(0.005)
    assert len(link.sent) == 1
    link.end()
    (_, (record, _)) = link.sent
    assert (record.index, record.ready - record.due) == (1, 4 * MS)


@timed
async def test_hooks_are_called_in_their_order(table: RequestTable) -> None:
    link, log = Link(), list[str]()
    sender = Sender(
        Schedule(virtual.now_ns(), [0], [0]),
        table,
        link,
        lambda record: log.append("counted"),
        virtual.clock(),
    )
    sender.before_send.append(lambda record: log.append("before"))
    sender.body = lambda index: log.append("body") or b"{}"
    sender.after_end.extend([lambda record: log.append("read"), lambda record: log.append("last")])
    sender.pacer.start()
    assert (log, link.sent[0][1]) == (["before", "body"], b"{}")
    link.end()
    assert log[2:] == ["counted", "read", "last"]


@pytest.mark.parametrize(("is_deferred", "indices"), [(True, [0]), (False, [0, 1])])
@timed
async def test_an_answer_whose_text_is_kept_may_be_counted_later(
    table: RequestTable, is_deferred: bool, indices: list[int]
) -> None:
    link, counted, texts = Link(), list[Record](), list[Record]()
    sender = sender_over(link, table, counted)
    sender.samples = lambda index: index == 1
    sender.defers = lambda record: texts.append(record) or is_deferred
    sender.pacer.start()
    await asyncio.sleep(0.001)
    assert [record.keeps_text for record, _ in link.sent] == [False, True]
    link.end(0)
    link.end(1)
    assert [record.index for record in counted] == indices
    assert [record.index for record in texts] == [1]


@timed
async def test_a_request_that_is_sent_again_goes_on(table: RequestTable) -> None:
    link, counted = Link(), list[Record]()
    sender = sender_over(link, table, counted)
    sender.resends = lambda record: record.attempts == 1
    sender.pacer.start()
    link.end(0, Outcome.STATUS)
    assert (sender.ended, list(sender.in_flight), counted) == (0, [0], [])
    again = Record(0)
    again.attempts = 2
    sender.send_again(again)
    link.end()
    assert (sender.ended, counted) == (1, [again])


def broken(*_: object) -> bytes:
    raise ZeroDivisionError("a bug")


def break_link(sender: Sender, link: Link) -> None:
    link.send = broken  # type: ignore[method-assign]


def break_hook(name: str) -> Callable[[Sender, Link], None]:
    def set_hook(sender: Sender, link: Link) -> None:
        hook = getattr(sender, name)
        if isinstance(hook, list):
            hook.append(broken)
        else:
            setattr(sender, name, broken)

    return set_hook


@pytest.mark.parametrize(
    "break_it",
    [break_link, *map(break_hook, ("samples", "before_send", "body", "resends", "after_end"))],
)
@timed
async def test_a_fault_of_ours_ends_the_run(
    table: RequestTable, break_it: Callable[[Sender, Link], None]
) -> None:
    link = Link()
    sender = sender_over(link, table, [])
    break_it(sender, link)
    sender.pacer.start()
    if link.sent:
        link.end()
    assert isinstance(sender.failure, ZeroDivisionError)
    assert sender.drained.is_set()
    assert sender.pacer.all_sent.is_set()


@timed
async def test_a_fault_in_what_the_event_loop_calls_ends_the_run(table: RequestTable) -> None:
    link = Link()
    sender = sender_over(link, table, [])
    sender.pacer.start()
    link.hook.on_fault(ZeroDivisionError("a bug"))
    link.hook.on_fault(KeyError("another"))
    assert isinstance(sender.failure, ZeroDivisionError)
    assert sender.drained.is_set()
