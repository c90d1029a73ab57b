"""The engine core against the real clock: no drift, and honest about overruns."""

import asyncio
import time
from collections.abc import Callable

import pytest

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.api_format import COMPLETION
from loadgen.engines.sim.completion_request import CompletionRequest, parse_request
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.engine_core import EngineCore
from loadgen.engines.sim.metrics import Metrics
from loadgen.engines.sim.settings import SimSettings

SETTINGS = SimSettings(
    step_base_ms=1.0, prefill_us_per_token=0, decode_us_per_seq=0, frontend_ms=3.0
)


class Timed(Answer):
    """An answer that notes when it is delivered, after doing what the test wants done then."""

    def __init__(
        self, question: CompletionRequest, deliver: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(ServerConnection(), question)
        self.deliver, self.done, self.finished_ns = deliver, asyncio.Event(), 0

    def start(self) -> None:
        self.deliver()

    def finish(self) -> None:
        self.finished_ns = time.monotonic_ns()
        self.done.set()


def question(tokens: int) -> CompletionRequest:
    return parse_request({"prompt": "a", "max_tokens": tokens}, COMPLETION, SETTINGS, seed=1)


async def test_steps_do_not_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    core = EngineCore(SETTINGS, asyncio.get_running_loop(), Metrics())
    ends: list[int] = []
    complete = core.scheduler.complete
    monkeypatch.setattr(
        core.scheduler, "complete", lambda step: ends.append(step.end_ns) or complete(step)
    )
    answer = Timed(question(200))
    core.submit(answer)
    await answer.done.wait()
    core.close()
    behind_ns = ends[-1] - (answer.ready_ns + 200 * 1_000_000)
    assert behind_ns == pytest.approx(core.metrics.step_overrun_s * 1e9, abs=1000), (
        "what a step overruns, and no more"
    )
    assert answer.finished_ns >= ends[-1]
    assert answer.ready_ns - answer.arrival_ns == 3_000_000
    assert core.metrics.steps == 200


async def test_slow_writing_delays_the_next_step_and_is_counted() -> None:
    def dawdle() -> None:
        end = time.monotonic_ns() + 5_000_000
        while time.monotonic_ns() < end:
            pass

    core = EngineCore(SETTINGS, asyncio.get_running_loop(), Metrics())
    answer = Timed(question(2), dawdle)
    core.submit(answer)
    await answer.done.wait()
    core.close()
    assert core.metrics.step_overrun_s >= 0.004
    assert answer.finished_ns - answer.ready_ns >= 6_000_000


async def test_idle_core_stops_and_wakes_for_next_request() -> None:
    core = EngineCore(SETTINGS, asyncio.get_running_loop(), Metrics())
    for steps in (1, 2, 3):
        answer = Timed(question(1))
        core.submit(answer)
        await answer.done.wait()
        assert core.metrics.steps == steps
    core.close()


@pytest.mark.parametrize("delivered", [False, True])
async def test_an_aborted_answer_leaves_the_engine(delivered: bool) -> None:
    core = EngineCore(SETTINGS, asyncio.get_running_loop(), Metrics())
    started = asyncio.Event()
    aborted, other = Timed(question(1000), started.set), Timed(question(2))
    core.submit(aborted)
    if delivered:
        await started.wait()
    core.abort(aborted)
    core.submit(other)
    await other.done.wait()
    assert core.scheduler.running == core.scheduler.waiting == core.scheduler.kv_tokens == 0
    assert core.metrics.finished == {"stop": 0, "length": 1, "abort": 1}
    core.close()
