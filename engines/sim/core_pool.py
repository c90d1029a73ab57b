"""Core pool: the engine cores of one server; each request goes to the core with the fewest requests."""

import asyncio

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.engine_core import EngineCore
from loadgen.engines.sim.metrics import Metrics
from loadgen.engines.sim.settings import SimSettings


class CorePool:
    """The engine cores, each with its own scheduler and prefix cache.

    Attributes:
        metrics: Metrics of all cores together.
    """

    def __init__(self, settings: SimSettings, loop: asyncio.AbstractEventLoop) -> None:
        self.metrics = Metrics()
        self._settings = settings
        self._cores = [
            EngineCore(settings, loop, self.metrics, number) for number in range(settings.data_parallel_size)
        ]

    @property
    def requests(self) -> int:
        """Number of requests that have not got their last token."""
        return sum(core.requests for core in self._cores)

    def submit(self, answer: Answer) -> None:
        """Give each sequence of the answer to a new request to a core."""
        for sequence in answer.sequences:
            core = min(self._cores, key=lambda core: core.requests)
            sequence.core = core.number
            core.submit(sequence)

    def abort(self, answer: Answer) -> None:
        """Drop an answer whose client has disconnected."""
        for sequence in answer.sequences:
            self._cores[sequence.core].abort(sequence)

    def exposition(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return self.metrics.text(self._settings, [core.scheduler for core in self._cores])

    def reset_prefix_cache(self) -> None:
        """Remove the blocks that no running sequence uses."""
        for core in self._cores:
            core.scheduler.cache.clear()

    def close(self) -> None:
        """Run no more steps."""
        for core in self._cores:
            core.close()
