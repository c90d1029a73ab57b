"""Roofline: a server that answers at once, to measure how much load a client can generate.

Run it with `python -m loadgen.testing.roofline`. All tokens are equal, and the bytes of an answer
are cached by length.
"""

import functools
import sys
from collections.abc import Callable, Sequence

from loadgen.engines.sim.api_format import ResponseWriter, Usage
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import LAST_CHUNK, Request, RequestError, chunk
from loadgen.engines.sim.outlet import Outlet
from loadgen.testing import server_main
from loadgen.testing.replies import STREAM, models

MODEL = "roofline"


@functools.lru_cache(64)
def make(tokens: int) -> list[bytes]:
    """Return one answer: its head, each event, and the end of the body.

    It is cached, and must not be changed.
    """
    writer = ResponseWriter(MODEL, 0, f'"{MODEL}"', "length")
    token = chunk(writer.token(" tick"))
    usage = writer.usage(Usage(1, tokens))
    return [
        STREAM,
        *[token] * tokens,
        chunk(writer.finish()),
        chunk(usage),
        chunk(writer.done) + LAST_CHUNK,
    ]


@functools.lru_cache(64)
def joined(tokens: int) -> list[bytes]:
    """Return the same answer as one write."""
    return [b"".join(make(tokens))]


class Connection(ServerConnection):
    """One client's connection.

    Args:
        answer: Returns the writes of an answer with a number of tokens.
        tokens: Tokens of an answer if the request does not set them.
    """

    def __init__(self, answer: Callable[[int], list[bytes]], tokens: int) -> None:
        super().__init__()
        self._answer = answer
        self._tokens = tokens

    def handle(self, request: Request) -> None:
        """Answer a request."""
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                pieces = self._answer(request.stream_tokens(self._tokens))
                outlet = Outlet(self.transport)
                for piece in pieces:
                    outlet.send(piece)
                self.finish()
            case "GET", "/v1/models":
                self.reply(models(MODEL))
            case _:
                raise RequestError(404, f"unknown path {request.path}")


@server_main.command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; return the exit code."""
    parser = server_main.parser("loadgen.testing.roofline", "Run a server that answers at once.")
    server_main.add_tokens(parser)
    parser.add_argument(
        "--each", action="store_true", help="write each event by itself, not all at once"
    )
    flags = parser.parse_args(argv)
    answer = make if flags.each else joined
    return server_main.run(lambda: Connection(answer, flags.tokens), flags.host, flags.port)


if __name__ == "__main__":
    sys.exit(main())
