"""Rates of a run: per second, as a ramp reached them, in the steady state, for a user, per GPU,
by energy and cost.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Self

from msgspec import Struct

from loadgen.config.output import parse_percentiles
from loadgen.core.outcome import Cause, ended_by
from loadgen.metrics import throughput
from loadgen.metrics.records.header import DATE_FORMAT
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.telemetry import Gpu
from loadgen.metrics.snapshot import BIN_NS, Snapshot
from loadgen.metrics.streamed_tokens import Comparison
from loadgen.metrics.throughput import per_second, wall_ns
from loadgen.report.result.latencies import GroupLatency, percentile_ms
from loadgen.util.clock import NS_PER_S

# A shorter window, or a smaller share of the run, may not represent it.
MIN_WINDOW_S, MIN_SHARE = (10.0, 0.1)
MAX_GAP_S = 5.0  # between two readings of the power; a longer gap is not covered
S_PER_HOUR, MILLION = 3600, 1e6


def is_goodput_known(limited: Collection[str], snapshot: Snapshot) -> bool:
    """Return whether it is known how many requests met their limits.

    Each was judged as it ended, when it was not known yet how many of its tokens had been streamed.

    Args:
        limited: The latencies with a limit; empty: there are none.
        snapshot: The snapshot of the whole run.
    """
    sample = Comparison.of(snapshot)
    return bool(limited) and not ("tpot" in limited and sample is not None and sample.hides)


class Rates(Struct, frozen=True, kw_only=True):
    """Rates beyond vLLM's."""

    answers_per_s: Annotated[
        float | None,
        "Ok answers per second from the end of the first to the end of the last; null with fewer "
        "than 10 of them, and where all requests were due at once or in a closed loop.",
    ] = None
    steady_output_tokens_per_s: Annotated[
        float | None,
        "Output tokens per second between ramp and tail; null if less than a second is left.",
    ]
    uncached_input_tokens_per_s: Annotated[
        float | None,
        "Prompt tokens per second that were not in the cache; null if the server does not count "
        "them.",
    ]
    goodput_requests_per_s: Annotated[
        float | None,
        "Requests per second that met every --goodput limit, on the clock of `latency_from`; null "
        "without it.",
    ]
    good_share: Annotated[
        float | None,
        "Share of the scheduled requests whose users stayed that met every limit; null if that "
        "rate is null.",
    ]

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Compute them."""
        snapshot = run.snapshot
        counters = snapshot.counters
        stayed = snapshot.scheduled - ended_by(snapshot.outcomes, Cause.USER)
        steady = throughput.steady_output_rate(snapshot) if run.settings.streams else None
        uncached = good = None
        if counters["cached_counted"]:
            uncached = counters["input_tokens"] - counters["cached_tokens"]
        if is_goodput_known(run.goodput_metrics, snapshot):
            good = counters["good"]
        return cls(
            answers_per_s=throughput.answer_rate(snapshot) if run.schedule.duration_ns else None,
            steady_output_tokens_per_s=steady,
            uncached_input_tokens_per_s=per_second(uncached, snapshot),
            goodput_requests_per_s=per_second(good, snapshot),
            good_share=good / stayed if good is not None and stayed else None,
        )


class RateChange(Struct, frozen=True, kw_only=True):
    """A whole rate of a ramp."""

    rps: Annotated[float, "Requests per second."]
    timestamp: Annotated[str, "Local time at which the ramp reached it, ISO 8601, to a second."]


def rate_changes(run: RunData) -> list[RateChange]:
    """List the rate that a ramp began with, and the whole rates that it reached before the run
    ended.

    Args:
        run: The data of a run with a ramp.
    """
    settings = run.settings
    began = datetime.strptime(run.header.date, DATE_FORMAT)  # noqa: DTZ007 - local time, as vLLM writes it
    start, end = settings.ramp_up_start_rps, settings.ramp_up_end_rps
    assert start is not None
    assert end is not None
    window_s, wall_s = run.schedule.duration_ns / 1e9, wall_ns(run.snapshot) / 1e9
    changes = [RateChange(rps=start, timestamp=began.isoformat())]
    for rate in range(math.floor(start) + 1, math.floor(end) + 1):
        if settings.ramp_up_strategy == "linear":
            share = (rate - start) / (end - start)
        else:
            share = math.log(rate / start) / math.log(end / start)
        if share * window_s > wall_s:
            break
        reached = began + timedelta(seconds=share * window_s)
        changes.append(RateChange(rps=rate, timestamp=reached.isoformat(timespec="seconds")))
    return changes


class SteadyWindow(Struct, frozen=True, kw_only=True):
    """The window of a steady state."""

    start_s: Annotated[
        float, "When that many requests were first in flight, s from the first send."
    ]
    end_s: Annotated[float, "When that many were last in flight, s from the first send."]
    duration_s: Annotated[float, "Its length, s."]
    target_concurrency: Annotated[int, "`--max-concurrency`."]
    threshold: Annotated[float, "`--steady-state-threshold`."]
    threshold_abs: Annotated[int, "Requests in flight at its start and its end."]
    observed_peak: Annotated[int, "Peak number of requests in flight."]
    requests_started_in_window: Annotated[int, "Ok requests that were sent in it."]
    requests_completed_in_window: Annotated[int, "Ok requests that ended in it."]
    requests_total: Annotated[int, "Ok requests of the run."]
    warning: Annotated[
        str | None, "Why it may not represent the run; null: nothing speaks against it."
    ]


class SteadyState(Struct, frozen=True, kw_only=True):
    """The steady state of a closed loop, by the names of vLLM's client in Rust."""

    window: SteadyWindow
    request_throughput: Annotated[float, "Ok requests per second that ended in the window."]
    input_throughput: Annotated[
        float | None, "Input tokens per second, of ok requests that were sent in it; null: unknown."
    ]
    output_throughput: Annotated[
        float,
        "Output tokens of ok requests per second of the window, each counted when it arrived.",
    ]
    total_token_throughput: Annotated[
        float | None, "Input and output tokens per second; null: unknown."
    ]
    mean_ttft_ms: Annotated[
        float | None,
        "Mean TTFT of the ok requests sent in it, on the clock of `latency_from`, ms; null: none.",
    ]
    median_ttft_ms: Annotated[float | None, "Median of the same, ms."]
    percentiles_ttft_ms: Annotated[
        list[tuple[float, float | None]],
        "The percentiles of --metric-percentiles of the same: pairs of p, ms.",
    ]
    mean_tpot_ms: Annotated[
        float | None, "Mean TPOT of these requests, as vLLM divides, ms; null: none."
    ]
    median_tpot_ms: Annotated[float | None, "Median of the same, ms."]
    p90_tpot_ms: Annotated[float | None, "90th percentile of the same, ms."]
    p99_tpot_ms: Annotated[float | None, "99th percentile of the same, ms."]
    mean_e2el_ms: Annotated[
        float | None, "Mean E2EL of these requests, on the clock of `latency_from`, ms; null: none."
    ] = None
    median_e2el_ms: Annotated[float | None, "Median of the same, ms."] = None
    percentiles_e2el_ms: Annotated[
        list[tuple[float, float | None]],
        "The percentiles of --metric-percentiles of the same: pairs of p, ms.",
    ] = []

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Compute it.

        None if the run is no closed loop of streams, its cap changes, or too few requests were in
        flight in all but an instant.
        """
        threshold, cap = run.settings.steady_state_threshold, run.settings.max_concurrency
        if run.settings.concurrency_profile is not None:  # each phase has a state of its own
            return None
        if not threshold or cap is None or not run.closed_loop or not run.settings.streams:
            return None
        snapshot, least = run.snapshot, max(math.ceil(threshold * cap), 1)
        was_sent = snapshot.sent >= 0
        window = throughput.at_least_in_flight(
            snapshot.sent[was_sent], snapshot.closed[was_sent], least
        )
        if window is None or window[1] - window[0] < 2 * BIN_NS:
            return None
        seconds = (window[1] - window[0]) / 1e9
        ok = snapshot.ttft >= 0
        began, ended = (
            ok & (at >= window[0]) & (at < window[1]) for at in (snapshot.sent, snapshot.closed)
        )
        tokens, outputs = snapshot.input[began], throughput.output_rate(snapshot, *window)
        inputs = None if (tokens < 0).any() else int(tokens.sum()) / seconds
        ttfts, e2els = snapshot.ttft[began], snapshot.e2el[began]
        ttft, e2el = GroupLatency.of(ttfts), GroupLatency.of(e2els)
        tpot = GroupLatency.of(snapshot.tpot[began & (snapshot.tpot >= 0)])
        percentiles = parse_percentiles(run.settings.metric_percentiles)
        first_ns, run_s = int(snapshot.sent[was_sent].min()), wall_ns(snapshot) / 1e9
        least_s = run.settings.steady_state_min_window
        if least_s is None:
            least_s = max(MIN_WINDOW_S, MIN_SHARE * run_s)
        too_short = f"shorter than {least_s:.4g} s: it may not represent the server"
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
                warning=None if seconds >= least_s else too_short,
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


class Efficiency(Struct, frozen=True, kw_only=True):
    """What users and operators compare servers by."""

    output_tokens_per_s_per_user: Annotated[
        float | None,
        "Interactivity: 1000 / median TPOT (ms); null: no TPOT was measured.",
    ]
    gpus: Annotated[
        int | None,
        "GPUs of the servers: `--gpus`, else those that NVML read; null: neither is known.",
    ]
    total_tokens_per_s_per_gpu: Annotated[
        float | None, "Input and output tokens per second and GPU; null: the GPUs are not known."
    ]
    output_tokens_per_s_per_gpu: Annotated[float | None, "Output tokens per second and GPU."]
    energy_j: Annotated[
        float | None,
        "Energy of the GPUs that NVML read, J: their power integrated from the first send until "
        "the last request ended; null: no power was read.",
    ]
    energy_coverage: Annotated[
        float | None,
        "Share of that time between two readings of the power at most 5 s apart, of the GPU with "
        "the least.",
    ]
    joules_per_output_token: Annotated[float | None, "That energy by output tokens, J."]
    joules_per_token: Annotated[float | None, "That energy by input and output tokens, J."]
    cost_per_million_output_tokens: Annotated[
        float | None,
        "`--gpu-hour-price` x GPUs x hours, by million output tokens; null without a price.",
    ]
    cost_per_million_tokens: Annotated[float | None, "The same by million input and output tokens."]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Compute it; None where answers have no tokens, or none came."""
        snapshot, settings = run.snapshot, run.settings
        seconds = wall_ns(snapshot) / NS_PER_S
        output = snapshot.counters["output_tokens"]
        if not settings.generates or not seconds or not output:
            return None
        total = output + snapshot.counters["input_tokens"]
        tpot = snapshot.histograms["tpot"].percentile(50)
        gpus = settings.gpus or len(run.telemetry.gpus) or None
        first_s = int(snapshot.sent[snapshot.sent >= 0].min()) / NS_PER_S
        energies = [energy(gpu, first_s, first_s + seconds) for gpu in run.telemetry.gpus]
        readings = [reading for reading in energies if reading is not None]
        joules = cost = gpu_seconds = None
        if readings and len(readings) == len(energies):
            joules = sum(reading for reading, _ in readings)
        if gpus is not None:
            gpu_seconds = seconds * gpus
            if settings.gpu_hour_price is not None:
                cost = settings.gpu_hour_price * gpu_seconds / S_PER_HOUR
        return cls(
            output_tokens_per_s_per_user=NS_PER_S / tpot if tpot else None,
            gpus=gpus,
            total_tokens_per_s_per_gpu=_ratio(total, gpu_seconds),
            output_tokens_per_s_per_gpu=_ratio(output, gpu_seconds),
            energy_j=joules,
            energy_coverage=min(covered for _, covered in readings) if joules is not None else None,
            joules_per_output_token=_ratio(joules, output),
            joules_per_token=_ratio(joules, total),
            cost_per_million_output_tokens=_ratio(cost, output / MILLION),
            cost_per_million_tokens=_ratio(cost, total / MILLION),
        )


def energy(gpu: Gpu, start_s: float, end_s: float) -> tuple[float, float] | None:
    """Integrate the power of a GPU over a time, by trapezoids; in gaps by the mean power of what is
    covered.

    Returns:
        J, and the share of the time that is covered; None if nothing is.
    """
    readings = [
        (at_s, power)
        for at_s, power in zip(gpu.at_s, gpu.series.get("power_w", ()), strict=False)
        if power is not None
    ]
    covered_s = joules = 0.0
    for (before_s, before), (after_s, after) in pairwise(readings):
        begin, end = max(before_s, start_s), min(after_s, end_s)
        if end <= begin or after_s - before_s > MAX_GAP_S:
            continue
        slope = (after - before) / (after_s - before_s)
        joules += (before + slope * ((begin + end) / 2 - before_s)) * (end - begin)
        covered_s += end - begin
    if not covered_s:
        return None
    return joules / covered_s * (end_s - start_s), covered_s / (end_s - start_s)


def _ratio(value: float | None, by: float | None) -> float | None:
    return None if value is None or by is None else value / by
