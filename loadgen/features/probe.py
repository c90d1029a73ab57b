"""The probe (--probe-request-rate): small requests beside the load, and their part of the result,
as `vllm bench serve` has them.
"""

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING, Any, cast

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.run_data import RunData
from loadgen.util.clock import now_ns
from loadgen.util.number_format import to_ms
from loadgen.workload.endpoints.pooling import count_texts
from loadgen.workload.prompt import Prompt

if TYPE_CHECKING:
    from loadgen.client.transport import Transport

PROMPT = Prompt("Hi", 1, 1, "probe")  # as `vllm bench serve` sends it
FIRST = -1_000_000_000  # numbered downwards from here, far from warm-ups and the run
# The key of each number, its label in vLLM's block and its format.
ROWS = {
    "probe_completed": ("Probe requests completed:", ""),
    "probe_failed": ("Probe requests failed:", ""),
    "probe_median_e2el_ms": ("Median probe E2EL (ms):", ".2f"),
    "probe_p99_e2el_ms": ("P99 probe E2EL (ms):", ".2f"),
    "probe_max_e2el_ms": ("Max probe E2EL (ms):", ".2f"),
}


class Probe:
    """Small requests beside the load, whose latency shows how the load delays others.

    It sends a request of one token, waits for its end and a pause, and so on, on a connection of
    its own.

    Args:
        transport: Sends them; its `on_end` is taken.
        rate: Requests per second if answers took no time.

    Attributes:
        transport: The same.
    """

    def __init__(self, transport: "Transport", rate: float) -> None:
        self.transport = transport
        self._pause_s = 1 / rate
        self._body = transport.target.body(PROMPT)
        self._texts = count_texts(self._body)
        self._numbers = itertools.count(FIRST, -1)
        self._stopped = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()  # where none has been sent
        self._e2el_ns: list[int] = []
        self._failed = 0
        transport.on_end = self._on_end

    async def run(self) -> None:
        """Send until `finish` is called."""
        while not self._stopped.is_set():
            record = Record(
                next(self._numbers), PROMPT.input_tokens, PROMPT.output_tokens, now_ns()
            )
            record.ready, record.texts = record.due, self._texts
            self._ended.clear()
            self.transport.send(record, self._body)
            await self._ended.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s):
                    await self._stopped.wait()

    async def finish(self) -> dict[str, Any]:
        """Send no more, and wait until the last request has ended.

        Returns:
            E2EL of each that succeeded, from sent to the last token, ns; how many did not.
        """
        self._stopped.set()
        await self._ended.wait()
        return {"probe_e2el_ns": self._e2el_ns, "probes_failed": self._failed}

    def _on_end(self, record: Record) -> None:
        if record.outcome is Outcome.OK:
            self._e2el_ns.append(record.last_token - record.sent)
        elif record.outcome is not Outcome.CANCELLED:
            self._failed += 1
        self._ended.set()


def e2el_ns(run: RunData) -> list[int]:
    """Return E2EL of each probe of a run that succeeded, ns."""
    return cast(list[int], run.trailer.facts.get("probe_e2el_ns", []))


def count(run: RunData) -> int:
    """Return how many probes a run had that were not cancelled."""
    return len(e2el_ns(run)) + int(run.trailer.facts.get("probes_failed", 0))


def numbers(run: RunData) -> dict[str, float | None]:
    """Return what is known of the probes of a run, by the keys of ROWS; nothing without any."""
    if not count(run):
        return {}
    import numpy as np  # not before: a measuring process does without it

    times_ns = e2el_ns(run)
    percentiles = (
        to_ms(float(np.percentile(times_ns, p))) if times_ns else None for p in (50, 99, 100)
    )
    counts = (len(times_ns), count(run) - len(times_ns))
    return dict(zip(ROWS, (*counts, *percentiles), strict=True))
