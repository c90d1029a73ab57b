"""Run rows: results as rows of a table, one for each run, with columns that do not depend on what was asked."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from loadgen.config.output import METRICS
from loadgen.metrics.snapshot import DISTRIBUTIONS
from loadgen.report.csv_file import Value
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import RAMP, SCALARS, SEQUENCE_KEYS
from loadgen.report.result.outcomes import all_met
from loadgen.report.result.series import RunBrief, Series

STATISTICS = ("p50", "p90", "p99", "max")
# Keys of a result that are no columns.
NESTED = ("steady_state", "spec_decode_per_position_acceptance_rates", "rps_change_events")
# vLLM's keys, as they stand in a result of tokens.
VLLM_COLUMNS = (
    *(name for name in SCALARS if name not in (*RAMP, *SEQUENCE_KEYS, *NESTED)),
    *(f"{statistic}_{metric}_ms" for metric in METRICS for statistic in ("mean", "median", "std", "p90", "p99")),
)
FINDINGS = (
    *("verdict", "partial", "overloaded", "simulated", "closed_loop", "latency_from"),
    *("scheduled", "error_rate", "client_error_rate", "repeated_prompts"),
)
RATES = (
    *("steady_output_tokens_per_s", "uncached_input_tokens_per_s"),
    *("goodput_requests_per_s", "good_share"),
)
LATENCY_COLUMNS = tuple(f"{name}_{statistic}_ms" for name in DISTRIBUTIONS for statistic in STATISTICS)
LOADGEN_COLUMNS = (*FINDINGS, *RATES, "output_counted_by", "client_busy_share", *LATENCY_COLUMNS)
COLUMNS = ("file", *VLLM_COLUMNS, *LOADGEN_COLUMNS, "reasons", "slo_met", "prompts_sha256")


def rows(path: str, results: Iterable[RunResult | Series]) -> list[dict[str, Value]]:
    """Make a row for each run; a series has one for each of its runs, with what it tells of them.

    Args:
        path: The file that holds them.
        results: All that it holds.
    """
    return [{"file": path, **row} for result in results for row in _runs(result)]


def columns(rows: Iterable[Mapping[str, Value]]) -> list[str]:
    """List the columns of rows: COLUMNS, then further percentiles that some run was asked for, and the keys of
    --metadata, as `metadata.KEY`.
    """
    return [*COLUMNS, *dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)]


def _runs(result: RunResult | Series) -> Iterator[dict[str, Value]]:
    if isinstance(result, Series):
        yield from (_brief(point.result) | _judged(point.result) for point in result.points)
    else:
        brief = RunBrief.of(result)
        yield _brief(brief) | _whole(result) | _judged(brief)


def _brief(run: RunBrief) -> dict[str, Value]:
    """Make the columns that a series has of its runs too; the others are empty."""
    metadata = {*run.findings.metadata} - {*VLLM_COLUMNS}
    flat = {name: value for name, value in run.numbers.to_dict().items() if name not in NESTED}
    row: dict[str, Value] = {f"metadata.{name}" if name in metadata else name: value for name, value in flat.items()}
    return row | {name: getattr(run.findings, name, None) for name in LOADGEN_COLUMNS}


def _whole(result: RunResult) -> dict[str, Value]:
    row: dict[str, Any] = {name: getattr(result, name) for name in FINDINGS}
    row |= {name: getattr(result.rates, name) for name in RATES}
    row |= {"output_counted_by": result.tokens.output_counted_by, "client_busy_share": result.client.busy_share}
    for name in DISTRIBUTIONS:
        distribution = result.latency_ms.named(name)
        row |= {f"{name}_{statistic}_ms": distribution.statistic_ms(statistic) for statistic in STATISTICS}
    return row


def _judged(run: RunBrief) -> dict[str, Value]:
    findings = run.findings
    return {
        "reasons": "; ".join(findings.reasons),
        "prompts_sha256": findings.prompts_sha256,
        "slo_met": all_met(findings.slo) if findings.slo else None,
    }
