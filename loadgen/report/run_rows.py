"""Run rows: results as rows of a table, one for each run, with columns that do not depend on what was asked."""

from collections.abc import Iterable, Mapping
from typing import Any

from loadgen.config.output import METRICS
from loadgen.metrics.snapshot import DISTRIBUTIONS
from loadgen.report.csv_file import Value
from loadgen.report.run_summary import brief
from loadgen.report.series import is_series

STATISTICS = ("p50", "p90", "p99", "max")
# vLLM's keys, as they stand in a result.
PLAIN = (
    *("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate"),
    *("burstiness", "max_concurrency", "duration", "completed", "failed", "total_input_tokens", "total_output_tokens"),
    *("request_throughput", "request_goodput", "output_throughput", "total_token_throughput"),
    *("max_output_tokens_per_s", "max_concurrent_requests"),
    *(f"{statistic}_{metric}_ms" for metric in METRICS for statistic in ("mean", "median", "std", "p99")),
)
# Ours, and where in its part of a result each stands.
OWN: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("verdict", "partial", "overloaded", "simulated", "closed_loop", "latency_from")},
    **{name: (name,) for name in ("scheduled", "error_rate", "client_error_rate", "repeated_prompts")},
    **{name: ("rates", name) for name in ("steady_output_tokens_per_s", "uncached_input_tokens_per_s")},
    **{name: ("rates", name) for name in ("goodput_requests_per_s", "good_share")},
    "output_counted_by": ("tokens", "output_counted_by"),
    "client_busy_share": ("client", "busy_share"),
    **{f"{name}_{which}_ms": ("latency_ms", name, which) for name in DISTRIBUTIONS for which in STATISTICS},
}
COLUMNS = ("file", *PLAIN, *OWN, "reasons", "slo_met", "prompts_sha256")


def rows(path: str, results: Iterable[Mapping[str, Any]]) -> list[dict[str, Value]]:
    """A row for each run; a series has one for each of its runs, with what it tells of them.

    Args:
        path: The file that holds them.
        results: All that it holds.
    """
    return [_row(path, run) for result in results for run in _runs(result)]


def columns(rows: Iterable[Mapping[str, Value]]) -> list[str]:
    """Of rows: COLUMNS, then further percentiles that some run was asked for, and the keys of --metadata, as
    `metadata.KEY`.
    """
    return [*COLUMNS, *dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)]


def _runs(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [point["result"] for point in result["points"]] if is_series(result) else [result]


def _row(path: str, run: Mapping[str, Any]) -> dict[str, Value]:
    own = run["loadgen"]
    short = run if "reasons" in own else brief(run)  # a series has its runs in brief
    row: dict[str, Value] = {"file": path}
    # A series saved before does not say what was --metadata: a text that nothing else of a run is.
    texts = [name for name, value in short.items() if isinstance(value, str)]
    given = set(short["loadgen"].get("metadata", texts)) - set(PLAIN)
    for name, value in short.items():
        if name != "loadgen":
            row[f"metadata.{name}" if name in given else name] = value
    row |= {name: _at(own, where) for name, where in OWN.items()}
    judged, met = short["loadgen"], [limit["met"] for limit in own["slo"]]
    row |= {"reasons": "; ".join(judged["reasons"]), "prompts_sha256": judged["prompts_sha256"]}
    return row | {"slo_met": all(met) if met and None not in met else None}


def _at(data: Any, where: tuple[str, ...]) -> Any:
    for name in where:
        data = data.get(name, {})
    return None if data == {} else data
