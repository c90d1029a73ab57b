"""The result: one JSON object, `vllm bench serve`'s keys at the top and loadgen's own under `loadgen`."""

import math
from collections.abc import Iterable
from typing import Any

from loadgen import slo, throughput
from loadgen.checks import Check, verdict
from loadgen.histogram import Histogram
from loadgen.settings import METRICS, RunSettings, is_closed_loop
from loadgen.snapshot import TOKENS, Snapshot

SCHEMA = 1
# vLLM's names -> what they mean there: from sent, a gap per event, and TPOT as if the first event were one token; but
# TTFT ends with the first token instead of the first chunk
VLLM_MEANING = {"ttft": "ttft_sent", "tpot": "tpot_n1", "itl": "icl", "e2el": "e2el_sent"}

COUNTED_BY = {
    "usage": "usage_requests",
    "token ids": "id_requests",
    "tokenizer": "tokenizer_requests",
    "events": "event_requests",
}
COUNTED_PER_EVENT_BY = {"usage": "usage_per_event", "token ids": "ids_per_event"}


def build(
    settings: RunSettings,
    snapshot: Snapshot,
    checks: Iterable[Check],
    *,
    model: str,
    date: str,
    provenance: dict[str, Any],
    client: dict[str, Any],
    simulated: bool,
) -> dict[str, Any]:
    """Make the result of a run.

    Args:
        settings: As asked.
        snapshot: As measured.
        checks: What was checked.
        model: The model's name in requests.
        date: Local start time, YYYYmmdd-HHMMSS.
        provenance: What is needed to know what was run, by whom and on what.
        client: What the measuring side cost: busy share of its loop, other load on the machine.
        simulated: Whether the engine was loadgen's own simulator.
    """
    checks = list(checks)
    percentiles = parse_percentiles(settings.metric_percentiles)
    wall_s = throughput.wall_ns(snapshot) / 1e9
    counters = snapshot.counters

    def per_second(count: float) -> float | None:
        return count / wall_s if wall_s else None

    failed = snapshot.scheduled - snapshot.ok
    peak = throughput.peak_output_tokens(snapshot)
    result: dict[str, Any] = {
        "date": date,
        "endpoint_type": settings.backend or "openai",
        "backend": settings.backend or "openai",
        "label": None,
        "model_id": model,
        "tokenizer_id": settings.tokenizer or model,
        "num_prompts": snapshot.scheduled,
    }
    for pair in settings.metadata:
        key, _, value = pair.partition("=")
        result[key.strip()] = value.strip()
    result |= {
        "request_rate": "inf" if math.isinf(settings.request_rate) else settings.request_rate,
        "burstiness": settings.burstiness if math.isfinite(settings.burstiness) else "inf",
        "max_concurrency": settings.max_concurrency,
        "duration": wall_s,
        "completed": snapshot.ok,
        "failed": failed,
        "total_input_tokens": counters["input_tokens"],
        "total_output_tokens": counters["output_tokens"],
        "request_throughput": per_second(snapshot.ok),
        "request_goodput": per_second(counters["good_sent"]) if settings.goodput else None,
        "output_throughput": per_second(counters["output_tokens"]),
        "total_token_throughput": per_second(counters["input_tokens"] + counters["output_tokens"]),
    }
    if snapshot.details is not None:
        result |= _details(snapshot)
    result |= {"max_output_tokens_per_s": float(peak), "max_concurrent_requests": throughput.peak_concurrency(snapshot)}
    for metric in METRICS:
        histogram = snapshot.histograms[VLLM_MEANING[metric]]
        result[f"mean_{metric}_ms"] = _ms(histogram.mean)
        result[f"median_{metric}_ms"] = _ms(histogram.percentile(50))
        result[f"std_{metric}_ms"] = _ms(histogram.std)
        for p in percentiles:
            result[f"p{p_word(p)}_{metric}_ms"] = _ms(histogram.percentile(p))
    result["loadgen"] = _own(settings, snapshot, checks, provenance, client, simulated, per_second, percentiles)
    return result


def _own(
    settings: RunSettings,
    snapshot: Snapshot,
    checks: list[Check],
    provenance: dict[str, Any],
    client: dict[str, Any],
    simulated: bool,
    per_second: Any,
    percentiles: list[float],
) -> dict[str, Any]:
    counters = snapshot.counters
    limits = slo.parse(settings.slo) if settings.slo else []
    errors = snapshot.scheduled - snapshot.ok
    error_rate = errors / snapshot.scheduled if snapshot.scheduled else None

    def lookup(metric: str, statistic: str) -> float | None:
        if metric == "error":
            return error_rate
        metric = "icl" if metric == "itl" else metric  # an event counts as one token
        name = f"{metric}_{settings.latency_from}" if metric in ("ttft", "ttfo", "e2el") else metric
        return _statistic(snapshot.histograms[name], statistic)

    return {
        "schema": SCHEMA,
        "verdict": str(verdict(checks)),
        "checks": [check.to_dict() for check in checks],
        "partial": snapshot.partial,
        "simulated": simulated,
        "insecure": settings.insecure,
        "closed_loop": is_closed_loop(settings),
        "latency_from": settings.latency_from,
        "scheduled": snapshot.scheduled,
        "repeated_prompts": max(0, snapshot.scheduled - provenance["prompts"]["requests"]),
        "outcomes": snapshot.outcomes,
        "examples": snapshot.examples,
        "finish_reasons": snapshot.finishes,
        "error_rate": error_rate,
        "latency_ms": {
            name: _summary(histogram, {50, 90, 99, *percentiles}) for name, histogram in snapshot.histograms.items()
        },
        "tpot_token_weighted_ms": _ms(
            counters["decode_ns"] / counters["decode_tokens"] if counters["decode_tokens"] else None
        ),
        "tokens": {name: counters[name] for name in TOKENS}
        | {
            "output_counted_by": _sources(counters, COUNTED_BY) or "n/a",
            "itl_counted_by": _sources(counters, {"usage": "usage_per_event", "token ids": "ids_per_event"})
            or "events",
        },
        "rates": {
            "steady_output_tokens_per_s": throughput.steady_output_rate(snapshot),
            "uncached_input_tokens_per_s": per_second(counters["input_tokens"] - counters["cached_tokens"])
            if counters["cached_counted"]
            else None,
            "goodput_requests_per_s": per_second(counters["good"]) if settings.goodput else None,
            "good_share": counters["good"] / snapshot.scheduled if settings.goodput and snapshot.scheduled else None,
        },
        "slo": slo.judge(limits, lookup),
        "client": client
        | {name: counters[name] for name in ("warm_connections", "late_connections", "by_reader", "early")},
        "provenance": provenance,
        "histograms": {name: histogram.to_dict() for name, histogram in snapshot.histograms.items()},
    }


def parse_percentiles(text: str) -> list[float]:
    """Read "50,99,99.9"; the settings' check has refused anything else."""
    return [float(part) for part in text.split(",") if part.strip()]


def p_word(p: float) -> str:
    """99.0 -> "99", 99.9 -> "99.9"."""
    return str(int(p)) if p == int(p) else str(p)


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


def _statistic(histogram: Histogram, statistic: str) -> float | None:
    match statistic:
        case "mean":
            return _ms(histogram.mean)
        case "max":
            return _ms(histogram.max)
        case "median":
            return _ms(histogram.percentile(50))
    return _ms(histogram.percentile(float(statistic.removeprefix("p"))))


def _summary(histogram: Histogram, percentiles: set[float]) -> dict[str, float | int | None]:
    summary: dict[str, float | int | None] = {
        "count": histogram.count,
        "mean": _ms(histogram.mean),
        "std": _ms(histogram.std),
        "min": _ms(histogram.min),
        "max": _ms(histogram.max),
    }
    return summary | {f"p{p_word(p)}": _ms(histogram.percentile(p)) for p in sorted(percentiles)}


def _sources(counters: dict[str, int], names: dict[str, str]) -> str:
    """What tokens were counted by: the sources whose counters are not 0, best first."""
    return " and ".join(source for source, name in names.items() if counters[name])


def _details(snapshot: Snapshot) -> dict[str, Any]:
    assert snapshot.details is not None
    order = sorted(range(len(snapshot.index)), key=snapshot.index.__getitem__)
    return {name: [column[i] for i in order] for name, column in vars(snapshot.details).items()}
