"""Files: results that tools keep as JSON - of loadgen and `vllm bench serve`, of SGLang, of guidellm."""

import json
import re
from collections.abc import Iterator
from typing import Any

from loadgen.analysis.audit.finding import Place
from loadgen.analysis.audit.number import Number
from loadgen.analysis.audit.published import Published
from loadgen.errors import BadInput

KEYS = {
    "completed": "ok",
    "failed": "failed",
    "max_concurrency": "cap",
    "request_rate": "rate",
    "duration": "duration_s",
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "request_throughput": "requests_per_s",
    "input_throughput": "input_per_s",
    "output_throughput": "output_per_s",
    "total_token_throughput": "total_per_s",
    "total_throughput": "total_per_s",
    "max_output_tokens_per_s": "peak_output_per_s",
    "max_concurrent_requests": "peak_in_flight",
    "concurrency": "mean_in_flight",
}
NEEDED = {"completed", "duration", "total_output_tokens"}
COUNTS = {"completed", "failed", "max_concurrency", "total_input_tokens", "total_output_tokens"}
LATENCY = re.compile(r"(mean|median|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el|e2e_latency)_ms")
FLOAT_ERROR = 1e-6  # in what order a tool adds up its floating point numbers, relative
HISTOGRAM_ERROR = 1e-3  # percentiles of loadgen: three digits of an HDR histogram
# guidellm's rates are those of events, from the first to the last, and not of the run: near it, but not equal.
RATE_ERROR = 0.005
GUIDELLM_RATES = {
    "requests_per_second": "requests_per_s",
    "output_tokens_per_second": "output_per_s",
    "tokens_per_second": "total_per_s",
}
GUIDELLM_LATENCIES = {
    "request_latency": ("e2el", 1000),
    "time_to_first_token_ms": ("ttft", 1),
    "time_per_output_token_ms": ("tpot", 1),
    "inter_token_latency_ms": ("itl", 1),
}
GUIDELLM_STATISTICS = {"mean": "mean", "median": "median", "p90": "p90", "p95": "p95", "p99": "p99"}


def results(name: str, text: str) -> list[Published]:
    """The results in a file of JSON, or of one JSON object a line.

    Args:
        name: The name of the file, as findings call it.
        text: All of it.

    Raises:
        BadInput: It is no JSON, or none of a kind that is known.
    """
    return [published for line, data in _objects(name, text) for published in _read(data, Place(name, line))]


def _objects(name: str, text: str) -> Iterator[tuple[int, Any]]:
    try:
        whole = json.loads(text)  # which, as others write it, has Infinity and NaN
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise BadInput("FILE", f"{name}:{number} is not JSON ({error})", "name a whole result") from None
        return
    for data in whole if isinstance(whole, list) else [whole]:
        yield 1, data


def _read(data: Any, place: Place) -> Iterator[Published]:
    if isinstance(data, dict) and data.keys() >= NEEDED:
        yield _flat(data, place)
        return
    runs = data.get("benchmarks") if isinstance(data, dict) else None
    if not isinstance(runs, list) or not runs or not all(map(_is_guidellms, runs)):
        raise BadInput(
            "FILE",
            f"{place.file}:{place.line} is JSON, but not a known result",
            "name one of loadgen, vllm bench serve, SGLang's bench_serving or guidellm",
        )
    for number, run in enumerate(runs, 1):
        yield _guidellm(run, Place(place.file, place.line, f"benchmark {number}"))


def _is_guidellms(run: Any) -> bool:
    metrics = run.get("metrics") if isinstance(run, dict) else None
    return isinstance(metrics, dict) and isinstance(metrics.get("request_totals"), dict)


def _flat(data: dict[str, Any], place: Place) -> Published:
    """As vLLM's benchmark and those that came from it keep a result; loadgen adds a part of its own."""
    numbers = {}
    for key, name in KEYS.items():
        if (value := _value(data.get(key))) is not None:
            numbers[name] = Number.exact(value) if key in COUNTS else Number.within(value, FLOAT_ERROR)
    for key, given in data.items():
        if (found := LATENCY.fullmatch(key)) and (value := _value(given)) is not None:
            metric = "e2el" if found[2] == "e2e_latency" else found[2]
            share = HISTOGRAM_ERROR if "loadgen" in data and found[1] != "mean" else FLOAT_ERROR
            numbers[f"{found[1]}_{metric}_ms"] = Number.within(value, share)
    own = data.get("loadgen")
    own = own if isinstance(own, dict) else {}
    return Published(
        numbers,
        {},
        place,
        title=str(data.get("label") or ""),
        lengths=_lengths(data, own),
        verdict=str(own.get("verdict") or ""),
        data=data,
    )


def _lengths(data: dict[str, Any], own: dict[str, Any]) -> frozenset[int] | None:
    """Return the lengths of replies; None: unknown. Empty if some have no TPOT: then it is unknown which have one."""
    summaries = own.get("latency_ms")
    tpot = summaries.get("tpot_n1") if isinstance(summaries, dict) else None
    if isinstance(tpot, dict) and tpot.get("count") != data["completed"]:
        return frozenset()
    given = data.get("output_lens")
    if not isinstance(given, list) or not given:
        return None
    return frozenset(length for length in given if isinstance(length, int) and length > 0)


def _guidellm(run: dict[str, Any], place: Place) -> Published:
    """One benchmark of guidellm's: means over the requests that succeeded."""

    def summary_of(metric: str) -> dict[str, Any]:
        found = run["metrics"].get(metric)
        found = found.get("successful") if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    numbers: dict[str, Number] = {}
    totals = run["metrics"]["request_totals"]
    for status, name in (("successful", "ok"), ("errored", "failed")):
        if (count := _value(totals.get(status))) is not None:
            numbers[name] = Number.exact(count)
    if "ok" in numbers:
        for metric, name in (("prompt_token_count", "input_tokens"), ("output_token_count", "output_tokens")):
            if (mean := _value(summary_of(metric).get("mean"))) is not None:
                numbers[name] = Number.exact(round(mean * numbers["ok"].value))
    duration = _value(run.get("duration"))
    ends = _value(run.get("start_time")), _value(run.get("end_time"))
    if duration is None and ends[0] is not None and ends[1] is not None:
        duration = ends[1] - ends[0]
    if duration is not None:
        numbers["duration_s"] = Number.within(duration, FLOAT_ERROR)
    known_rates = {} if _leaves_out(run, totals) else GUIDELLM_RATES
    for metric, name in known_rates.items():
        if (value := _value(summary_of(metric).get("mean"))) is not None:
            numbers[name] = Number.within(value, RATE_ERROR)
    for metric, (name, scale) in GUIDELLM_LATENCIES.items():
        summary = summary_of(metric)
        percentiles = summary.get("percentiles")
        everything = {**(percentiles if isinstance(percentiles, dict) else {}), **summary}
        for key, statistic in GUIDELLM_STATISTICS.items():
            if (value := _value(everything.get(key))) is not None:
                numbers[f"{statistic}_{name}_ms"] = Number.within(value * scale, FLOAT_ERROR)
    if (peak := _value(summary_of("request_concurrency").get("max"))) is not None:
        numbers["peak_in_flight"] = Number.exact(peak)
    return Published(numbers, {}, place, tpot_with_first=True)


def _leaves_out(run: dict[str, Any], totals: dict[str, Any]) -> bool:
    """Return whether requests of a warm-up or cool-down are not counted, so that rates are of other requests, too."""
    scheduled = run.get("scheduler_metrics")
    made = scheduled.get("requests_made") if isinstance(scheduled, dict) else None
    whole, counted = _value(made.get("total")) if isinstance(made, dict) else None, _value(totals.get("total"))
    return whole is not None and counted is not None and counted < whole


def _value(given: Any) -> float | None:
    """A finite number; None for anything else."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if is_number and abs(given) < float("inf") else None
