"""CSV (RFC 4180): results as rows, one for each run, and records as rows, one for each request, in
ms.

Spreadsheets, pandas and databases read the lines. Texts of servers and data sets stand in such
rows. So every text is quoted, what a terminal might obey is escaped, and one that a spreadsheet
would take for a formula begins with an apostrophe. The columns of runs do not depend on what was
asked.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, product
from typing import Any

import orjson

from loadgen.config.output import METRICS
from loadgen.core.outcome import Outcome
from loadgen.core.record_json import record_line
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.snapshot import DISTRIBUTIONS
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import RAMP, SCALARS, SEQUENCE_KEYS
from loadgen.report.result.outcomes import all_met
from loadgen.report.result.series import RunBrief, Series
from loadgen.util.number_format import to_ms
from loadgen.util.terminal_text import printable

Value = str | float | bool | None
# What formulas begin with; tabs and line ends are escaped anyway.
FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
STATISTICS = ("p50", "p90", "p99", "max")
# Keys of a result that are no columns.
NESTED = (
    *("steady_state", "spec_decode_per_position_acceptance_rates", "rps_change_events"),
    *("benchmark_start_time_unix", "benchmark_end_time_unix"),
)
# vLLM's keys, as they stand in a result of tokens.
VLLM_COLUMNS = (
    *(name for name in SCALARS if name not in (*RAMP, *SEQUENCE_KEYS, *NESTED)),
    *(
        f"{statistic}_{metric}_ms"
        for metric, statistic in product(METRICS, ("mean", "median", "std", "p90", "p99"))
    ),
)
FINDINGS = (
    *("verdict", "partial", "overloaded", "simulated", "closed_loop", "latency_from"),
    *("scheduled", "error_rate", "client_error_rate", "repeated_prompts"),
)
RATES = (
    *("steady_output_tokens_per_s", "uncached_input_tokens_per_s"),
    *("goodput_requests_per_s", "good_share"),
)
LATENCY_COLUMNS = tuple(
    f"{name}_{statistic}_ms" for name, statistic in product(DISTRIBUTIONS, STATISTICS)
)
LOADGEN_COLUMNS = (*FINDINGS, *RATES, "output_counted_by", "client_busy_share", *LATENCY_COLUMNS)
RUN_COLUMNS = ("file", *VLLM_COLUMNS, *LOADGEN_COLUMNS, "reasons", "slo_met", "prompts_sha256")
RECORD_FIELDS = (
    *("index", "source", "target", "outcome", "detail", "status", "finish_reason"),
    *("attempts", "first_status"),
    *("planned_input_tokens", "planned_output_tokens", "prompt_tokens", "cached_tokens"),
)
STAMPS = ("due", "ready", "sent", "first_byte", "closed", "connect")  # ns in a record
LATENCY_ENDS = {"ttft": "first_token", "ttfo": "first_answer", "e2el": "last_token"}  # of latencies
OF_STREAMS = (  # unknown of an answer in one piece
    "ttft_due_ms",
    "ttft_sent_ms",
    "ttfo_due_ms",
    "ttfo_sent_ms",
    "tpot_ms",
    "icl_max_ms",
)
REQUEST_COLUMNS = (
    "file",
    *RECORD_FIELDS,
    *("output_tokens", "events"),
    *(f"{name}_ms" for name in STAMPS),
    *(f"{metric}_{clock}_ms" for metric, clock in product(LATENCY_ENDS, ("due", "sent"))),
    *("tpot_ms", "icl_max_ms", "lag_ms"),
)


def lines(columns: Sequence[str], rows: Iterable[Mapping[str, Value]]) -> Iterator[str]:
    """Write the lines of a file, with their ends: names of columns, then the rows; what a row
    lacks stays empty.
    """
    writer = csv.writer(_EchoFile(), quoting=csv.QUOTE_NONNUMERIC)
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_cell(row.get(column)) for column in columns])


def run_rows(path: str, results: Iterable[RunResult | Series]) -> list[dict[str, Value]]:
    """Make a row for each run; a series has one for each of its runs, with what it tells of them.

    Args:
        path: The file that holds them.
        results: All that it holds.
    """
    rows: list[dict[str, Value]] = []
    for result in results:
        if isinstance(result, Series):
            rows += [{"file": path, **_brief(point.result)} for point in result.points]
        else:
            rows.append({"file": path, **_brief(RunBrief.of(result)), **_whole(result)})
    return rows


def run_columns(rows: Iterable[Mapping[str, Value]]) -> list[str]:
    """List the columns of rows: RUN_COLUMNS, then further percentiles that some run was asked for,
    and the keys of --metadata, as `metadata.KEY`.
    """
    return [
        *RUN_COLUMNS,
        *dict.fromkeys(name for name in chain.from_iterable(rows) if name not in RUN_COLUMNS),
    ]


def request_rows(path: str) -> Iterator[dict[str, Value]]:
    """A row for each request in a file of records, in the order in which they ended.

    Raises:
        BadInput: It is no such file, or a line of it is no record.
    """
    file = RecordFile(path)
    unknown = {} if file.header.settings.streams else dict.fromkeys(OF_STREAMS)
    for record in file:
        line = orjson.loads(record_line(record, file.start_ns))
        row: dict[str, Value] = {"file": path} | {name: line.get(name) for name in RECORD_FIELDS}
        row["attempts"] = record.attempts if record.sent else 0
        row |= {f"{name}_ms": to_ms(line[name]) for name in STAMPS}
        sent = line["sent"]
        for metric, end in LATENCY_ENDS.items():
            row[f"{metric}_due_ms"] = to_ms(line[end])
            row[f"{metric}_sent_ms"] = None if line[end] is None else to_ms(line[end] - sent)
        ok = record.outcome is Outcome.OK
        gaps = [later - earlier for earlier, later in pairwise(line["token_times"])]
        row |= {
            "output_tokens": record.answer_tokens if ok else None,
            "events": record.events,
            "tpot_ms": to_ms(record.tpot_ns) if ok else None,
            "icl_max_ms": to_ms(max(gaps, default=None)),
            "lag_ms": to_ms(record.lag_ns),
        }
        yield row | unknown


class _EchoFile:
    """A file that hands a line back instead of keeping it; `writerow` returns what `write` does."""

    def write(self, line: str) -> str:
        return line


def _cell(value: Value) -> str | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _brief(run: RunBrief) -> dict[str, Value]:
    """Make the columns that a series has of its runs too; the others are empty."""
    findings = run.findings
    metadata = {*findings.metadata} - {*VLLM_COLUMNS}
    flat = {name: value for name, value in run.numbers.to_dict().items() if name not in NESTED}
    row: dict[str, Value] = {
        f"metadata.{name}" if name in metadata else name: value for name, value in flat.items()
    }
    row |= {name: getattr(findings, name, None) for name in LOADGEN_COLUMNS}
    return row | {
        "reasons": "; ".join(findings.reasons),
        "prompts_sha256": findings.prompts_sha256,
        "slo_met": all_met(findings.slo) if findings.slo else None,
    }


def _whole(result: RunResult) -> dict[str, Value]:
    row: dict[str, Any] = {name: getattr(result, name) for name in FINDINGS}
    row |= {name: getattr(result.rates, name) for name in RATES}
    row |= {
        "output_counted_by": result.tokens.output_counted_by,
        "client_busy_share": result.client.busy_share,
    }
    for name in DISTRIBUTIONS:
        distribution = result.latency_ms.named(name)
        row |= {f"{name}_{statistic}_ms": distribution[statistic] for statistic in STATISTICS}
    return row
