"""Prometheus: tells whoever scrapes this command how far its run is, in a thread of its own while it goes on."""

import contextlib
import math
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from loadgen.config.output import parse_listen
from loadgen.config.settings import RunSettings
from loadgen.core.sketch import Sketch
from loadgen.errors import BadInput
from loadgen.metrics.progress import DONE, LATENCIES, PHASES, Progress

if TYPE_CHECKING:
    from prometheus_client import Metric

# Four a doubling, from 4 us to 64 min: where buckets of a sketch end too, so that counts are exact.
BOUNDS_NS = tuple((4 + quarter) << (doubling - 2) for doubling in range(12, 42) for quarter in range(4))
LATE, MOST_PATIENCE_S = 1.5, 60.0  # by how much of its interval a scraper may be late, and is waited for at most
HELP = {
    "ttft": "Time to first token of requests that ended well, from when they were due (or sent, with --latency-from).",
    "itl": "Time between tokens of requests that ended well.",
    "icl": "Time between events with tokens of requests that ended well.",
    "e2el": "Time to the last token of requests that ended well, from when they were due (or sent).",
    "lag": "How late requests were sent, for no other reason than this client.",
    "loop_stall": "How long tokens had to wait for the loop that measures.",
}


class Metrics:
    """What is told of the run that goes on, as prometheus_client asks for it.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._clock = Progress(PHASES[0]), clock
        self._asked_s: list[float] = []  # when, the last two times
        self._told_all = threading.Event()

    @property
    def whole(self) -> bool:
        """Whether what is told now is of a whole run."""
        return self._progress.phase == DONE

    def show(self, progress: Progress) -> None:
        """Tell this from now on; before the clock starts, when other things are counted, only that there is nothing."""
        self._progress = progress if progress.begun else Progress(PHASES[0])
        self._told_all.clear()

    @property
    def patience_s(self) -> float:
        """How long whoever asks again and again is waited for, who has not been told of the whole run."""
        if not self.whole or self._told_all.is_set() or len(self._asked_s) < 2:
            return 0.0
        before_s, last_s = self._asked_s
        return max(0.0, min(last_s + LATE * (last_s - before_s) - self._clock(), MOST_PATIENCE_S))

    def wait(self) -> None:
        """Wait as long as that for somebody who asks."""
        self._told_all.wait(self.patience_s)

    def collect(self) -> "Iterator[Metric]":
        """Each of the metrics."""
        seen = self._progress
        self._asked_s = [*self._asked_s[-1:], self._clock()]
        yield from self._told(seen)

    def told_all(self) -> None:
        """Somebody has been told of the whole run."""
        self._told_all.set()

    @staticmethod
    def _told(seen: Progress) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        yield GaugeMetricFamily("loadgen_elapsed_seconds", "Since the run's clock started.", seen.elapsed_s)
        requests = CounterMetricFamily("loadgen_requests", "Requests that have ended, by how.", labels=["outcome"])
        for outcome, count in {"ok": seen.ok, **seen.failures}.items():
            requests.add_metric([outcome], count)
        yield requests
        for name, text, count in (
            ("loadgen_requests_due", "Requests that have become due.", seen.due),
            ("loadgen_requests_sent", "Requests that were handed to a connection.", seen.sent),
            ("loadgen_output_tokens", "Output tokens of requests that ended well.", seen.output_tokens),
            ("loadgen_streamed_tokens", "Tokens that have come, as their events tell.", seen.streamed_tokens),
        ):
            yield CounterMetricFamily(name, text, count)
        for name, text, value in (
            ("loadgen_requests_scheduled", "Requests of the run.", seen.scheduled or None),
            (
                "loadgen_in_flight",
                "Requests that are sent, or wait for a connection, and have not ended.",
                seen.in_flight,
            ),
            ("loadgen_in_flight_limit", "Most requests in flight.", seen.cap),
            ("loadgen_waiting", "Requests that are due and have not been sent.", seen.waiting),
            ("loadgen_loop_busy_ratio", "Share of the time for which the loop that measures ran.", seen.busy_share),
            ("loadgen_server_running", "Requests that the server says it runs.", seen.server.get("running")),
            ("loadgen_server_waiting", "Requests that the server says wait.", seen.server.get("waiting")),
            ("loadgen_server_kv_usage_ratio", "How full it says its KV cache is.", seen.server.get("kv_usage")),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, text, value)
        for name in LATENCIES:
            sketch: Sketch = getattr(seen, name)
            yield HistogramMetricFamily(f"loadgen_{name}_seconds", HELP[name], buckets(sketch), sketch.total_ns / 1e9)


def buckets(sketch: Sketch) -> list[tuple[str, float]]:
    """How many values are no greater than each bound, in seconds, as Prometheus has it."""
    lowest, upto = list(sketch.counts), [0, *accumulate(sketch.counts.values())]
    below = [(str((bound - 1) / 1e9), float(upto[bisect_left(lowest, bound)])) for bound in BOUNDS_NS]
    return [*below, ("+Inf", float(upto[-1]))]


class Answer(list[bytes]):
    """The parts of a response; `written` is called once they have been handed to the socket (WSGI's `close`)."""

    def __init__(self, parts: Iterable[bytes], written: Callable[[], None]) -> None:
        super().__init__(parts)
        self.close = written


@contextlib.contextmanager
def exporting(settings: RunSettings) -> Iterator[Callable[[Progress], None]]:
    """Listen while the context lasts, where the settings ask for it; what it yields is told how far a run is.

    In the end, and outside of any event loop, whoever has scraped before is waited for, to be told of the whole.

    Raises:
        BadInput: Nobody can listen there.
    """
    if settings.prometheus is None:
        yield lambda progress: None
        return
    from prometheus_client import CollectorRegistry, start_http_server

    host, port = parse_listen(settings.prometheus)
    metrics, registry = Metrics(), CollectorRegistry()
    registry.register(metrics)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        problem = f"cannot listen at {host}:{port} ({error.strerror})"
        raise BadInput("--prometheus", problem, "give a port that is free, and an address of this machine") from error
    tell = server.get_app()
    assert tell is not None  # start_http_server has set it

    def told(environ: Any, start_response: Any) -> Iterable[bytes]:
        whole = metrics.whole
        return Answer(tell(environ, start_response), metrics.told_all if whole else lambda: None)

    server.set_app(told)
    try:
        if not settings.quiet:
            where = f"[{host}]" if ":" in host else host
            print(f"loadgen: metrics at http://{where}:{port}/metrics", file=sys.stderr, flush=True)
        yield metrics.show
        if (patience_s := metrics.patience_s) and not settings.quiet:
            said = f"waiting up to {math.ceil(patience_s)} s for whoever scrapes this; Ctrl-C ends that"
            print(f"loadgen: {said}", file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            metrics.wait()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
