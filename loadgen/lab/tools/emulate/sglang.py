"""SGLang's `bench_serving`, version 0.5.23, for chat, completions, and its own /generate.

It follows the request functions of /v1/chat/completions, /v1/completions and /generate, and
`calculate_metrics`, without speculative decoding.
"""

import math
from functools import partial

import numpy as np

from loadgen.config.output import SGLANG_PERCENTILES
from loadgen.core.event_flags import CONTENT, REASONING, TOKENS, USAGE
from loadgen.lab.tools.emulate import tool
from loadgen.lab.tools.emulate.bench_script import Answers
from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.recorded_run import event_selection
from loadgen.report.tool_block import (
    SGLANG_CAP,
    SGLANG_LATENCIES,
    SGLANG_MAX_ITL,
    SGLANG_RATE,
    SGLANG_TOTALS,
)

LAST_LINE = tool.rule("last_line")
AS_ASKED = tool.rule("as_asked")
IGNORES = tool.rule("sglang.ignores")
RULES = (
    *(tool.FROM_SENT, tool.CONNECTING, IGNORES, LAST_LINE, AS_ASKED, tool.N_MINUS_1),
    *(tool.EVENT_IS_TOKEN, tool.SPREAD, tool.WHOLE_SECONDS, tool.TOUCHED_SECONDS),
    *(tool.FORGIVING, tool.PLANNED_INPUT, tool.ZERO),
)


def _answers(view: tool.View) -> Answers:
    run = view.run
    active = view.active
    if IGNORES in active:
        tokens = event_selection(
            lambda flags: flags & (CONTENT | REASONING) if run.chat else flags & CONTENT
        )
    else:
        tokens = event_selection(lambda flags: flags & TOKENS)
    # It does not request usage, so the usage chunk, on which its reader of completions fails, would
    # not be sent.
    lines = event_selection(lambda flags: (flags != USAGE) | run.chat | run.native)
    usage = event_selection(
        lambda flags: (flags & USAGE != 0) & ((flags & CONTENT != 0) | run.chat)
    )
    output = np.where(
        run.has_event(usage) & (run.completion_tokens >= 0),
        run.completion_tokens,
        run.output_tokens,
    )
    ends = run.select(lines if LAST_LINE in active else tokens)
    start = view.starts
    success = run.complete & run.has_event(lines) & (run.chat | run.native | ~run.has_error)
    return Answers(
        run,
        active,
        tokens,
        tokens,
        success=success,
        end=np.where(ends.count > 0, ends.last, start),
        output=output if AS_ASKED in active else run.tokens,
        input=run.input_tokens if tool.PLANNED_INPUT in active else run.prompts,
        begin=view.first_start,
        divides=run.native,
    )


def _totals(view: tool.View) -> list[tool.Row]:
    settings = view.run.settings
    answers = _answers(view)
    completed = float(answers.completed.sum())
    total_in, input_notes = answers.token_sum(answers.input, tool.UNPLANNED)
    total_out, _ = answers.token_sum(answers.output, tool.RETOKENIZED)
    rate = settings.request_rate
    traffic = tool.Row(SGLANG_RATE, rate, "request_rate") if math.isfinite(rate) else None
    cap = (
        tool.Row(SGLANG_CAP, settings.max_concurrency, "max_concurrency", 0)
        if settings.max_concurrency is not None
        else None
    )
    totals = [
        _total("completed", completed, answers.notes_on_counts(answers.completed)),
        _total("duration", answers.duration_s),
        _total("total_input_tokens", total_in, input_notes),
        _total("total_input_text_tokens", total_in, input_notes, ours="total_input_tokens"),
        _total("total_output_tokens", total_out),
        _total(
            "total_output_tokens_retokenized", None, (tool.RETOKENIZED,), ours="total_output_tokens"
        ),
        _total("request_throughput", answers.per_second(completed)),
        _total("input_throughput", answers.per_second(total_in), input_notes, ours=None),
        _total("output_throughput", answers.per_second(total_out)),
        _total("max_output_tokens_per_s", answers.peak_tokens),
        _total("max_concurrent_requests", answers.peak_requests),
        _total(
            "total_throughput",
            answers.per_second(total_in, total_out),
            input_notes,
            ours="total_token_throughput",
        ),
        _total(
            "concurrency", answers.per_second(float(answers.e2el.values.sum()) / 1e9), ours=None
        ),
    ]
    return [row for row in (traffic, cap, *totals) if row is not None]


def _total(
    key: str, value: float | None, notes: tuple[tool.Rule, ...] = (), *, ours: str | None = ""
) -> tool.Row:
    """Return the row of a number above the latencies.

    Args:
        key: The key of the number in SGLang's result.
        value: The number; None if it cannot be known.
        notes: Remarks on it.
        ours: The name of loadgen's number; empty: the same; None: there is none.
    """
    label, digits = SGLANG_TOTALS[key]
    return tool.Row(label, value, key if ours == "" else ours, digits, notes=notes)


def _latency(metric: str, view: tool.View) -> list[tool.Row]:
    name = "e2el" if metric == "e2e_latency" else metric
    values: Distribution = getattr(_answers(view), name)
    rows = view.percentile_rows(
        f"{SGLANG_LATENCIES[metric][0]} (ms)", name, values, SGLANG_PERCENTILES
    )
    if metric == "itl":
        rows.append(view.latency_row(SGLANG_MAX_ITL, "itl max", values.max))
    return rows


SGLANG = tool.Tool(
    "sglang bench_serving 0.5.23",
    RULES,
    (_totals, *(partial(_latency, metric) for metric in SGLANG_LATENCIES)),
    (
        "without speculative decoding, for which it would have tokenized each chunk of text to "
        "divide its gap",
    ),
    native=True,
)
