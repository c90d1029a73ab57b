"""The simulated engine in virtual time: its scheduler answers requests in memory."""

import asyncio

import orjson

from loadgen.engines.sim.api_format import CHAT
from loadgen.engines.sim.completion_request import parse_request
from loadgen.engines.sim.scheduler import Scheduler, Sequence, Step
from loadgen.engines.sim.settings import SimSettings
from loadgen.testing import virtual
from loadgen.testing.memory import Reply
from loadgen.testing.memory_servers import answered


class VirtualEngine:
    """A `LateServer` of answers of one token each, which come when the simulator's scheduler says.

    Attributes:
        prompt_tokens: Tokens of each prompt, by the number of its request.
    """

    def __init__(self, settings: SimSettings) -> None:
        self._settings = settings
        self._scheduler: Scheduler[Sequence] = Scheduler(settings.limits, settings.costs)
        self._alarm = virtual.Alarm(asyncio.get_running_loop(), self._wake)
        self._step: Step[Sequence] | None = None
        self._replies: dict[Sequence, asyncio.Future[Reply]] = {}
        self.prompt_tokens: dict[int, int] = {}

    def __call__(self, index: int, body: bytes, arrived_ns: int) -> "asyncio.Future[Reply]":
        request = parse_request(orjson.loads(body), CHAT, self._settings, 0)
        sequence = Sequence(request.prompt_tokens, 1, arrived_ns, priority=request.priority)
        self.prompt_tokens[index] = request.prompt_tokens
        self._replies[sequence] = asyncio.get_running_loop().create_future()
        self._scheduler.add(sequence)
        if self._step is None:
            self._begin(arrived_ns)
        return self._replies[sequence]

    def _begin(self, begin_ns: int) -> None:
        self._step = self._scheduler.plan(begin_ns)
        if self._step is not None:
            self._alarm.set(self._step.end_ns)

    def _wake(self) -> None:
        assert self._step is not None
        end_ns = self._step.end_ns
        for sequence in self._scheduler.complete(self._step).finished:
            self._replies.pop(sequence).set_result(answered([end_ns]))
        self._begin(end_ns)
