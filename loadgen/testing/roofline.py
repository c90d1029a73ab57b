"""Roofline: a server that answers at once, to measure how much load a client can generate.

Run it with `python -m loadgen.testing.roofline`. All tokens are equal, and the bytes of an answer are cached by length.
"""

import functools
import sys
from collections.abc import Callable, Sequence

from loadgen.engines.sim.outlet import Outlet
from loadgen.testing import server_main
from loadgen.testing.replies import DONE, LAST_CHUNK, STREAM, chunk, error_body, event, models
from loadgen.testing.request import Request
from loadgen.testing.server_connection import ServerConnection

MODEL = "roofline"


@functools.lru_cache(64)
def make(tokens: int) -> list[bytes]:
    """Return one answer: its head, each event, and the end of the body. It is cached, and must not be changed."""
    about = {"id": "chatcmpl-roofline", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    token = event(**about, choices=[{"index": 0, "delta": {"content": " tick"}, "finish_reason": None}])
    finish = event(**about, choices=[{"index": 0, "delta": {}, "finish_reason": "length"}])
    usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
    usage_event = event(**about, choices=[], usage=usage)
    return [STREAM, *[chunk(token)] * tokens, chunk(finish), chunk(usage_event), chunk(DONE) + LAST_CHUNK]


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
        self._answer, self._tokens = answer, tokens

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
                self.reply(error_body(f"unknown path {request.path}", 404), status=404)


@server_main.command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; return the exit code."""
    parser = server_main.parser("loadgen.testing.roofline", "Run a server that answers at once.")
    server_main.add_tokens(parser)
    parser.add_argument("--each", action="store_true", help="write each event by itself, not all at once")
    flags = parser.parse_args(argv)
    answer = make if flags.each else joined
    return server_main.run(lambda: Connection(answer, flags.tokens), flags.host, flags.port)


if __name__ == "__main__":
    sys.exit(main())
