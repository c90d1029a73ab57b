"""Server of a case: `python -m loadgen.lab.judge.server --case NAME --tokenizer FILE --log FILE`.

It is the faulty server of the test kit with a plan of absolute times for each answer. Its log has
a JSON line for each request and each write, with the bytes, so that another program can read the
truth from it.
"""

import asyncio
import base64
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from loadgen.engines.sim.http1 import Request, RequestError
from loadgen.lab.judge.case import Ask, Case, Plan
from loadgen.lab.judge.cases import CASES
from loadgen.testing import server_main
from loadgen.testing.faults import Step, Steps, Until
from loadgen.testing.faulty import FaultConnection, Faulty

POST, API = "POST", "completions"  # the end of the paths of both APIs


def prompt_text(fields: dict[str, Any]) -> str:
    """Return the text of the prompt of a request: its messages, or its `prompt`."""
    texts = [message.get("content") for message in fields.get("messages") or ()]
    texts.append(fields.get("prompt"))
    parts = [
        part.get("text", "") if isinstance(part, dict) else part
        for text in texts
        for part in (text if isinstance(text, list) else [text])
    ]
    return "".join(part for part in parts if isinstance(part, str))


@dataclass
class Log:
    """The file of what came and what was written.

    Attributes:
        file: Open for writing.
    """

    file: IO[bytes]

    def add(self, **fields: object) -> None:
        """Write a line."""
        self.file.write(orjson.dumps({"t_ns": time.monotonic_ns(), **fields}) + b"\n")
        self.file.flush()


class TruthServer(Faulty):
    """Answers as a case has it.

    Args:
        case: The case.
        count: Returns the number of tokens of a text.
        log: Where all is written down.
    """

    def __init__(self, case: Case, count: Callable[[str], int], log: Log) -> None:
        super().__init__()
        self._case, self._count, self._log = case, count, log
        self._prompts = Counter[str]()
        self._in_flight = 0
        self._places = case.threads
        self._queue = deque["ThreadConnection"]()

    def connection(self) -> FaultConnection:
        """Return the protocol of a new connection."""
        return ThreadConnection(self) if self._case.threads else FaultConnection(self)

    def answer(self, request: Request) -> Steps:
        """Plan the answer to a prompt; see `Faulty` for what is no POST.

        Raises:
            RequestError: There is nothing at its path.
        """
        if request.method != POST:
            return super().answer(request)
        if not request.path.endswith(API):  # as a server that has no /tokenize
            raise RequestError(404, f"unknown path {request.path}")
        number, self.requests = self.requests, self.requests + 1
        prompt = prompt_text(request.fields)
        ask = Ask(request, number, prompt, self._count(prompt), self._prompts, self._in_flight)
        plan = self._case.play(ask)
        self._prompts[prompt] += 1
        self._log.add(
            request=number,
            arrival_ns=request.arrival_ns,
            path=request.path,
            asked_tokens=request.tokens,
            prompt_tokens=ask.prompt_tokens + plan.more_input,
            tokens=sum(move.tokens for move in plan.moves),
            prompt=prompt,
            body=request.fields,
            ok=plan.ok,
            unseen=plan.unseen,
            cheats=plan.cheats,
        )
        return self._noted(number, plan)

    def _noted(self, number: int, plan: Plan) -> Iterator[bytes | Step | Until]:
        """Yield the steps of a plan; each is written down just before the connection has it."""
        self._in_flight += 1
        ended = False
        try:
            for at_ms, step, tokens in plan.moves:
                if at_ms:
                    yield Until(at_ms)
                if isinstance(step, bytes):
                    self._log.add(
                        answer=number, tokens=tokens, bytes=base64.b64encode(step).decode()
                    )
                else:
                    self._log.add(answer=number, end=step.name)
                    ended = step is not Step.NEXT_REQUEST
                yield step
            ended = True
            self._log.add(answer=number, end="WHOLE")
        finally:
            self._in_flight -= 1
            if not ended:
                self._log.add(answer=number, end="CLIENT_LEFT")

    def take_place(self, connection: "ThreadConnection") -> None:
        """Let a connection begin when a thread is free for it."""
        self._queue.append(connection)
        self._seat()

    def leave_place(self, connection: "ThreadConnection") -> None:
        """Note that a connection has ended; its thread, if it had one, is free."""
        if connection in self._queue:
            self._queue.remove(connection)
        else:
            self._places += 1
            self._seat()

    def _seat(self) -> None:
        while self._places and self._queue:
            self._places -= 1
            self._queue.popleft().begin()


class ThreadConnection(FaultConnection):
    """A connection that is read only once a thread is free for it, which it then keeps."""

    def __init__(self, server: TruthServer) -> None:
        super().__init__(server)
        self._threads = server
        self._begun = False
        self._early = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Queue for a thread."""
        super().connection_made(transport)
        self._threads.take_place(self)

    def begin(self) -> None:
        """Read what has come."""
        self._begun = True
        super().data_received(bytes(self._early))

    def data_received(self, data: bytes) -> None:
        """Take in bytes; without a thread they wait."""
        if self._begun:
            super().data_received(data)
        else:
            self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the thread."""
        super().connection_lost(exc)
        self._threads.leave_place(self)


@server_main.command
def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    flags = server_main.parser("loadgen.lab.judge.server", "Run the server of a case.")
    flags.add_argument("--case", required=True, choices=list(CASES), metavar="NAME")
    flags.add_argument("--tokenizer", required=True, help="its tokenizer.json")
    flags.add_argument("--log", required=True, help="where all is written down")
    flags.add_argument("--user", type=int, metavar="PID", help="process with which it ends, too")
    options = flags.parse_args(argv)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(options.tokenizer)

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    with Path(options.log).open("wb") as file:
        server = TruthServer(CASES[options.case], count, Log(file))
        return server_main.run(server.connection, options.host, options.port, user=options.user)


if __name__ == "__main__":
    sys.exit(main())
