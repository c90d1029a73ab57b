"""The HTTP endpoint of --prometheus: serves the progress of a run as Prometheus metrics, in a
thread of its own.
"""

import contextlib
import math
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.config.output import parse_listen
from loadgen.config.settings import RunSettings
from loadgen.core.sketch import Sketch
from loadgen.errors import BadInput
from loadgen.metrics.progress import DONE, PHASES, Progress
from loadgen.version import __version__
from loadgen.workload import target

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from prometheus_client import Metric

    from loadgen.runner.server import Server

# Draws these metrics. `report --grafana` indents it; in the package it has a line for each panel,
# and 12 kB less.
DASHBOARD = Path(__file__).with_name("grafana_dashboard.json")
# Four per doubling, from 4 us to 64 min. Buckets of a sketch end at the same bounds, so that counts
# are exact.
BOUNDS_NS = tuple(
    (4 + quarter) << (doubling - 2) for doubling in range(12, 42) for quarter in range(4)
)
# A last scrape is waited for as long as 1.5 intervals of the scraper, but at most this long.
MAX_WAIT_INTERVALS, MAX_WAIT_S = 1.5, 60.0
LATENCY_HELP = {
    "ttft": "Time to first token of successful requests, from due (from sent with --latency-from "
    "sent).",
    "ttfo": "Time to first output after any reasoning, of successful requests, from due or sent "
    "as TTFT.",
    "tpot": "Time per output token of each successful request.",
    "itl": "Inter-token latency of successful requests.",
    "icl": "Inter-chunk latency of successful requests: the time between events that bear tokens.",
    "e2el": "Time to the last token of successful requests, from due (from sent with "
    "--latency-from sent).",
    "lag": "How late the client sent requests, through its own fault.",
    "loop_stall": "How long tokens waited for the measuring event loop.",
}


class Metrics:
    """The metrics of the current run, as a collector of prometheus_client.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = Progress(PHASES[0])
        self._clock = clock
        self._identity: dict[str, str] = {}
        self._scrapes_s: list[float] = []  # the times of the last two
        self._final_scraped = threading.Event()

    def update(self, progress: Progress) -> None:
        """Serve the numbers of `progress` from now on; before the clock starts, serve zeros."""
        self._progress = progress if progress.begun else Progress(PHASES[0])
        self._final_scraped.clear()

    def identify(self, server: "Server") -> None:
        """Serve the identity of the run that begins at `server`."""
        self._identity = identity(server)

    @property
    def wait_s(self) -> float:
        """How long to wait for a scraper that has come at least twice, but not yet for the final
        values.
        """
        if self._progress.phase != DONE or self._final_scraped.is_set() or len(self._scrapes_s) < 2:
            return 0.0
        before_s, last_s = self._scrapes_s
        return max(
            0.0, min(last_s + MAX_WAIT_INTERVALS * (last_s - before_s) - self._clock(), MAX_WAIT_S)
        )

    def wait(self) -> None:
        """Wait up to `wait_s` for a scrape of the final values."""
        self._final_scraped.wait(self.wait_s)

    def describe(self) -> "Iterator[Metric]":
        """Yield every metric family, so that prometheus_client knows the names that a scraper
        may ask for.
        """
        return _families(Progress(PHASES[0]), {})

    def collect(self) -> "Iterator[Metric]":
        """Yield the metric families that have values, and note the time of the scrape."""
        self._scrapes_s = [*self._scrapes_s[-1:], self._clock()]
        return (family for family in _families(self._progress, self._identity) if family.samples)

    @property
    def final(self) -> bool:
        """Whether the current values are those of a whole run."""
        return self._progress.phase == DONE

    def mark_final_scraped(self) -> None:
        """Note that a scraper has received the final values."""
        self._final_scraped.set()


def _families(progress: Progress, identity: Mapping[str, str]) -> "Iterator[Metric]":
    """Yield every metric family; a value that is not known makes no sample."""
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
    )

    yield InfoMetricFamily("loadgen_run", "Identity of the run.", dict(identity) or None)
    yield GaugeMetricFamily(
        "loadgen_elapsed_seconds", "Time since the run's clock started.", progress.elapsed_s
    )
    requests = CounterMetricFamily(
        "loadgen_requests", "Requests that have ended, by outcome.", labels=["outcome"]
    )
    for outcome, count in {"ok": progress.ok, **progress.failures}.items():
        requests.add_metric([outcome], count)
    yield requests
    for name, text, count in (
        ("requests_due", "Requests that have become due.", progress.due),
        ("requests_sent", "Requests that were handed to a connection.", progress.sent),
        ("output_tokens", "Output tokens of successful requests.", progress.output_tokens),
        (
            "streamed_tokens",
            "Output tokens so far, counted by stream events.",
            progress.streamed_tokens,
        ),
    ):
        yield CounterMetricFamily(f"loadgen_{name}", text, count)
    server = progress.server
    for name, text, value in (
        ("requests_scheduled", "Requests of the whole run.", progress.scheduled or None),
        (
            "in_flight",
            "Requests that were sent or wait for a connection, and have not ended.",
            progress.in_flight,
        ),
        ("in_flight_limit", "Maximum number of requests in flight.", progress.cap),
        ("oldest_request_seconds", "Age of the oldest request in flight.", progress.oldest_s),
        ("waiting", "Requests that are due and have not been sent.", progress.waiting),
        ("loop_busy_ratio", "Busy share of the measuring event loop.", progress.busy_share),
        ("server_running", "Running requests, reported by the server.", server.get("running")),
        ("server_waiting", "Waiting requests, reported by the server.", server.get("waiting")),
        (
            "server_kv_usage_ratio",
            "KV cache usage, reported by the server.",
            server.get("kv_usage"),
        ),
    ):
        yield GaugeMetricFamily(f"loadgen_{name}", text, value)
    for name, text in LATENCY_HELP.items():
        sketch: Sketch = getattr(progress, name)
        yield HistogramMetricFamily(
            f"loadgen_{name}_seconds", text, buckets(sketch), sketch.total_ns / 1e9
        )


def buckets(sketch: Sketch) -> list[tuple[str, float]]:
    """Return the cumulative buckets of a Prometheus histogram: upper bounds in seconds, and
    counts.
    """
    lowest = list(sketch.counts)
    upto = [0, *accumulate(sketch.counts.values())]
    below = [
        (str((bound - 1) / 1e9), float(upto[bisect_left(lowest, bound)])) for bound in BOUNDS_NS
    ]
    return [*below, ("+Inf", float(upto[-1]))]


class MetricsApp:
    """The WSGI application that returns metrics to whoever sends a GET.

    prometheus_client encodes them: as OpenMetrics, compressed, or only those of some names, as the
    request asks.

    Args:
        metrics: The metrics to return.
    """

    def __init__(self, metrics: Metrics) -> None:
        from prometheus_client import CollectorRegistry, make_wsgi_app

        registry = CollectorRegistry()
        registry.register(metrics)
        self._metrics = metrics
        self._encode = make_wsgi_app(registry)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterator[bytes]:
        """Return the answer to a request; the final values count as scraped once it has been
        written to the socket.
        """
        if environ["REQUEST_METHOD"] != "GET":
            start_response("405 Method Not Allowed", [("Allow", "GET")])
            return
        # Of a browser, which is no scraper.
        is_final = self._metrics.final and environ["PATH_INFO"] != "/favicon.ico"
        head: list[Any] = []
        body = b"".join(
            self._encode(environ, lambda *status_and_headers: head.extend(status_and_headers))
        )
        status, headers = head
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        yield body
        if is_final:
            self._metrics.mark_final_scraped()


def identity(server: "Server") -> dict[str, str]:
    """Return the labels that tell a run from others, of the settings of a run at `server`."""
    settings = server.settings
    rate = f"{settings.request_rate:g}"
    if settings.rate_profile is not None:
        rate = settings.rate_profile
    elif settings.ramp_up_strategy is not None:
        rate = f"{settings.ramp_up_start_rps:g} to {settings.ramp_up_end_rps:g}"
    elif settings.keeps_trace_times:
        rate = "by the data set"
    return {
        "label": settings.label or "",
        "max_concurrency": settings.concurrency_profile or str(settings.max_concurrency or ""),
        "model": server.model,
        "rate": rate,
        "target": ", ".join(target.base_url(alone) for alone in settings.apart()),
        "version": __version__,
    }


@contextlib.contextmanager
def serve_metrics(settings: RunSettings) -> Iterator[Metrics]:
    """Serve metrics while the context lasts, if --prometheus asks for it; yields them.

    At the end, outside of any event loop, a regular scraper has the time to fetch the final values.

    Args:
        settings: The settings of the run.

    Raises:
        BadInput: The address cannot be listened on.
    """
    metrics = Metrics()
    if settings.prometheus is None:
        yield metrics
        return
    from loadgen.cli.runs.metrics_server import MetricsServer

    host, port = parse_listen(settings.prometheus)
    try:
        server = MetricsServer(host, port, MetricsApp(metrics))
    except OSError as error:
        problem = f"cannot listen on {host}:{port} ({error.strerror})"
        raise BadInput(
            "--prometheus", problem, "give a free port, and an address of this machine"
        ) from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        if not settings.quiet:
            where = f"[{host}]" if ":" in host else host
            print(f"loadgen: metrics at http://{where}:{port}/metrics", file=sys.stderr, flush=True)
        yield metrics
        if (wait_s := metrics.wait_s) and not settings.quiet:
            text = (
                f"waiting up to {math.ceil(wait_s)} s for Prometheus to scrape the final "
                "values; Ctrl-C to skip"
            )
            print(f"loadgen: {text}", file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            metrics.wait()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
