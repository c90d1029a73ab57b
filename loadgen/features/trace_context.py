"""`TraceContext`: each request carries the ids of its trace, for the server's spans to join."""

from typing import Any

from msgspec import Struct

from loadgen.core.record import Record
from loadgen.core.sender import Sender
from loadgen.util.trace_context import traceparent


class TraceContext(Struct, frozen=True):
    """Sends `traceparent` with each request, and with each further attempt.

    Attributes:
        key: What the ids are made of; None: none are sent.
    """

    key: str | None

    def register(self, sender: Sender) -> None:
        """As `Feature.register`."""
        if self.key is not None:
            sender.before_send.append(self._mark)

    async def finish(self) -> dict[str, Any]:
        """As `Feature.finish`: the records say all."""
        return {}

    def _mark(self, record: Record) -> None:
        assert self.key is not None
        record.trace_line = b"traceparent: %b\r\n" % traceparent(self.key, record.index).encode()
