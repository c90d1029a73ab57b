"""Files: results as tools keep them in JSON, and as they print them in console blocks.

JSON is that of loadgen and `vllm bench serve`, of SGLang, and of guidellm. A block is what the
benchmarks of vLLM and SGLang print, and those that print as they do; it is found in any text.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.number import Number
from loadgen.lab.audit.published import Published
from loadgen.report.tool_block import SGLANG_CAP, SGLANG_RATE, SGLANG_TOTALS, VLLM_TOTALS

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
# The labels of rows in blocks: those of the tools of today, and what others call them.
ROWS = {
    label.rstrip(":"): KEYS[key]
    for totals in (SGLANG_TOTALS, VLLM_TOTALS)
    for key, (label, _) in totals.items()
    if key in KEYS
} | {
    SGLANG_CAP.rstrip(":"): "cap",
    SGLANG_RATE.rstrip(":"): "rate",
    "Total generated tokens (retokenized)": "retokenized",
    "Total Token throughput (tok/s)": "total_per_s",
    "Total throughput (tok/s)": "total_per_s",
}
BLOCK_COUNTS = {"ok", "failed", "cap", "input_tokens", "output_tokens", "retokenized"}
LATENCIES = {
    "TTFT": "ttft",
    "TPOT": "tpot",
    "ITL": "itl",
    "E2EL": "e2el",
    "Latency": "e2el",
    "E2E Latency": "e2el",
}

# A block may lack its first line; the end of one that was cut off is that of the fence around it,
# or the next block.
BLOCK = re.compile(
    r"(?:(?<!=)={5,} Serving Benchmark Result ={5,}|^[ \t]*(?=Successful requests:))"
    r"(.*?)(?:={20,}|(?=```)|(?==+ Serving Benchmark Result)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
ROW = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, ROWS))})\s*:\s*({_NUMBER})")
LATENCY_ROW = re.compile(
    rf"(Mean|Median|P\d+(?:\.\d+)?)\s+({'|'.join(map(re.escape, LATENCIES))})"
    rf"\s*\((ms|s)\)\s*:\s*({_NUMBER})"
)
COMMENT = re.compile(r"#[ \t]*([^\n#]*)\n\s*\Z|(?:\n[ \t]*){2}([^\n=`:|#\"]{3,80})\n[ \t]*\Z")
# What a fence is called in which a block stands: the workload, and of how many starts it is one.
CAPTION = re.compile(
    r"(?i)(?:benchmark results?(?: on (?P<workload>[^\n\"(]+?))?"
    r"(?: \((?:(?:lower )?median|mean) of (?P<starts>\d+) starts\))?\"\s+```\w*\s*)\Z"
)
NEEDED = {"completed", "duration", "total_output_tokens"}
COUNTS = {"completed", "failed", "max_concurrency", "total_input_tokens", "total_output_tokens"}
LATENCY = re.compile(r"(mean|median|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el|e2e_latency)_ms")
FLOAT_ERROR = 1e-6  # in what order a tool adds up its floating point numbers, relative
HISTOGRAM_ERROR = 1e-3  # percentiles of loadgen: three digits of an HDR histogram
# guidellm's rates are those of events, from the first to the last, and not of the run: near it, but
# not equal.
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
GUIDELLM_STATISTICS = ("mean", "median", "p90", "p95", "p99")


def blocks(text: str, place: Callable[[int, str], Place]) -> Iterator[Published]:
    """Every block of a text.

    Args:
        text: The text of a page, a log or a terminal; a block may stand on one line.
        place: What says where an offset of the text lies; its second argument is the name of the
            block.
    """
    for number, block in enumerate(BLOCK.finditer(text), 1):
        name = f"block {number}"
        numbers: dict[str, Number] = {}
        places: dict[str, Place] = {}
        for row in ROW.finditer(text, *block.span(1)):
            label = ROWS[row[1]]
            exact = label in BLOCK_COUNTS and "." not in row[2]
            numbers[label] = (
                Number.exact(float(row[2].replace(",", ""))) if exact else Number.printed(row[2])
            )
            places[label] = place(row.start(1), name)
        for row in LATENCY_ROW.finditer(text, *block.span(1)):
            label = f"{row[1].lower()}_{LATENCIES[row[2]]}_ms"
            numbers[label] = Number.printed(row[4]) * (1000 if row[3] == "s" else 1)
            places[label] = place(row.start(1), name)
        above = COMMENT.search(text, max(0, block.start() - 200), block.start())
        caption = CAPTION.search(text, max(0, block.start() - 200), block.start())
        workload = (caption["workload"] or "").strip() if caption else ""
        title = (above[1] or above[2] or "").strip() if above else workload
        starts = int(caption["starts"] or 1) if caption else 1
        is_guidellms = "Latency(s)" in block[1]  # the only such tool that prints it
        at = block.start()
        yield Published(
            numbers, places, place(at, name), title, at, over_guidellm=is_guidellms, starts=starts
        )


def results(name: str, text: str) -> list[Published]:
    """The results in a file of JSON, or of one JSON object a line.

    Args:
        name: The name of the file, as findings call it.
        text: All of it.

    Raises:
        BadInput: It is no JSON, or none of a kind that is known.
    """
    published: list[Published] = []
    for line, data in _objects(name, text):
        published += _read(data, Place(name, line))
    if not published:
        raise BadInput((), f"{name} is empty: nothing to check", "name a file that has a result")
    return published


def _objects(name: str, text: str) -> Iterator[tuple[int, Any]]:
    try:
        whole = json.loads(text)  # which, as others write it, has Infinity and NaN
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise BadInput(
                        (), f"{name}:{number} is not JSON ({error})", "name a whole result"
                    ) from None
        return
    for data in whole if isinstance(whole, list) else [whole]:
        yield 1, data


def _read(data: Any, place: Place) -> Iterator[Published]:
    if isinstance(data, dict) and data.keys() >= NEEDED:
        yield _flat(data, place)
        return
    runs = _part(data).get("benchmarks")
    if (
        not isinstance(runs, list)
        or not runs
        or not all(_part(run, "metrics", "request_totals") for run in runs)
    ):
        raise BadInput(
            (),
            f"{place.file}:{place.line} is JSON, but not a known result",
            "name one of loadgen, vllm bench serve, SGLang's bench_serving or guidellm",
        )
    for number, run in enumerate(runs, 1):
        numbers = dict(pair for pair in _guidellm(run) if pair[1])
        yield Published(
            numbers, {}, Place(place.file, place.line, f"benchmark {number}"), tpot_with_first=True
        )


def _flat(data: dict[str, Any], place: Place) -> Published:
    """As vLLM's benchmark and its relatives keep a result; loadgen adds a part of its own."""
    numbers: dict[str, Number] = {}
    for key, name in KEYS.items():
        value = _value(data.get(key))
        number = Number.exact(value) if key in COUNTS else Number.within(value, FLOAT_ERROR)
        if number:
            numbers[name] = number
    for key, latency in data.items():
        if match := LATENCY.fullmatch(key):
            metric = "e2el" if match[2] == "e2e_latency" else match[2]
            share = HISTOGRAM_ERROR if "loadgen" in data and match[1] != "mean" else FLOAT_ERROR
            if number := Number.within(_value(latency), share):
                numbers[f"{match[1]}_{metric}_ms"] = number
    part = _part(data, "loadgen")
    tpot = _part(part, "latency_ms", "tpot_n1")
    lengths = data.get("output_lens")
    replies: frozenset[int] | None = None
    if tpot and tpot.get("count") != data["completed"]:
        replies = frozenset()  # some have no TPOT, and it is unknown which have one
    elif isinstance(lengths, list) and lengths:
        replies = frozenset(n for n in lengths if isinstance(n, int) and n > 0)
    title = str(data.get("label") or "")
    verdict = str(part.get("verdict") or "")
    return Published(numbers, {}, place, title=title, lengths=replies, verdict=verdict, data=data)


def _guidellm(run: dict[str, Any]) -> Iterator[tuple[str, Number]]:
    """The numbers of one benchmark of guidellm's: means over the requests that succeeded."""

    def summary(metric: str) -> dict[str, Any]:
        return _part(run, "metrics", metric, "successful")

    totals = run["metrics"]["request_totals"]
    ok = _value(totals.get("successful"))
    yield "ok", Number.exact(ok)
    yield "failed", Number.exact(_value(totals.get("errored")))
    yield "peak_in_flight", Number.exact(_value(summary("request_concurrency").get("max")))
    for metric, name in (
        ("prompt_token_count", "input_tokens"),
        ("output_token_count", "output_tokens"),
    ):
        yield name, Number.exact(round(_value(summary(metric).get("mean")) * ok, 0))
    duration, start, end = (_value(run.get(key)) for key in ("duration", "start_time", "end_time"))
    yield (
        "duration_s",
        Number.within(end - start if math.isnan(duration) else duration, FLOAT_ERROR),
    )
    # Where requests of a warm-up or cool-down are not counted, rates are of other requests, too.
    made = _value(_part(run, "scheduler_metrics", "requests_made").get("total"))
    for metric, name in () if _value(totals.get("total")) < made else GUIDELLM_RATES.items():
        yield name, Number.within(_value(summary(metric).get("mean")), RATE_ERROR)
    for metric, (name, scale) in GUIDELLM_LATENCIES.items():
        successful = summary(metric)
        statistics = _part(successful, "percentiles") | successful
        for statistic in GUIDELLM_STATISTICS:
            value = _value(statistics.get(statistic))
            yield f"{statistic}_{name}_ms", Number.within(value * scale, FLOAT_ERROR)


def _part(data: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _value(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < math.inf else math.nan
