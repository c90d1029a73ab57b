"""Cores: the engine cores behind one server, of which each request goes to the one that has fewest."""

import asyncio

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.core import EngineCore
from loadgen.engines.sim.metrics import Metrics
from loadgen.engines.sim.settings import SimSettings


class Cores:
    """As many cores as the settings say, each with a scheduler and a cache of its own.

    Attributes:
        metrics: Of all together.
    """

    def __init__(self, settings: SimSettings, loop: asyncio.AbstractEventLoop) -> None:
        self.metrics = Metrics()
        self._settings = settings
        self._cores = [
            EngineCore(settings, loop, self.metrics, number) for number in range(settings.data_parallel_size)
        ]

    def submit(self, answer: Answer) -> None:
        """Give an answer that has just been asked for to a core."""
        core = min(self._cores, key=lambda core: core.requests)
        answer.core = core.number
        core.submit(answer)

    def abort(self, answer: Answer) -> None:
        """Drop an answer that nobody waits for any more."""
        self._cores[answer.core].abort(answer)

    def exposition(self) -> str:
        """What was counted, in Prometheus' text format."""
        return self.metrics.text(self._settings, [core.scheduler for core in self._cores])

    def reset_prefix_cache(self) -> None:
        """Forget the blocks that no running sequence uses."""
        for core in self._cores:
            core.scheduler.cache.clear()

    def close(self) -> None:
        """Step no more."""
        for core in self._cores:
            core.close()
