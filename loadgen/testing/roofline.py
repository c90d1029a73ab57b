"""Roofline: a server that answers at once, to find out how much load a client can make.

`python -m loadgen.testing.roofline`. Every token is the same, and the bytes of an answer are made once for each length.
"""

import sys
from collections.abc import Sequence

from loadgen.engines.sim.outlet import Outlet
from loadgen.testing import listening
from loadgen.testing.ask import Ask
from loadgen.testing.exchange import Exchange
from loadgen.testing.replies import DONE, LAST_CHUNK, STREAM, chunk, error_body, event, models

MODEL = "roofline"
MOST_KEPT = 64  # lengths of answers


class Answers:
    """The bytes of answers, by their number of tokens.

    Args:
        tokens: Of answers to requests that do not say how many they want.
        each: Each event goes out by itself; else an answer is one piece.
    """

    def __init__(self, tokens: int, each: bool) -> None:
        self._tokens, self._each = tokens, each
        self._made: dict[int, list[bytes]] = {}

    def to(self, ask: Ask) -> list[bytes]:
        """The pieces of the answer to a request.

        Raises:
            BadInput: It asks for what there is not.
        """
        tokens = ask.stream_tokens(self._tokens)
        if tokens not in self._made:
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            pieces = make(tokens)
            self._made[tokens] = pieces if self._each else [b"".join(pieces)]
        return self._made[tokens]


def make(tokens: int) -> list[bytes]:
    """One answer: its head, each event, and the end of the body."""
    about = {"id": "chatcmpl-roofline", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    token = event(**about, choices=[{"index": 0, "delta": {"content": " tick"}, "finish_reason": None}])
    finish = event(**about, choices=[{"index": 0, "delta": {}, "finish_reason": "length"}])
    usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
    told = event(**about, choices=[], usage=usage)
    return [STREAM, *[chunk(token)] * tokens, chunk(finish), chunk(told), chunk(DONE) + LAST_CHUNK]


class Connection(Exchange):
    """One client's connection."""

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = answers

    def asked(self, ask: Ask) -> None:
        """Answer."""
        match ask.method, ask.path:
            case "POST", "/v1/chat/completions":
                pieces = self._answers.to(ask)
                outlet = Outlet(self.transport)
                for piece in pieces:
                    outlet.send(piece)
                self.answered()
            case "GET", "/v1/models":
                self.reply(models(MODEL))
            case _:
                self.reply(error_body(f"there is no {ask.path}", 404), status=404)


@listening.command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; returns the exit code."""
    parser = listening.parser("loadgen.testing.roofline", "A server that answers at once.")
    listening.add_tokens(parser)
    parser.add_argument("--each", action="store_true", help="write each event by itself, not the answer in one piece")
    flags = parser.parse_args(argv)
    answers = Answers(flags.tokens, flags.each)
    return listening.run(lambda: Connection(answers), flags.host, flags.port)


if __name__ == "__main__":
    sys.exit(main())
