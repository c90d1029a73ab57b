"""Decoder: has aiohttp's reader take responses over whose bodies are compressed."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.stamped_connection import Connection
from loadgen.util.clock import now_ns

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Tap


class Decoder:
    """The responses of a transport that the compiled path does not decode.

    Args:
        ended: Called with the connection of each that has ended, unless it was abandoned.
    """

    def __init__(self, ended: Callable[[Connection], None]) -> None:
        self._ended = ended
        self._reading: dict[Connection, asyncio.Task[None]] = {}

    def begin(self, connection: Connection) -> None:
        """Read the rest of the response of a connection."""
        from aiohttp.client_proto import ResponseHandler

        connection.record.by_reader = True
        handler = ResponseHandler(asyncio.get_running_loop())
        handler.connection_made(connection.transport)
        tap = connection.tap
        tapped = handler if tap is None else TappedReader(handler, connection.record, tap)
        connection.forward = tapped
        handler.set_response_params(read_until_eof=True, auto_decompress=True)
        handler.data_received(connection.raw())
        task = asyncio.get_running_loop().create_task(self._read(connection, handler))
        self._reading[connection] = task
        task.add_done_callback(lambda _: self._reading.pop(connection))

    def abandon(self, connection: Connection) -> None:
        """Read no more of a response that was abandoned, if it was read here."""
        if (reading := self._reading.get(connection)) is not None:
            reading.cancel()

    async def close(self) -> None:
        """Wait until nothing is read any more."""
        await asyncio.gather(*self._reading.values(), return_exceptions=True)

    async def _read(self, connection: Connection, handler: Any) -> None:
        try:
            _, payload = await handler.read()
            async for data in payload.iter_any():
                connection.feed_body(data, now_ns())
                if connection.complete:
                    break
        except asyncio.CancelledError:
            return  # abandoned: the record has its outcome already
        # Whatever aiohttp finds wrong is the outcome of the record.
        except Exception as failure:  # noqa: BLE001
            detail = " ".join(str(failure).split()) or type(failure).__name__
            connection.abandon(_outcome_of(failure), detail, now_ns())
        if not connection.complete:
            connection.eof(now_ns())
        connection.lost = True
        self._ended(connection)


class TappedReader(asyncio.Protocol):
    """aiohttp's reader of a response, with a tap on its input."""

    def __init__(self, reader: Any, record: Record, tap: "Tap") -> None:
        self._reader = reader
        self._record = record
        self._tap = tap

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        self._tap.read(self._record, now_ns(), data)
        self._reader.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass the end of the stream on."""
        self._reader.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the end of the connection on."""
        self._tap.lost(self._record, now_ns(), exc)
        self._reader.connection_lost(exc)


def _outcome_of(error: Exception) -> Outcome:
    """Return the outcome of a response that aiohttp's reader could not read to its end."""
    from aiohttp.http_exceptions import (
        ContentLengthError,
        HttpProcessingError,
        TransferEncodingError,
    )

    cause = error.__cause__ or error
    # Less came than the framing promised.
    cut_off = isinstance(cause, ContentLengthError | TransferEncodingError)
    broken = isinstance(cause, HttpProcessingError) and not cut_off
    return Outcome.PROTOCOL_ERROR if broken else Outcome.TRUNCATED
