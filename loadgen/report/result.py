"""The result: one JSON object, `vllm bench serve`'s keys at the top and loadgen's own under `loadgen`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from loadgen.checks import STEADY, Check, repeated_prompts, unfinished_p99_ns, verdict
from loadgen.config import slo
from loadgen.config.output import METRICS, parse_percentiles
from loadgen.metrics import throughput
from loadgen.metrics.run_data import Evidence
from loadgen.metrics.snapshot import LATENCIES, TOKENS, UNFINISHED, Snapshot
from loadgen.metrics.streamed_tokens import Comparison
from loadgen.report import targets
from loadgen.report.distribution import number, summary
from loadgen.report.server import server
from loadgen.report.timeline import over_time
from loadgen.stats.percentile_interval import interval
from loadgen.util.number_format import UNKNOWN, percentile, to_ms

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
OVER_SAMPLE = "streamed tokens of a sample"
COUNTED_PER_EVENT_BY = {"usage": "usage_per_event", "token ids": "ids_per_event"}


def build(evidence: Evidence, checks: list[Check]) -> dict[str, Any]:
    """Make the result of a run, of which these checks were made."""
    settings, snapshot = evidence.settings, evidence.snapshot
    percentiles = parse_percentiles(settings.metric_percentiles)
    wall_s = throughput.wall_ns(snapshot) / 1e9
    counters = snapshot.counters

    def per_second(count: float) -> float | None:
        return count / wall_s if wall_s else None

    failed = snapshot.ended - snapshot.ok - snapshot.outcomes.get("cancelled", 0)
    peak = throughput.peak_output_tokens(snapshot)
    result: dict[str, Any] = {
        "date": evidence.heading.date,
        "endpoint_type": settings.backend or "openai",
        "backend": settings.backend or "openai",
        "label": settings.label,
        "model_id": evidence.heading.model,
        "tokenizer_id": settings.tokenizer or evidence.heading.model,
        "num_prompts": snapshot.scheduled,
    }
    for pair in settings.metadata:
        key, _, value = pair.partition("=")
        result.setdefault(key.strip(), value.strip())
    result |= {
        "request_rate": "inf" if math.isinf(settings.request_rate) else settings.request_rate,
        "burstiness": settings.burstiness if math.isfinite(settings.burstiness) else "inf",
        "max_concurrency": settings.max_concurrency,
        "duration": wall_s,
        "completed": snapshot.ok,
        "failed": failed,
        "total_input_tokens": None if counters["unknown_input"] else counters["input_tokens"],
        "total_output_tokens": counters["output_tokens"],
        "request_throughput": per_second(snapshot.ok),
        "request_goodput": per_second(counters["good_sent"]) if settings.goodput else None,
        "output_throughput": per_second(counters["output_tokens"]),
        "total_token_throughput": None
        if counters["unknown_input"]
        else per_second(counters["input_tokens"] + counters["output_tokens"]),
    }
    if snapshot.details is not None:
        result |= _details(snapshot)
    result |= {"max_output_tokens_per_s": float(peak), "max_concurrent_requests": throughput.peak_concurrency(snapshot)}
    for metric in METRICS:
        histogram = snapshot.histograms[VLLM_MEANING[metric]]
        result[f"mean_{metric}_ms"] = to_ms(histogram.mean)
        result[f"median_{metric}_ms"] = to_ms(histogram.percentile(50))
        result[f"std_{metric}_ms"] = to_ms(histogram.std)
        for p in percentiles:
            result[f"{percentile(p)}_{metric}_ms"] = to_ms(histogram.percentile(p))
    result["loadgen"] = _own(evidence, checks, per_second)
    return result


def _own(evidence: Evidence, checks: list[Check], per_second: Callable[[float], float | None]) -> dict[str, Any]:
    """All that loadgen says beyond vLLM's keys."""
    settings, snapshot, percentiles = evidence.settings, evidence.snapshot, evidence.percentiles
    counters, failures = snapshot.counters, snapshot.failures
    steady = next((check.ok for check in checks if check.name == STEADY), None)
    return {
        "schema": SCHEMA,
        "verdict": str(verdict(checks)),
        "checks": [check.to_dict() for check in checks],
        "partial": snapshot.partial,
        "overloaded": None if steady is None else not steady,
        "simulated": evidence.heading.simulated,
        "insecure": settings.insecure,
        "closed_loop": evidence.closed_loop,
        "latency_from": settings.latency_from,
        "scheduled": snapshot.scheduled,
        "repeated_prompts": repeated_prompts(evidence),
        "outcomes": snapshot.outcomes,
        "examples": snapshot.examples,
        "finish_reasons": snapshot.finishes,
        "early_stops": snapshot.early_stops,
        "error_rate": failures.server_rate,
        "client_error_rate": failures.client_rate,
        "no_answer_since_s": evidence.no_answer_since_s,
        "cancelled": _cancelled(snapshot),
        "silent_streams": {"count": counters["silent_streams"], "examples": list(snapshot.silences)},
        "never_due": counters["never_due"],  # turns after one that failed, among the cancelled
        "targets": targets.rows(evidence, per_second),
        "latency_ms": {name: summary(histogram, percentiles) for name, histogram in snapshot.histograms.items()},
        # In which the true percentiles lie with 99 % confidence if requests are independent; null: not bounded by the
        # sample. Gaps have none: those of all streams share the engine's steps.
        "intervals_ms": {
            name: {percentile(p): [to_ms(end) for end in interval(snapshot.histograms[name], p)] for p in percentiles}
            for name in LATENCIES
            if name not in slo.GAPS
        },
        "unfinished": {
            "count": snapshot.histograms[UNFINISHED].count,
            "p99_e2el_due_at_least_ms": to_ms(unfinished_p99_ns(evidence)),
        },
        "tpot_token_weighted_ms": to_ms(
            counters["decode_ns"] / counters["decode_tokens"] if counters["decode_tokens"] else None
        ),
        "tokens": _tokens(counters) | _predicted(evidence) | _streamed(snapshot),
        "rates": _rates(evidence, per_second),
        "timeline": over_time(snapshot),
        "slo": judged(settings.slo, snapshot, settings.latency_from),
        "client": evidence.client.to_dict()
        | {"warm_connections": counters["warm_connections"] if evidence.client.known else None}
        | {name: counters[name] for name in ("late_connections", "by_reader", "early")},
        "workers": [shard.to_dict() for shard in evidence.shards],
        "server": server(evidence),
        "provenance": evidence.heading.provenance,
        "histograms": {name: histogram.to_dict() for name, histogram in snapshot.histograms.items()},
    }


def _cancelled(snapshot: Snapshot) -> dict[str, int]:
    """What the end of the run cancelled: requests that no connection was asked for, and those in flight."""
    never_sent = snapshot.ended - len(snapshot.index)
    cancelled = snapshot.outcomes.get("cancelled", 0) - snapshot.counters["never_due"]
    return {"never_sent": never_sent, "in_flight": cancelled - never_sent}


def _tokens(counters: dict[str, int]) -> dict[str, Any]:
    return {name: counters[name] for name in TOKENS} | {
        "output_counted_by": _sources(counters, COUNTED_BY) or UNKNOWN,
        "itl_counted_by": _sources(counters, COUNTED_PER_EVENT_BY) or "events",
    }


def _streamed(snapshot: Snapshot) -> dict[str, Any]:
    """What TPOT is divided by, and what a sample of texts showed; null where none had to be tokenized, or could be."""
    sample = Comparison.of(snapshot)
    over = "tokens counted"
    if snapshot.counters["hidden_tokens"]:
        over += " without hidden ones"
    if sample is None:
        return {"tpot_over": over, "text_sample": None}
    seen = {name: getattr(sample, name) for name in ("answers", "counted", "streamed", "difference")}
    return {"tpot_over": OVER_SAMPLE if sample.hides else over, "text_sample": seen}


def _predicted(evidence: Evidence) -> dict[str, Any]:
    """The sum that the server was expected to count, null where it was not known of every request, and from what."""
    counters = evidence.snapshot.counters
    whole = counters["input_predicted"] == evidence.snapshot.ok > 0
    return {
        "predicted_server_input_tokens": counters["predicted_server_input_tokens"] if whole else None,
        "predicted_from": evidence.heading.provenance["prompts"].get("server_tokens"),
    }


def _rates(evidence: Evidence, per_second: Callable[[float], float | None]) -> dict[str, float | None]:
    snapshot, limits = evidence.snapshot, slo.parse_goodput(evidence.settings.goodput)
    sample = Comparison.of(snapshot)
    # Each request was judged as it ended, when nobody knew yet how many of its tokens had been streamed.
    judged = bool(limits) and not ("tpot" in limits and sample is not None and sample.hides)
    counters = snapshot.counters
    return {
        "steady_output_tokens_per_s": throughput.steady_output_rate(snapshot),
        "uncached_input_tokens_per_s": per_second(counters["input_tokens"] - counters["cached_tokens"])
        if counters["cached_counted"]
        else None,
        "goodput_requests_per_s": per_second(counters["good"]) if judged else None,
        "good_share": counters["good"] / snapshot.scheduled if judged and snapshot.scheduled else None,
    }


def judged(limits: str | None, snapshot: Snapshot, clock: str) -> list[dict[str, object]]:
    """What a run shows of all that an SLO demands: rows with limit, value, beyond and met.

    Args:
        limits: The SLO; None: there is none.
        snapshot: What was measured.
        clock: "due" or "sent", from which latencies start.
    """
    return slo.judge(
        slo.required_limits(limits) if limits else [], lambda metric, name: statistic(snapshot, metric, name, clock)
    )


def statistic(snapshot: Snapshot, metric: str, name: str, clock: str) -> float | None:
    """A number as an SLO names it (ttft, p99; error, rate), in ms or as a share; None where it was not measured, inf
    where it lies among requests that failed, which have no gaps.
    """
    if metric == "error":
        return snapshot.failures.server_rate
    failed = 0 if metric in slo.GAPS else snapshot.failures.failed
    return number(snapshot.histograms[slo.distribution(metric, clock)], name, failed)


def _sources(counters: dict[str, int], names: dict[str, str]) -> str:
    """What tokens were counted by: the sources whose counters are not 0, best first."""
    return " and ".join(source for source, name in names.items() if counters[name])


def _details(snapshot: Snapshot) -> dict[str, Any]:
    assert snapshot.details is not None
    order = sorted(range(len(snapshot.index)), key=snapshot.index.__getitem__)
    columns = {name: [column[i] for i in order] for name, column in vars(snapshot.details).items()}
    if snapshot.targets:
        numbers = np.repeat(np.arange(len(snapshot.targets)), [len(part.index) for part in snapshot.targets])
        index = np.concatenate([part.index for part in snapshot.targets])
        columns["targets"] = numbers[np.argsort(index, kind="stable")].tolist()
    return columns
