"""Spare connections: opened in the background at a pace, replacing old ones, within a limit."""

import asyncio
import socket

import pytest

from loadgen.client.spare_connections import AT_ONCE, MAINTAIN_NS
from loadgen.core.outcome import Outcome
from loadgen.testing.faulty import Faulty
from loadgen.util.clock import now_ns
from tests.helpers.fault_requests import S, Sender, until
from tests.helpers.scripted_server import closing_at_once


async def test_requests_find_one_open(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        sender.transport.keep_spare(2)
        for _ in range(5):
            await until(lambda: sender.transport._idle.ready(now_ns()) == 2)
            assert (await sender.one()).connect_ns == 0
        assert sender.transport.spare_opened == sender.transport.opened


async def test_old_ones_are_replaced(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.client.idle_connections.FIRST_LIMIT_NS", 4 * MAINTAIN_NS)
    monkeypatch.setattr("loadgen.client.idle_connections.REPLACE_AHEAD_NS", MAINTAIN_NS)
    async with Sender(faulty.url) as sender:
        sender.transport.keep_spare(2)
        await until(lambda: sender.transport.opened >= 6)
        await until(lambda: faulty.open <= 2)


async def test_round_trip_is_known_before_a_response_has_ended(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        waiting = sender.start(1, "stall")
        sender.transport.keep_spare(1)
        await until(lambda: sender.transport._idle.round_trip_ns > 0)
        assert not sender.records
        sender.transport.abandon(Outcome.CANCELLED, "the test has seen enough")
        await asyncio.gather(*waiting)


async def test_spare_connections_leave_room_for_requests(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        sender.transport._spare._most = 9
        sender.transport.keep_spare(20)
        await until(lambda: sender.transport.opened == 9 and not sender.transport._spare._opening)
        sender.transport._spare._refill()
        assert not sender.transport._spare._opening


async def test_a_peer_that_closes_at_once_is_asked_for_one_in_a_round() -> None:
    async with closing_at_once() as url, Sender(url) as sender:
        idle, spare = sender.transport._idle, sender.transport._spare
        sender.transport.keep_spare(5 * AT_ONCE)
        await until(lambda: idle.turned_away and not spare._opening)
        first = spare.opened
        assert first <= 2 * AT_ONCE
        for number in range(1, 4):
            await until(lambda number=number: spare.opened > first + number - 1)
            await until(lambda: idle.turned_away == spare.opened)
            spare._refill()
            assert not spare._opening  # until the next round


async def test_spare_connections_opened_per_round_are_limited(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadgen.client.spare_connections.MAINTAIN_NS", 3600 * S)
    async with Sender(faulty.url) as sender:
        idle = sender.transport._idle
        sender.transport.keep_spare(AT_ONCE + 2)
        for _ in range(3):
            await until(lambda: not sender.transport._spare._opening)
            idle.retire(now_ns() + S)
            sender.transport._spare._refill()
        assert sender.transport.spare_opened == AT_ONCE + 2


async def test_a_request_is_written_before_any_is_opened(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Sender(faulty.url) as sender:
        transport, sends = sender.transport, list[int]()
        monkeypatch.setattr(
            transport._spare, "sent", lambda at_ns: sends.append(transport.hook.sends)
        )
        await transport.warm(1)
        await sender.one()
        assert sends == [1]


async def test_requests_before_they_are_kept_are_no_demand(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        await sender.several(5)
        sender.transport.keep_spare(2)
        assert sender.transport._spare._most_sends == 0


async def test_a_dead_server_is_asked_for_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with Sender(f"http://127.0.0.1:{unused.getsockname()[1]}") as sender:
            sender.transport.keep_spare(100)
            await until(
                lambda: (
                    sender.transport._spare._unreachable and not sender.transport._spare._opening
                )
            )
            sender.transport._spare._refill()
            assert len(sender.transport._spare._opening) == 1
            assert sender.transport.opened == 0
            # At a low rate no request would tell.
            assert sender.transport.reachability(0).refused_s is not None
