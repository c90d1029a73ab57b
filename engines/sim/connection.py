"""Connection of one client to the simulator: requests in, responses out, in order."""

import asyncio
from typing import cast

from loadgen.engines.sim import http1
from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.api import Api
from loadgen.engines.sim.completion_request import ApiError


class Connection(asyncio.Protocol):
    """Serves one request at a time; a request that is sent ahead waits until the response is written."""

    transport: asyncio.Transport

    def __init__(self, api: Api) -> None:
        self.keep_alive = True
        self._api = api
        self._reader = http1.RequestReader(http1.Request)
        self._answer: Answer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio and uvloop have set TCP_NODELAY."""
        # uvloop's transports have the methods of asyncio's, but not the type.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Take in bytes, and answer the request that they complete."""
        try:
            self._reader.feed(data)
            self._serve()
        except http1.HttpError as error:
            body = ApiError(error.status, error.message).json()
            self.transport.write(http1.response(error.status, http1.JSON, body, keep_alive=False))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the client's unfinished answer from the engine."""
        if self._answer is not None:
            self._answer.abandon()
            self._api.cores.abort(self._answer)
            self._answer = None

    def finish(self) -> None:
        """End the response: close the connection, or answer the next request if one was sent."""
        self._answer = None
        if not self.keep_alive:
            self.transport.close()
            return
        self.data_received(b"")

    def _serve(self) -> None:
        while self._answer is None and not self.transport.is_closing():
            request = self._reader.next_request()
            if request is None:
                if self._reader.continue_wanted:
                    self.transport.write(http1.CONTINUE)
                    self._reader.continue_wanted = False
                return
            self.keep_alive = request.keep_alive
            answer = self._api.answer(request, self)
            if isinstance(answer, Answer):
                self._answer = answer
                return
            self.transport.write(answer)
            if not request.keep_alive:
                self.transport.close()
