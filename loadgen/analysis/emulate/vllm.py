"""`vllm bench serve`: versions 0.11, 0.32 and 0.33, for chat and completions.

By its request functions of /v1/chat/completions and /v1/completions, and `calculate_metrics`.
"""

import math
from functools import partial

import numpy as np

from loadgen.analysis.emulate.bench_script import Answers
from loadgen.analysis.emulate.latencies import first_start, percentile_rows, starts
from loadgen.analysis.emulate.recorded_run import Bools, Run, which
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import (
    CONNECTING,
    EVENT_IS_TOKEN,
    FORGIVING,
    FROM_SENT,
    N_MINUS_1,
    PLANNED_INPUT,
    TOUCHED_SECONDS,
    WHOLE_SECONDS,
    ZERO,
    Rule,
    Rules,
)
from loadgen.analysis.emulate.tool import Tool
from loadgen.config import slo
from loadgen.config.output import parse_percentiles
from loadgen.core.event_flags import CHOICE, CONTENT, DONE, EMPTY, OLD_REASONING, REASONING, ROLE, TOKENS, TOOL, USAGE
from loadgen.util.arrays import Int64s

IGNORES = Rule(
    "ignores",
    "thoughts that come as `reasoning_content` are no tokens to it, nor are refusals (thoughts that come under "
    "`reasoning` too would be: the records do not tell those from others); loadgen counts them",
)
ROLE_CHUNK = Rule(
    "role", "the chunk that names the role counts as a token; loadgen takes a chunk without text for none"
)
TOKENLESS = Rule(
    "tokenless", "chunks without text (the finish reason, empty ones) count as tokens; to loadgen they are none"
)
USAGE_ENDS = Rule("usage_ends", "the chunk of usage ends the request; loadgen's E2EL ends with the last token")
CLOCK_START = Rule(
    "clock_start", "its duration starts when the first request is waited for; loadgen's when the first is sent"
)
RULES = (
    *(FROM_SENT, CONNECTING, IGNORES, ROLE_CHUNK, TOKENLESS, USAGE_ENDS, N_MINUS_1, EVENT_IS_TOKEN),
    *(WHOLE_SECONDS, TOUCHED_SECONDS, FORGIVING, PLANNED_INPUT, CLOCK_START, ZERO),
)
NOT_DONE = which(lambda says: not says & DONE)


def _is_token(version: int, chat: bool, says: int) -> bool:
    """Whether an event starts TTFT, and begins and ends gaps."""
    if not says & CHOICE:
        return False
    if version < 33 or not chat:
        return True
    thought = says & REASONING and not says & OLD_REASONING
    return bool(says & (CONTENT | TOOL) or thought or (says & EMPTY and not says & ROLE))


def _tokens(version: int, run: Run, on: Rules) -> bytes:
    """The events that count as tokens while these rules hold."""

    def counts(says: int) -> bool:
        if says & TOKENS:
            return IGNORES not in on or _is_token(version, run.chat, says)
        return _is_token(version, run.chat, says) and (ROLE_CHUNK if says & ROLE else TOKENLESS) in on

    return which(counts)


def _answers(version: int, run: Run, on: Rules) -> Answers:
    tokens = _tokens(version, run, on)
    marks = NOT_DONE if version < 32 and run.chat and USAGE_ENDS in on else tokens
    start, ends = starts(run, on), run.chosen(marks)
    output, read = _output(version, run)
    return Answers(
        run,
        on,
        tokens,
        marks,
        success=run.whole if version < 32 and run.chat else run.whole & run.any(tokens),
        end=np.where(ends.count > 0, ends.last, start),
        output=output,
        input=_input(version, run, on, read),
        begin=run.start_ns if CLOCK_START in on else first_start(run, ()),
    )


def _output(version: int, run: Run) -> tuple[Int64s, Bools]:
    """Output tokens, -1 where it would have counted the text, and whether it read the usage that came last.

    It looks for usage only in events that it takes for no token.
    """
    told = run.chosen(which(lambda says: says & USAGE)).last
    read_at = run.chosen(which(lambda says: says & USAGE and not _is_token(version, run.chat, says))).last
    read = (read_at > 0) & (read_at == told)
    return np.where(read & (run.completion_tokens > 0), run.completion_tokens, -1), read


def _input(version: int, run: Run, on: Rules, read: Bools) -> Int64s:
    if PLANNED_INPUT not in on:
        return run.prompts
    told = read & (run.prompt_tokens >= 0) & (version >= 32)
    return np.where(told, run.prompt_tokens, run.input_tokens)


def _totals(version: int, run: Run, on: Rules) -> list[Row]:
    settings, answers = run.settings, _answers(version, run, on)
    completed = float(answers.completed.sum())
    rows = [Row("Successful requests:", completed, "completed", 0, notes=answers.counting)]
    if version >= 32:
        rows.append(Row("Failed requests:", answers.failed, "failed", 0, notes=answers.counting))
    if settings.max_concurrency is not None:
        rows.append(Row("Maximum request concurrency:", settings.max_concurrency, "max_concurrency", 0))
    if math.isfinite(settings.request_rate):
        rows.append(Row("Request rate configured (RPS):", settings.request_rate, "request_rate"))
    total_in, total_out = answers.total_input, answers.total_output
    lacking, uncounted = answers.unplanned, answers.uncounted
    rows += [
        Row("Benchmark duration (s):", answers.duration_s, "duration"),
        Row("Total input tokens:", total_in, "total_input_tokens", 0, notes=lacking),
        Row("Total generated tokens:", total_out, "total_output_tokens", 0, notes=uncounted),
        Row("Request throughput (req/s):", answers.per_second(completed), "request_throughput"),
    ]
    if settings.goodput:
        rows.append(Row("Request goodput (req/s):", _goodput(answers), "request_goodput", notes=uncounted))
    rows += [
        Row("Output token throughput (tok/s):", answers.per_second(total_out), "output_throughput", notes=uncounted),
    ]
    return rows


def _peaks(version: int, run: Run, on: Rules) -> list[Row]:
    answers = _answers(version, run, on)
    return [
        Row("Peak output token throughput (tok/s):", answers.peak_tokens, "max_output_tokens_per_s"),
        Row("Peak concurrent requests:", answers.peak_requests, "max_concurrent_requests"),
    ]


def _all_tokens(version: int, run: Run, on: Rules) -> list[Row]:
    answers = _answers(version, run, on)
    label = "Total Token throughput (tok/s):" if version < 32 else "Total token throughput (tok/s):"
    value = answers.per_second(answers.total_input, answers.total_output)
    return [Row(label, value, "total_token_throughput", notes=answers.unplanned + answers.uncounted)]


def _latency(metric: str, version: int, run: Run, on: Rules) -> list[Row]:
    settings = run.settings
    if metric not in settings.percentile_metrics.split(","):
        return []
    answers, ps = _answers(version, run, on), parse_percentiles(settings.metric_percentiles)
    notes = answers.uncounted if metric == "tpot" else ()
    return percentile_rows(f"{metric.upper()} (ms)", metric, getattr(answers, metric), ps, on, notes=notes)


def _goodput(answers: Answers) -> float | None:
    """Requests per second that meet every limit; a TPOT that there is none of is 0."""
    if answers.uncounted:
        return None
    tpot = answers.tpot_ns
    measured = {
        "ttft": answers.first - answers.start,
        "tpot": np.where(np.isnan(tpot), 0, tpot),
        "e2el": answers.end - answers.start,
    }
    good = answers.completed
    for metric, limit_ns in slo.parse_goodput(answers.run.settings.goodput).items():
        good = good & (measured[metric] <= limit_ns)
    return answers.per_second(float(good.sum()))


def _tool(version: int) -> Tool:
    totals = (partial(_totals, version), partial(_peaks, version), partial(_all_tokens, version))
    latencies = (partial(_latency, metric, version) for metric in ("ttft", "tpot", "itl", "e2el"))
    return Tool(f"vllm bench serve 0.{version}", RULES, (*totals, *latencies))


V11, V32, V33 = map(_tool, (11, 32, 33))
