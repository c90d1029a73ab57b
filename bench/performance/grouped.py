"""A server of which each write brings several events: `python -m bench.performance.grouped
--together N`.
"""

import asyncio
import sys

from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import Request, RequestError
from loadgen.testing import server_main
from loadgen.testing.replies import models
from loadgen.testing.roofline import make
from loadgen.util.argument_parser import integer_within, number

MODEL = "grouped"


class Connection(ServerConnection):
    """One client's connection.

    Args:
        together: Tokens of a write, each an event of its own.
        gap_s: Time between two writes.
    """

    def __init__(self, together: int, gap_s: float) -> None:
        super().__init__()
        self._together, self._gap_s = together, gap_s

    def handle(self, ask: Request) -> None:
        """Answer."""
        match ask.method, ask.path:
            case "POST", "/v1/chat/completions":
                tokens = ask.stream_tokens(self._together)
                head, *events = make(tokens)
                self.transport.write(head)
                pieces = [
                    b"".join(events[i : i + self._together])
                    for i in range(0, tokens, self._together)
                ]
                pieces[-1] += b"".join(events[tokens:])
                self._write_next(pieces[::-1])
            case "GET", "/v1/models":
                self.reply(models(MODEL))
            case _:
                raise RequestError(404, f"there is no {ask.path}")

    def _write_next(self, left: list[bytes]) -> None:
        if self.transport.is_closing():
            return
        if left:
            asyncio.get_running_loop().call_later(self._gap_s, self._write, left)
        else:
            self.finish()

    def _write(self, left: list[bytes]) -> None:
        self.transport.write(left.pop())
        self._write_next(left)


@server_main.command
def main(argv: list[str] | None = None) -> int:
    """Run the server from the command line; returns the exit code."""
    parser = server_main.parser(
        "bench.performance.grouped", "A server that writes several events at once."
    )
    parser.add_argument(
        "--together", type=integer_within(1, 1000), default=1, help="events of a write"
    )
    parser.add_argument(
        "--gap-ms", type=number, default=10.0, help="time between two writes of a stream"
    )
    flags = parser.parse_args(argv)
    return server_main.run(
        lambda: Connection(flags.together, flags.gap_ms / 1e3), flags.host, flags.port
    )


if __name__ == "__main__":
    sys.exit(main())
