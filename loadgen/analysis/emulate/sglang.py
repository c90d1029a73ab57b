"""SGLang's `bench_serving`, version 0.5.23, for chat and completions.

It follows the request functions of /v1/chat/completions and /v1/completions, and `calculate_metrics`, without
speculative decoding.
"""

import math
from functools import partial

import numpy as np

from loadgen.analysis.emulate.bench_script import Answers
from loadgen.analysis.emulate.distribution import Distribution
from loadgen.analysis.emulate.latencies import first_start, latency_row, percentile_rows, starts
from loadgen.analysis.emulate.recorded_run import RecordedRun, event_selection
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import (
    CONNECTING,
    EVENT_IS_TOKEN,
    FORGIVING,
    FROM_SENT,
    N_MINUS_1,
    PLANNED_INPUT,
    RETOKENIZED,
    TOUCHED_SECONDS,
    WHOLE_SECONDS,
    ZERO,
    Rule,
    Rules,
)
from loadgen.analysis.emulate.tool import Tool
from loadgen.core.event_flags import CONTENT, REASONING, TOKENS, USAGE

LAST_LINE = Rule(
    "last_line", "its last line, usage or [DONE], ends the request; loadgen's E2EL ends with the last token"
)
AS_ASKED = Rule(
    "as_asked", "without usage an answer counts with the requested length; loadgen counts the tokens received"
)
IGNORES = Rule("ignores", "tool calls and refusals are not tokens for it; loadgen counts them")
RULES = (
    *(FROM_SENT, CONNECTING, IGNORES, LAST_LINE, AS_ASKED, N_MINUS_1, EVENT_IS_TOKEN, WHOLE_SECONDS),
    *(TOUCHED_SECONDS, FORGIVING, PLANNED_INPUT, ZERO),
)
PERCENTILES = (90.0, 95.0, 99.0)


def _answers(run: RecordedRun, active: Rules) -> Answers:
    if IGNORES in active:
        tokens = event_selection(lambda flags: flags & (CONTENT | REASONING) if run.chat else flags & CONTENT)
    else:
        tokens = event_selection(lambda flags: flags & TOKENS)
    # It does not request usage, so the usage chunk, on which its reader of completions fails, would not be sent.
    lines = event_selection(lambda flags: run.chat or flags != USAGE)
    usage = event_selection(lambda flags: flags & USAGE and (run.chat or flags & CONTENT))
    output = np.where(run.has_event(usage) & (run.completion_tokens >= 0), run.completion_tokens, run.output_tokens)
    ends, start = run.select(lines if LAST_LINE in active else tokens), starts(run, active)
    success = run.complete & run.has_event(lines) & (run.chat | ~run.has_error)
    return Answers(
        run,
        active,
        tokens,
        tokens,
        success=success,
        end=np.where(ends.count > 0, ends.last, start),
        output=output if AS_ASKED in active else run.tokens,
        input=run.input_tokens if PLANNED_INPUT in active else run.prompts,
        begin=first_start(run, active),
    )


def _totals(run: RecordedRun, active: Rules) -> list[Row]:
    settings, answers = run.settings, _answers(run, active)
    completed = float(answers.completed.sum())
    total_in, total_out, input_notes = answers.total_input, answers.total_output, answers.input_notes
    rows = []
    if math.isfinite(settings.request_rate):
        rows.append(Row("Traffic request rate:", settings.request_rate, "request_rate"))
    if settings.max_concurrency is not None:
        rows.append(Row("Max request concurrency:", settings.max_concurrency, "max_concurrency", 0))
    rows += [
        Row("Successful requests:", completed, "completed", 0, notes=answers.count_notes),
        Row("Benchmark duration (s):", answers.duration_s, "duration"),
        Row("Total input tokens:", total_in, "total_input_tokens", 0, notes=input_notes),
        Row("Total input text tokens:", total_in, "total_input_tokens", 0, notes=input_notes),
        Row("Total generated tokens:", total_out, "total_output_tokens", 0),
        Row("Total generated tokens (retokenized):", None, "total_output_tokens", 0, notes=(RETOKENIZED,)),
        Row("Request throughput (req/s):", answers.per_second(completed), "request_throughput"),
        Row("Input token throughput (tok/s):", answers.per_second(total_in), notes=input_notes),
        Row("Output token throughput (tok/s):", answers.per_second(total_out), "output_throughput"),
        Row("Peak output token throughput (tok/s):", answers.peak_tokens, "max_output_tokens_per_s"),
        Row("Peak concurrent requests:", answers.peak_requests, "max_concurrent_requests", 0),
        Row(
            "Total token throughput (tok/s):",
            answers.per_second(total_in, total_out),
            "total_token_throughput",
            notes=input_notes,
        ),
        Row("Concurrency:", answers.per_second(float(answers.e2el.values.sum()) / 1e9)),
    ]
    return rows


def _latency(title: str, metric: str, run: RecordedRun, active: Rules) -> list[Row]:
    values: Distribution = getattr(_answers(run, active), metric)
    rows = percentile_rows(f"{title} (ms)", metric, values, PERCENTILES, active)
    if metric == "itl":
        rows.append(latency_row("Max ITL (ms):", "itl max", values.max, active))
    return rows


LATENCIES = {"E2E Latency": "e2el", "TTFT": "ttft", "TPOT": "tpot", "ITL": "itl"}


SGLANG = Tool(
    "sglang bench_serving 0.5.23",
    RULES,
    (_totals, *(partial(_latency, title, metric) for title, metric in LATENCIES.items())),
    ("without speculative decoding, for which it would have tokenized each chunk of text to divide its gap",),
)
