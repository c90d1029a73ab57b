"""Users who leave: the client closes their connection and no other, whatever the server is
doing.
"""

import asyncio
import ssl

import pytest
import trustme

from loadgen.core.outcome import Outcome
from loadgen.testing.faulty import Faulty, serving
from tests.helpers.fault_requests import UNVERIFIED, Sender, assert_good, neighbours, until

MS = 1_000_000


@pytest.mark.parametrize("after_ns", [0, 20 * MS])
async def test_a_user_leaves_a_server_that_has_not_answered(faulty: Faulty, after_ns: int) -> None:
    async with Sender(faulty.url) as sender:
        sender.leave = (0, after_ns)
        record = await sender.one("silence")
        assert (record.outcome, record.events) == (Outcome.DISCONNECTED, 0)
        assert record.closed - record.sent >= after_ns
        await until(lambda: faulty.open == 0)


async def test_a_user_leaves_a_stream_after_some_tokens(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        sender.leave = (100, -1)
        record = await sender.one("endless")
        assert record.outcome is Outcome.DISCONNECTED
        assert record.events >= 100
        await until(lambda: faulty.open == 0)


async def test_a_user_leaves_over_tls() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with (
        serving(tls=context) as faulty,
        Sender(faulty.url, route=UNVERIFIED) as sender,
    ):
        sender.leave = (100, -1)
        assert (await sender.one("endless")).outcome is Outcome.DISCONNECTED
        await until(lambda: faulty.open == 0)


async def test_others_are_answered_meanwhile(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender, neighbours(sender):
        sender.leave = (0, 5 * MS)
        waiting = sender.start(3, "silence")
        sender.leave = (0, -1)
        assert {record.outcome for record in await asyncio.gather(*waiting)} == {
            Outcome.DISCONNECTED
        }


@pytest.mark.usefixtures("no_rest")
async def test_the_next_request_on_a_connection_has_a_user_of_its_own(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        sender.leave = (0, 30 * MS)
        assert_good(await sender.one())
        sender.leave = (0, -1)
        record = (sender.start(1, "silence"))[0]
        await asyncio.sleep(0.1)
        assert not record.done(), (
            "the time of the request before is over, and its user has the answer"
        )
        assert faulty.connections == 1
        sender.transport.abandon(Outcome.CANCELLED, "the test is over")
        assert (await record).outcome is Outcome.CANCELLED


async def test_a_run_that_ends_before_a_user_leaves_leaves_nothing_behind(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        sender.leave = (0, 3600 * 1000 * MS)
        assert_good(await sender.one())
