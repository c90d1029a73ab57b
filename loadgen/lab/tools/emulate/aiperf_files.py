"""The files of AIPerf 0.13: `profile_export_aiperf.json`, and a line for each request in
`profile_export.jsonl`.

Their numbers are those that AIPerf would have had for the recorded run, by the rules of `aiperf`.
"""

import datetime
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from loadgen.core.outcome import Cause
from loadgen.core.record import Record
from loadgen.errors import BadInput
from loadgen.lab.tools.emulate import tool
from loadgen.lab.tools.emulate.aiperf import AIPERF, Records, records_of
from loadgen.lab.tools.emulate.recorded_run import RecordedRun
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.run_result import from_records
from loadgen.util.arrays import Floats
from loadgen.version import __version__

SUMMARY, REQUESTS = "profile_export_aiperf.json", "profile_export.jsonl"
AIPERF_VERSION, SCHEMA_VERSION = "0.13.0", "1.4"  # whose readers take the files
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
MS, TOKENS, REQUEST_UNIT, SECONDS = "ms", "tokens", "requests", "sec"
CANCELLED = "RequestCancellationError"  # its type of a request that the client has ended
WORKER = "loadgen"  # in place of the id of one of AIPerf's processes
Metrics = dict[str, dict[str, Any]]


def contents(path: str) -> dict[str, Any]:
    """Return what the files of AIPerf have for a file of records, by their names.

    Raises:
        BadInput: The records have no exact start, or no streams.
    """
    file = RecordFile(path)
    if file.start_unix_ns is None:
        problem = f"{path} is of an earlier version, and its start is known to the second alone"
        raise BadInput("--as", problem, "give the records of a new run")
    export = _Export(file, file.start_unix_ns)
    summary = export.summary(str(from_records(path).verdict))
    return {SUMMARY: summary, REQUESTS: export.requests()}


class _Export:
    """What AIPerf would have kept of a run.

    Args:
        file: Its records.
        start_unix_ns: When its clock started, ns since 1970.
    """

    def __init__(self, file: RecordFile, start_unix_ns: int) -> None:
        self._file = file
        self._to_unix_ns = start_unix_ns - file.start_ns
        self._run = RecordedRun(file.header.settings, file.start_ns, file)
        view = tool.View(self._run, frozenset(AIPERF.rules))
        self._records: Records = records_of(view)
        self._began = view.began
        selected = self._run.select(self._records.contents)
        self._gaps = [
            np.diff(selected.at[begin:end]) / tool.MS
            for begin, end in zip(selected.bounds[:-1], selected.bounds[1:], strict=True)
        ]

    def requests(self) -> Iterator[dict[str, Any]]:
        """Yield the line of each request that was sent, in the order of the records."""
        records, place = self._records, 0
        for number, record in enumerate(self._file):
            is_included = bool(records.included[number])
            place += is_included
            if not record.sent:
                continue
            end_ns = max(record.closed, record.last_token, record.sent)
            yield {
                "metadata": {
                    "session_num": record.index,
                    "conversation_id": record.source,
                    "turn_index": max(record.turn, 0),
                    "request_start_ns": int(self._began[number]) + self._to_unix_ns,
                    "request_ack_ns": record.first_byte + self._to_unix_ns
                    if record.first_byte
                    else None,
                    "request_end_ns": end_ns + self._to_unix_ns,
                    "worker_id": WORKER,
                    "record_processor_id": WORKER,
                    "benchmark_phase": "profiling",
                    "was_cancelled": _was_cancelled(record),
                },
                "metrics": self._of_request(number, place - 1) if is_included else {},
                "error": None if is_included else _error(record),
            }

    def summary(self, verdict: str) -> dict[str, Any]:
        """Return the summary of the run, with a key of loadgen's that AIPerf's readers pass over.

        Args:
            verdict: The verdict of loadgen.
        """
        records, run = self._records, self._run
        output = records.output[records.output >= 0].astype(float)
        prompts = run.prompt_tokens[records.included]
        inputs = prompts[prompts >= 0].astype(float)
        ttft, latency = ((part - records.start) / tool.MS for part in (records.first, records.last))
        gaps = [gap for gap, used in zip(self._gaps, records.included, strict=True) if used]
        count = int(records.included.sum())
        duration_s = records.duration_s
        sent = int((run.sent > 0).sum())
        mean_gaps = records.mean_gaps
        metrics = {
            "time_to_first_token": _distribution(ttft, MS),
            "time_to_second_token": _distribution(records.second.values / tool.MS, MS),
            "time_to_first_output_token": _distribution(records.first_answer.values / tool.MS, MS),
            "request_latency": _distribution(latency, MS),
            "inter_token_latency": _distribution(mean_gaps / tool.MS, MS),
            "inter_chunk_latency": _distribution(np.concatenate([np.empty(0), *gaps]), MS),
            "output_token_throughput_per_user": _distribution(
                1e9 / mean_gaps[mean_gaps > 0], f"{TOKENS}/{SECONDS}/user"
            ),
            "output_sequence_length": _distribution(output, TOKENS),
            "input_sequence_length": _distribution(inputs, TOKENS),
            "total_osl": _scalar(float(output.sum()), TOKENS),
            "total_isl": _scalar(float(inputs.sum()), TOKENS),
            "request_count": _scalar(count, REQUEST_UNIT),
            "error_request_count": _scalar(sent - count, REQUEST_UNIT),
            "benchmark_duration": _scalar(duration_s, SECONDS),
        }
        if duration_s:
            rate = f"{TOKENS}/{SECONDS}"
            tokens = float(output.sum())
            metrics |= {
                "request_throughput": _scalar(count / duration_s, f"{REQUEST_UNIT}/{SECONDS}"),
                "output_token_throughput": _scalar(tokens / duration_s, rate),
                "total_token_throughput": _scalar(
                    (float(inputs.sum()) + tokens) / duration_s, rate
                ),
            }
        first_ns = records.first_start + self._to_unix_ns
        totals = self._file.totals
        is_whole = totals is not None and totals.partial is None
        return {
            "schema_version": SCHEMA_VERSION,
            "aiperf_version": AIPERF_VERSION,
            "loadgen": {
                "version": __version__,
                "verdict": verdict,
                "records": str(self._file.path),
            },
            **{name: metric for name, metric in metrics.items() if metric is not None},
            "was_cancelled": not is_whole,
            "is_complete": is_whole,
            "error_summary": self._errors(),
            "start_time": _date(first_ns),
            "end_time": _date(first_ns + round(duration_s * 1e9)),
        }

    def _of_request(self, number: int, place: int) -> Metrics:
        """Return the metrics of a request.

        Args:
            number: Its place among all requests.
            place: Its place among those that succeeded.
        """
        records = self._records
        start, first, last, output = (
            int(column[place])
            for column in (records.start, records.first, records.last, records.output)
        )
        metrics: Metrics = {
            "time_to_first_token": {"value": (first - start) / tool.MS, "unit": MS},
            "request_latency": {"value": (last - start) / tool.MS, "unit": MS},
            "inter_chunk_latency": {"value": self._gaps[number].tolist(), "unit": MS},
        }
        if output >= 0:
            metrics["output_sequence_length"] = {"value": output, "unit": TOKENS}
        if output > 1:
            gap_ms = (last - first) / (output - 1) / tool.MS
            metrics["inter_token_latency"] = {"value": gap_ms, "unit": MS}
        if (prompt := int(self._run.prompt_tokens[number])) >= 0:
            metrics["input_sequence_length"] = {"value": prompt, "unit": TOKENS}
        return metrics

    def _errors(self) -> list[dict[str, Any]]:
        counts = Counter[bytes]()
        for record, is_included in zip(self._file, self._records.included, strict=True):
            if record.sent and not is_included:
                counts[orjson.dumps(_error(record))] += 1
        return [
            {"error_details": orjson.loads(error), "count": count}
            for error, count in counts.most_common()
        ]


def _was_cancelled(record: Record) -> bool:
    """Whether the client ended the request: its user had left, or the run was over."""
    return record.outcome is not None and record.outcome.cause in (Cause.USER, Cause.RUN)


def _error(record: Record) -> dict[str, Any]:
    return {
        "code": record.status or None,
        "type": CANCELLED if _was_cancelled(record) else str(record.outcome),
        "message": record.detail or str(record.outcome),
    }


def _distribution(values: Floats, unit: str) -> dict[str, Any] | None:
    """Return the statistics of a metric; None if no request has it."""
    if not len(values):
        return None
    percentiles = np.percentile(values, PERCENTILES).tolist()
    return {
        "unit": unit,
        "avg": float(values.mean()),
        **{f"p{p}": value for p, value in zip(PERCENTILES, percentiles, strict=True)},
        "min": float(values.min()),
        "max": float(values.max()),
        "std": float(values.std()),
        "count": len(values),
        "sum": float(values.sum()),
    }


def _scalar(value: float, unit: str) -> dict[str, Any]:
    return {"unit": unit, "avg": value}


def _date(unix_ns: int) -> str:
    return datetime.datetime.fromtimestamp(unix_ns / 1e9, datetime.UTC).isoformat()
