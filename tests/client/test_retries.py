"""A refused request is sent again as OpenAI's client does: when Retry-After says so, else later
each time.
"""

import asyncio
import time
from email.utils import formatdate

import pytest

from loadgen.client.retries import Retries, retry_after_s
from loadgen.config.user_behavior import Retry
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.testing import virtual
from loadgen.testing.virtual import timed
from loadgen.util.clock import KERNEL

MS, S = 1_000_000, 1_000_000_000
NOW = virtual.EPOCH_NS


def refused(
    index: int = 0, *, status: int = 429, attempts: int = 1, retry_after: str | None = None
) -> Record:
    """A request that was due and sent at NOW and refused after 5 ms."""
    record = Record(index, 10, 3, NOW)
    record.ready, record.sent, record.status, record.attempts = NOW, NOW + MS, status, attempts
    record.retry_after, record.class_number, record.texts = retry_after, 1, 4
    record.end(Outcome.STATUS, "busy", NOW + 5 * MS)
    return record


def retries(sent: list[Record]) -> Retries:
    return Retries(Retry((429,)), 0, sent.append, virtual.clock())


@timed
async def test_a_refused_request_is_sent_again_when_retry_after_says() -> None:
    sent: list[Record] = []
    assert retries(sent).take(refused(7, retry_after="2"))
    await asyncio.sleep(1.9)
    assert sent == []
    await asyncio.sleep(0.2)
    (again,) = sent
    assert (again.index, again.input_tokens, again.output_tokens, again.due, again.ready) == (
        7,
        10,
        3,
        NOW,
        NOW,
    )
    assert (again.class_number, again.texts) == (1, 4)
    assert (again.attempts, again.retried_ns) == (2, 2 * S + 5 * MS)
    assert (again.first_status, again.first_sent, again.first_closed) == (
        429,
        NOW + MS,
        NOW + 5 * MS,
    )


@timed
async def test_the_first_attempt_is_kept_over_further_ones() -> None:
    sent: list[Record] = []
    queue = retries(sent)
    queue.take(refused(retry_after="1"))
    await asyncio.sleep(1.1)
    second = sent[0]
    second.sent, second.status = NOW + 2 * S, 429
    second.end(Outcome.STATUS, "busy", NOW + 2 * S)
    assert queue.take(second)
    await asyncio.sleep(4)
    third = sent[1]
    assert (third.attempts, third.first_sent, third.first_closed) == (3, NOW + MS, NOW + 5 * MS)
    third.status = 429
    third.end(Outcome.STATUS, "busy", NOW + 5 * S)
    assert not queue.take(third), "it was sent three times"


@pytest.mark.parametrize(
    "record",
    [refused(status=500), Record(), refused(attempts=3)],
    ids=["other status", "not refused", "last attempt"],
)
@timed
async def test_others_end(record: Record) -> None:
    assert not retries([]).take(record)


@timed
async def test_nothing_is_sent_again_after_the_end() -> None:
    sent: list[Record] = []
    queue, record = retries(sent), refused(retry_after="1")
    queue.take(record)
    assert queue.close() == [record]
    assert not queue.take(refused(1))
    await asyncio.sleep(5)
    assert sent == []


def wait_s(record: Record, *, seed: int = 0) -> float:
    return Retries(Retry((429,)), seed, lambda record: None, KERNEL).wait_s(record)


@pytest.mark.parametrize(("attempts", "longest_s"), [(1, 0.5), (2, 1), (3, 2), (5, 8), (50, 8)])
def test_waits_grow_up_to_a_limit_and_differ_by_up_to_a_quarter(
    attempts: int, longest_s: float
) -> None:
    waits = [wait_s(refused(index, attempts=attempts)) for index in range(200)]
    assert longest_s * 0.75 <= min(waits) < longest_s * 0.8
    assert longest_s * 0.95 < max(waits) <= longest_s


def test_waits_are_those_of_the_seed() -> None:
    assert wait_s(refused(3)) == wait_s(refused(3))
    assert wait_s(refused(3)) != wait_s(refused(3), seed=1)


@pytest.mark.parametrize("value", ["0", "61", "-1", "nan", "inf", "soon", ""])
def test_a_retry_after_that_cannot_be_followed_counts_as_none(value: str) -> None:
    assert wait_s(refused(retry_after=value)) == wait_s(refused())


def test_a_retry_after_may_be_a_date() -> None:
    wait_s = retry_after_s(formatdate(time.time() + 1000, usegmt=True))
    assert wait_s is not None
    assert 900 < wait_s < 1001
