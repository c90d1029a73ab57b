"""Replay: serves captured responses again, with the times at which they came.

`python -m loadgen.testing.replay FILE` answers every POST with a response of the capture: the one whose index stands in
the X-Request-Id that loadgen sends, else the next. Each read is written when it came, counted from the arrival of the
request, and the connection ends as it ended.
"""

import argparse
import asyncio
import heapq
import itertools
import json
import math
import re
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

from loadgen.clock import Alarm, LoopAlarm, TimerfdAlarm, now_ns
from loadgen.errors import BadInput
from loadgen.recording import CapturedResponse, End, Recording, load
from loadgen.testing import listening

REQUEST_ID = re.compile(rb"\r\nx-request-id:[ \t]*loadgen-[^\r\n]*?(\d+)[ \t]*\r\n", re.IGNORECASE)
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
NO_LINGER = struct.pack("ii", 1, 0)  # closing sends a reset

Step = tuple[int, bytes | End]


class Timetable:
    """Calls back at set times, CLOCK_MONOTONIC ns, on one alarm for any number of connections."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._alarm: TimerfdAlarm | LoopAlarm | None = None

    def at(self, due_ns: int, call: Callable[[], None]) -> None:
        """Call `call()` at `due_ns`, or at the loop's next turn where that is past."""
        if self._alarm is None:
            self._alarm = Alarm(asyncio.get_running_loop(), self._wake)
        heapq.heappush(self._due, (due_ns, next(self._order), call))
        if self._due[0][0] == due_ns:
            self._alarm.set(due_ns)

    def _wake(self) -> None:
        while self._due and self._due[0][0] <= now_ns():
            heapq.heappop(self._due)[2]()
        if self._due and self._alarm is not None:
            self._alarm.set(self._due[0][0])


class Replay:
    """Which response answers a request, and when its parts are due.

    Args:
        recording: What is replayed.
        speed: How many times faster than it came.
    """

    def __init__(self, recording: Recording, speed: float = 1.0) -> None:
        self._recording, self._speed = recording, speed
        self._by_index = {response.index: response for response in recording.responses}
        self._in_turn = itertools.cycle(recording.responses)
        self.timetable = Timetable()

    def steps(self, head: bytes, arrived_ns: int) -> Iterator[Step]:
        """What to do for the request with this head, each step with the time when it is due."""
        response = self.choose(head)
        steps: list[Step] = [*response.reads, (response.ended_ns, response.end)]
        for at_ns, what in steps:
            yield arrived_ns + round(at_ns / self._speed), what

    def choose(self, head: bytes) -> CapturedResponse:
        """The response to the request with this head; numbers beyond the last one start over."""
        number = REQUEST_ID.search(head)
        if number is None:
            return next(self._in_turn)
        index, responses = int(number[1]), self._recording.responses
        return self._by_index.get(index, responses[index % len(responses)])

    def models(self) -> bytes:
        """The reply to GET /v1/models."""
        listed = {"object": "list", "data": [{"id": self._recording.model, "object": "model"}]}
        return _reply(b"200 OK", json.dumps(listed).encode())


class Connection(asyncio.Protocol):
    """One connection; its requests are answered one after another."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._received = b""
        self._steps: Iterator[Step] | None = None  # of the response that is being sent

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A part of a request, or several."""
        self._received += data
        self._answer()

    def _answer(self) -> None:
        """Answer the requests that are here in whole, up to one whose response takes its time."""
        while self._steps is None and (end := self._received.find(b"\r\n\r\n") + 4) > 3:
            head = self._received[:end]
            length = CONTENT_LENGTH.search(head)
            end += int(length[1]) if length else 0
            if len(self._received) < end:
                return
            self._received = self._received[end:]
            if head.startswith(b"POST "):
                self._steps = self._replay.steps(head, now_ns())
                self._await_step()
            elif head.startswith(b"GET /v1/models "):
                self._transport.write(self._replay.models())
            else:
                self._transport.write(_reply(b"404 Not Found", b'{"error":{"message":"a replay answers POST"}}'))

    def _await_step(self) -> None:
        assert self._steps is not None
        due_ns, what = next(self._steps)
        self._replay.timetable.at(due_ns, lambda: self._take(what))

    def _take(self, what: bytes | End) -> None:
        if self._transport.is_closing():
            return
        if isinstance(what, bytes):
            self._transport.write(what)
            self._await_step()
        elif what is End.RESPONSE:
            self._steps = None
            self._answer()
        elif what is End.EOF:
            self._transport.close()
        elif what is End.RESET:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            self._transport.abort()
        # After End.CLIENT nothing more came: it is the client that ends it.


def _reply(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no speed; give a number above 0")
    return speed


def main() -> int:
    """Serve a capture until SIGINT or SIGTERM; returns the exit code."""
    flags = listening.parser("loadgen.testing.replay", "Serve the responses of a capture again.")
    flags.add_argument("file", metavar="FILE", help="what `loadgen run --capture` wrote")
    flags.add_argument("--speed", type=_speed, default=1.0, help="how many times faster than they came (1)")
    given = flags.parse_args()
    try:
        replay = Replay(load(given.file), given.speed)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return listening.run(lambda: Connection(replay), given.host, given.port)


if __name__ == "__main__":
    sys.exit(main())
