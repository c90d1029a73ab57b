"""`vllm bench serve`: versions 0.11, 0.32 and 0.33, and its Rust client, for chat and completions.

It follows the request functions of /v1/chat/completions and /v1/completions, and
`calculate_metrics`. The Rust client is followed by what it printed of known streams.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from loadgen.config import slo
from loadgen.config.output import parse_percentiles
from loadgen.core.event_flags import (
    CHOICE,
    CONTENT,
    DONE,
    EMPTY,
    OLD_REASONING,
    REASONING,
    ROLE,
    TOKENS,
    TOOL,
    USAGE,
)
from loadgen.lab.tools.emulate import tool
from loadgen.lab.tools.emulate.bench_script import Answers
from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.recorded_run import Bools, event_selection
from loadgen.metrics import throughput
from loadgen.util.arrays import Int64s

IGNORES = tool.rule("vllm.ignores")
ROLE_CHUNK = tool.rule("role")
TOKENLESS = tool.rule("tokenless")
USAGE_ENDS = tool.rule("usage_ends")
CLOCK_START = tool.rule("clock_start")
AS_CHUNKS = tool.rule("as_chunks")
RULES = (
    *(
        tool.FROM_SENT,
        tool.CONNECTING,
        IGNORES,
        ROLE_CHUNK,
        TOKENLESS,
        USAGE_ENDS,
        AS_CHUNKS,
        tool.N_MINUS_1,
    ),
    *(
        tool.EVENT_IS_TOKEN,
        tool.WHOLE_SECONDS,
        tool.TOUCHED_SECONDS,
        tool.FORGIVING,
        tool.PLANNED_INPUT,
        CLOCK_START,
        tool.ZERO,
    ),
)
STEADY = tool.rule("steady")
RUST_PREMISES = (
    "for streams without comments, such as `: ping`: it loses all that follows one that arrives "
    "alone",
)
STEADY_SHARE = 0.95  # --steady-state-threshold
NOT_DONE = event_selection(lambda flags: flags & DONE == 0)
USAGES = event_selection(lambda flags: flags & USAGE)


@dataclass(frozen=True)
class Client:
    """A client that prints this console.

    Attributes:
        version: Minor version of vLLM.
        rust: Whether it is the one in Rust.
    """

    version: int
    rust: bool = False

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"vllm{'-rs' if self.rust else ''} bench serve 0.{self.version}"

    def is_token(self, chat: bool, flags: Int64s) -> Bools:
        """Tell which events count as tokens: they may end TTFT, and begin and end gaps."""
        has_choice: Bools = flags & CHOICE != 0
        if self.version < 33 or self.rust or not chat:
            return has_choice
        answers: Bools = flags & (CONTENT | TOOL) != 0
        thinks: Bools = flags & (REASONING | OLD_REASONING) == REASONING
        is_empty: Bools = flags & (EMPTY | ROLE) == EMPTY
        return has_choice & (answers | thinks | is_empty)

    def percentiles(self, text: str) -> list[float]:
        """Return the percentiles it prints for `--metric-percentiles`: the one in Rust adds p90."""
        ps = parse_percentiles(text)
        return [*ps, 90.0] if self.rust and 90.0 not in ps else ps

    def tokens(self, view: tool.View) -> bytes:
        """Return the selection of events that count as tokens with the active rules."""
        chat = view.run.chat
        active = view.active

        def counts(flags: Int64s) -> Bools:
            is_token = self.is_token(chat, flags)
            has_tokens: Bools = flags & TOKENS != 0
            counted = has_tokens & is_token if IGNORES in active else has_tokens
            for rule, role in ((ROLE_CHUNK, ROLE), (TOKENLESS, 0)):
                chunks = is_token & ~has_tokens & (flags & ROLE == role)
                if chunks.any() and rule in active:
                    counted = counted | chunks
            return counted

        return event_selection(counts)


def _answers(client: Client, view: tool.View) -> Answers:
    run = view.run
    active = view.active
    tokens = client.tokens(view)
    usage_ends = client.version < 32 and run.chat  # any chunk ends a request
    marks = NOT_DONE if usage_ends and USAGE_ENDS in active else tokens
    start = view.starts
    ends = run.select(marks)
    output, read = _output(client, view)
    prompts = run.prompts
    if tool.PLANNED_INPUT in active:
        counted = read & (run.prompt_tokens >= 0) & (client.version >= 32 and not client.rust)
        prompts = np.where(counted, run.prompt_tokens, run.input_tokens)
    return Answers(
        run,
        active,
        tokens,
        marks,
        # The others fail a request that has no token.
        success=run.complete if client.rust or usage_ends else run.complete & run.has_event(tokens),
        end=np.where(ends.count > 0, ends.last, start),
        output=output,
        input=prompts,
        begin=run.start_ns if CLOCK_START in active else tool.View(run, ()).first_start,
    )


def _output(client: Client, view: tool.View) -> tuple[Int64s, Bools]:
    """Return output tokens, -1 if it would have tokenized the text, and whether it read the last
    usage.

    The clients in Python read usage only from events that are not tokens.
    """
    run = view.run
    usage_at = run.select(USAGES).last
    if client.rust:
        received = run.select(client.tokens(view)).count
        unsaid = np.maximum(received, 1) if AS_CHUNKS in view.active else run.tokens
        return np.where(run.completion_tokens > 0, run.completion_tokens, unsaid), usage_at > 0
    read_at = run.select(
        event_selection(lambda flags: (flags & USAGE != 0) & ~client.is_token(run.chat, flags))
    ).last
    read = (read_at > 0) & (read_at == usage_at)
    return np.where(read & (run.completion_tokens > 0), run.completion_tokens, -1), read


def _totals(client: Client, view: tool.View) -> list[tool.Row]:
    settings = view.run.settings
    answers = _answers(client, view)
    completed = float(answers.completed.sum())
    count_notes = answers.notes_on_counts(answers.completed)
    rows = [tool.vllm_row("completed", completed, count_notes)]
    if client.version >= 32:
        rows.append(tool.vllm_row("failed", answers.failed, count_notes))
    if settings.max_concurrency is not None:
        rows.append(tool.vllm_row("max_concurrency", settings.max_concurrency))
    if math.isfinite(settings.request_rate):
        rows.append(tool.vllm_row("request_rate", settings.request_rate))
    total_in, input_notes = answers.token_sum(answers.input, tool.UNPLANNED)
    total_out, output_notes = answers.token_sum(answers.output, tool.RETOKENIZED)
    rows += [
        tool.vllm_row("duration", answers.duration_s),
        tool.vllm_row("total_input_tokens", total_in, input_notes),
        tool.vllm_row("total_output_tokens", total_out, output_notes),
        tool.vllm_row("request_throughput", answers.per_second(completed)),
    ]
    if settings.goodput:
        rows.append(tool.vllm_row("request_goodput", _goodput(answers), output_notes))
    output = answers.per_second(total_out)
    return [*rows, tool.vllm_row("output_throughput", output, output_notes)]


def _peaks_and_all_tokens(client: Client, view: tool.View) -> list[tool.Row]:
    answers = _answers(client, view)
    label = "Total Token throughput (tok/s):" if client.version < 32 else ""
    total_in, input_notes = answers.token_sum(answers.input, tool.UNPLANNED)
    total_out, output_notes = answers.token_sum(answers.output, tool.RETOKENIZED)
    all_tokens = answers.per_second(total_in, total_out)
    notes = input_notes + output_notes
    return [
        tool.vllm_row("max_output_tokens_per_s", answers.peak_tokens),
        tool.vllm_row("max_concurrent_requests", answers.peak_requests),
        tool.vllm_row("total_token_throughput", all_tokens, notes, label),
    ]


def _latency(metric: str, client: Client, view: tool.View) -> list[tool.Row]:
    settings = view.run.settings
    if metric not in settings.percentile_metrics.split(","):
        return []
    answers = _answers(client, view)
    ps = client.percentiles(settings.metric_percentiles)
    notes = answers.token_sum(answers.output, tool.RETOKENIZED).notes if metric == "tpot" else ()
    return view.percentile_rows(
        f"{metric.upper()} (ms)", metric, getattr(answers, metric), ps, notes=notes
    )


def _goodput(answers: Answers) -> float | None:
    """Return requests per second that meet every limit; a missing TPOT counts as 0."""
    if answers.token_sum(answers.output, tool.RETOKENIZED).notes:
        return None
    tpot = answers.tpot_ns
    measured = {
        "ttft": answers.first - answers.starts,
        "tpot": np.where(np.isnan(tpot), 0, tpot),
        "e2el": answers.end - answers.starts,
    }
    good = answers.completed
    for metric, limit_ns in slo.parse_goodput(answers.run.settings.goodput).items():
        good = good & (measured[metric] <= limit_ns)
    return answers.per_second(float(good.sum()))


def _steady(client: Client, view: tool.View) -> list[tool.Row]:
    """Return the rows of its steady state, which it prints of closed loops that reach it;
    loadgen has none.
    """
    run = view.run
    limit = run.settings.max_concurrency
    if not client.rust or limit is None or math.isfinite(run.settings.request_rate):
        return []
    answers = _answers(client, view)
    completed = answers.completed
    start = answers.starts
    end = answers.end
    window = throughput.at_least_in_flight(
        start[completed], end[completed], math.ceil(STEADY_SHARE * limit)
    )
    if window is None:
        return []

    def inside(at: Int64s) -> Bools:
        return (at >= window[0]) & (at < window[1])

    began = completed & inside(start)
    selected = run.select(answers.tokens)
    tokens = float(inside(selected.at[np.repeat(completed, selected.count)]).sum())
    prompts = float(answers.input[began].sum())
    seconds = (window[1] - window[0]) / 1e9
    unknown = (tool.UNPLANNED,) if (answers.input[began] < 0).any() else ()
    rates = {
        "Request throughput (req/s):": float((completed & inside(end)).sum()),
        "Output token throughput (tok/s):": tokens,
        "Input token throughput (tok/s):": None if unknown else prompts,
        "Total token throughput (tok/s):": None if unknown else tokens + prompts,
    }
    rows = [
        tool.Row(label, None if total is None else total / seconds, notes=unknown)
        for label, total in rates.items()
    ]
    percentiles = client.percentiles(run.settings.metric_percentiles)
    for metric, ps in (("ttft", percentiles), ("tpot", [90.0, 99.0])):
        values = (answers.first - start).astype(np.float64) if metric == "ttft" else answers.tpot_ns
        measured = values[began & ~np.isnan(values)]
        rows += view.percentile_rows(f"{metric.upper()} (ms)", metric, Distribution(measured), ps)
    return [
        replace(row, label=f"SS {row.label}", ours=None, notes=(STEADY, *row.notes)) for row in rows
    ]


def _tool(client: Client) -> tool.Tool:
    totals = (partial(_totals, client), partial(_peaks_and_all_tokens, client))
    latencies = (partial(_latency, metric, client) for metric in ("ttft", "tpot", "itl", "e2el"))
    premises = RUST_PREMISES if client.rust else ()
    return tool.Tool(client.title, RULES, (*totals, *latencies, partial(_steady, client)), premises)


V11, V32, V33, RUST = map(_tool, (Client(11), Client(32), Client(33), Client(33, rust=True)))
