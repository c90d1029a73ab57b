"""Replay: serve captured responses again, at the times at which they were received.

`python -m loadgen.testing.replay FILE` answers every POST with a response of the capture: the one
with the index in the X-Request-Id that loadgen sends, else the next one. Each read of the capture
is one write, at the same time after the arrival of the request, and the connection ends in the same
way.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence

from loadgen.client.alarm_queue import AlarmQueue
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import Request, RequestError
from loadgen.features.capture import CapturedResponse, End, Recording, load
from loadgen.testing import server_main
from loadgen.testing.replies import models
from loadgen.util.clock import KERNEL

Step = tuple[int, bytes | End]


class Replay:
    """Chooses the response to a request, and the times of its writes.

    Args:
        recording: The capture.
        speed: Factor by which the replay is faster than the capture.

    Attributes:
        model: The model's name in requests.
        calls: Calls functions at set times (CLOCK_MONOTONIC, ns), with one alarm for all
            connections.
    """

    def __init__(self, recording: Recording, speed: float = 1.0) -> None:
        self._recording = recording
        self._speed = speed
        self._by_index = {response.index: response for response in recording.responses}
        self._in_turn = itertools.cycle(recording.responses)
        self.model = recording.model
        self.calls: AlarmQueue[Callable[[], None]] = AlarmQueue(lambda call, due_ns: call(), KERNEL)

    def steps(self, request: Request) -> Iterator[Step]:
        """Yield the steps of the response to a request, each with the time when it is due
        (CLOCK_MONOTONIC, ns).
        """
        response = self.choose(request)
        steps: list[Step] = [*response.reads, (response.ended_ns, response.end)]
        for at_ns, part in steps:
            yield request.arrival_ns + round(at_ns / self._speed), part

    def choose(self, request: Request) -> CapturedResponse:
        """Return the response to a request; indexes after the last one start over."""
        if not request.id.startswith(b"loadgen-") or request.index is None:
            return next(self._in_turn)
        responses = self._recording.responses
        return self._by_index.get(request.index, responses[request.index % len(responses)])


class Connection(ServerConnection):
    """One client's connection."""

    def __init__(self, replay: Replay) -> None:
        super().__init__()
        self._replay = replay
        self._steps: Iterator[Step] = iter(())  # of the response that is being sent

    def handle(self, request: Request) -> None:
        """Begin the response to a request."""
        match request.method, request.path:
            case "POST", _:
                self._steps = self._replay.steps(request)
                self._await_step()
            case "GET", "/v1/models":
                self.reply(models(self._replay.model))
            case _:
                raise RequestError(404, "a replay only answers POST")

    def _await_step(self) -> None:
        due_ns, part = next(self._steps)
        self._replay.calls.add(due_ns, lambda: self._take(part))

    def _take(self, part: bytes | End) -> None:
        if self.transport.is_closing():
            return
        if isinstance(part, bytes):
            self.transport.write(part)
            self._await_step()
        elif part is End.RESPONSE:
            self.finish()
        elif part is End.EOF:
            self.transport.close()
        elif part is End.RESET:
            self.reset()
        # After End.CLIENT nothing more follows: the client ends the connection.


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a speed; give a number above 0")
    return speed


@server_main.command
def main(argv: Sequence[str] | None = None) -> int:
    """Serve a capture until SIGINT or SIGTERM; return the exit code."""
    parser = server_main.parser("loadgen.testing.replay", "Serve the responses of a capture again.")
    parser.add_argument("file", metavar="FILE", help="a file written by `loadgen run --capture`")
    parser.add_argument(
        "--speed", type=_speed, default=1.0, help="factor by which the replay is faster (1)"
    )
    flags = parser.parse_args(argv)
    replay = Replay(load(flags.file), flags.speed)
    return server_main.run(lambda: Connection(replay), flags.host, flags.port)


if __name__ == "__main__":
    sys.exit(main())
