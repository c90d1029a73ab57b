"""Steady state: the numbers of the part of a closed loop in which nearly all slots were in use."""

from __future__ import annotations

import math
from typing import Annotated, Self

from msgspec import Struct

from loadgen.config.output import parse_percentiles
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import BIN_NS
from loadgen.report.result.request_group import GroupLatency, percentile_ms

MIN_WINDOW_S, MIN_SHARE = 10.0, 0.1  # a shorter window, or a smaller share of the run, may not represent it


class SteadyWindow(Struct, frozen=True, kw_only=True):
    """The window of a steady state."""

    start_s: Annotated[float, "When that many requests were first in flight, s from the first send."]
    end_s: Annotated[float, "When that many were last in flight, s from the first send."]
    duration_s: Annotated[float, "Its length, s."]
    target_concurrency: Annotated[int, "`--max-concurrency`."]
    threshold: Annotated[float, "`--steady-state-threshold`."]
    threshold_abs: Annotated[int, "Requests in flight at its start and its end."]
    observed_peak: Annotated[int, "Peak number of requests in flight."]
    requests_started_in_window: Annotated[int, "Ok requests that were sent in it."]
    requests_completed_in_window: Annotated[int, "Ok requests that ended in it."]
    requests_total: Annotated[int, "Ok requests of the run."]
    warning: Annotated[str | None, "Why it may not represent the run; null: nothing speaks against it."]


class SteadyState(Struct, frozen=True, kw_only=True):
    """The steady state of a closed loop, by the names of vLLM's client in Rust."""

    window: SteadyWindow
    request_throughput: Annotated[float, "Ok requests per second that ended in the window."]
    input_throughput: Annotated[
        float | None, "Input tokens per second, of ok requests that were sent in it; null: unknown."
    ]
    output_throughput: Annotated[
        float, "Output tokens of ok requests per second of the window, each counted when it arrived."
    ]
    total_token_throughput: Annotated[float | None, "Input and output tokens per second; null: unknown."]
    mean_ttft_ms: Annotated[
        float | None, "Mean TTFT of the ok requests sent in it, on the clock of `latency_from`, ms; null: none."
    ]
    median_ttft_ms: Annotated[float | None, "Median of the same, ms."]
    percentiles_ttft_ms: Annotated[
        list[tuple[float, float | None]], "The percentiles of --metric-percentiles of the same: pairs of p, ms."
    ]
    mean_tpot_ms: Annotated[float | None, "Mean TPOT of these requests, as vLLM divides, ms; null: none."]
    median_tpot_ms: Annotated[float | None, "Median of the same, ms."]
    p90_tpot_ms: Annotated[float | None, "90th percentile of the same, ms."]
    p99_tpot_ms: Annotated[float | None, "99th percentile of the same, ms."]
    mean_e2el_ms: Annotated[
        float | None, "Mean E2EL of these requests, on the clock of `latency_from`, ms; null: none."
    ] = None
    median_e2el_ms: Annotated[float | None, "Median of the same, ms."] = None
    percentiles_e2el_ms: Annotated[
        list[tuple[float, float | None]], "The percentiles of --metric-percentiles of the same: pairs of p, ms."
    ] = []

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Compute it.

        None if the run is no closed loop of streams, its cap changes, or too few requests were in flight in all but an
        instant.
        """
        threshold, cap = run.settings.steady_state_threshold, run.settings.max_concurrency
        if run.settings.concurrency_profile is not None:  # each phase has a state of its own
            return None
        if not threshold or cap is None or not run.closed_loop or not run.settings.streams:
            return None
        snapshot, least = run.snapshot, max(math.ceil(threshold * cap), 1)
        was_sent = snapshot.sent >= 0
        window = throughput.at_least_in_flight(snapshot.sent[was_sent], snapshot.closed[was_sent], least)
        if window is None or window[1] - window[0] < 2 * BIN_NS:
            return None
        seconds = (window[1] - window[0]) / 1e9
        ok = snapshot.ttft >= 0
        began, ended = (ok & (at >= window[0]) & (at < window[1]) for at in (snapshot.sent, snapshot.closed))
        tokens, outputs = snapshot.input[began], throughput.output_rate(snapshot, *window)
        inputs = None if (tokens < 0).any() else int(tokens.sum()) / seconds
        ttfts, e2els = snapshot.ttft[began], snapshot.e2el[began]
        ttft, tpot = GroupLatency.of(ttfts), GroupLatency.of(snapshot.tpot[began & (snapshot.tpot >= 0)])
        e2el = GroupLatency.of(e2els)
        percentiles = parse_percentiles(run.settings.metric_percentiles)
        first_ns, run_s = int(snapshot.sent[was_sent].min()), throughput.wall_ns(snapshot) / 1e9
        return cls(
            window=SteadyWindow(
                start_s=(window[0] - first_ns) / 1e9,
                end_s=(window[1] - first_ns) / 1e9,
                duration_s=seconds,
                target_concurrency=cap,
                threshold=threshold,
                threshold_abs=least,
                observed_peak=throughput.peak_concurrency(snapshot),
                requests_started_in_window=int(began.sum()),
                requests_completed_in_window=int(ended.sum()),
                requests_total=snapshot.ok,
                warning=_warning(seconds, run_s, run.settings.steady_state_min_window),
            ),
            request_throughput=int(ended.sum()) / seconds,
            input_throughput=inputs,
            output_throughput=outputs,
            total_token_throughput=None if inputs is None else inputs + outputs,
            mean_ttft_ms=ttft.mean,
            median_ttft_ms=ttft.p50,
            percentiles_ttft_ms=[(p, percentile_ms(ttfts, p)) for p in percentiles],
            mean_tpot_ms=tpot.mean,
            median_tpot_ms=tpot.p50,
            p90_tpot_ms=tpot.p90,
            p99_tpot_ms=tpot.p99,
            mean_e2el_ms=e2el.mean,
            median_e2el_ms=e2el.p50,
            percentiles_e2el_ms=[(p, percentile_ms(e2els, p)) for p in percentiles],
        )


def _warning(seconds: float, run_s: float, least_s: float | None) -> str | None:
    least_s = max(MIN_WINDOW_S, MIN_SHARE * run_s) if least_s is None else least_s
    return None if seconds >= least_s else f"shorter than {least_s:.4g} s: it may not represent the server"
