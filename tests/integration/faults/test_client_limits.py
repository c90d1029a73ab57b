"""Requests that fail because the client's own machine has no descriptor, port or memory left."""

import errno
import os
import resource
import socket

import pytest

from loadgen.core.outcome import Outcome
from loadgen.testing.faulty import Faulty
from loadgen.util import dialer
from tests.helpers.fault_requests import Sender, assert_good


async def test_running_out_of_file_descriptors_is_our_own_fault(faulty: Faulty) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Sender(faulty.url) as sender:
        assert_good(await sender.one())  # opens whatever connecting opens once
        taken = [socket.socket() for _ in range(3)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(s.fileno() for s in taken) + 1, hard))
        try:
            record = await sender.one()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for each in taken:
                each.close()
        assert record.outcome is Outcome.CLIENT_ERROR
        assert "Too many open files" in (record.detail or "")
        assert_good(await sender.one())


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM])
async def test_missing_local_resources_are_client_errors(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    async with Sender(faulty.url) as sender:

        async def none_left(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(dialer, "start_connection", none_left)
        record = await sender.one()
        assert (record.outcome, record.sent) == (Outcome.CLIENT_ERROR, 0)
        assert os.strerror(number) in (record.detail or "")
