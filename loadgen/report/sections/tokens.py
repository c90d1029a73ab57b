"""Tokens: their counts, the sources of the counts, rates, and efficiency."""

from collections.abc import Iterator

from loadgen.document import Block, Items, Paragraph, Table
from loadgen.features import structured_output
from loadgen.report.result import RunResult
from loadgen.report.result.rates import SteadyState
from loadgen.report.result.tokens import OVER_SAMPLE
from loadgen.report.sections import CLOCKS, said, some
from loadgen.util.number_format import fixed, percent, plural

FULL = 0.999  # coverage of the power's readings that needs no remark
# Whatever was streamed.
BLOCK = "the TPOT of vLLM's block divides by all output tokens minus one"


def rates(result: RunResult) -> Iterator[str]:
    """Write the answers that are JSON as asked, and the rates that vLLM's block does not have."""
    yield from structured_output.lines(result.structured_output)
    rates, state = result.rates, result.numbers.steady_state
    if state is not None:
        yield _steady_state(state)
    else:
        steady = rates.steady_output_tokens_per_s
        yield from said("Steady output throughput, without ramp and tail: {:.2f} tok/s", steady)
    yield from said("Uncached input throughput: {:.2f} tok/s", rates.uncached_input_tokens_per_s)
    goodput = "Goodput from {}: {:.2f} req/s, {:.2%} of all requests"
    clock = CLOCKS[result.latency_from]
    yield from said(goodput, clock, rates.goodput_requests_per_s, rates.good_share)


def efficiency(result: RunResult) -> Iterator[str]:
    """Write the speed for a user and per GPU; energy and cost only where they were measured or
    asked for.
    """
    figures = result.efficiency
    if figures is None:
        return
    speed = "Interactivity: {:.2f} tok/s per user (1 / median TPOT)"
    yield from said(speed, figures.output_tokens_per_s_per_user)
    yield from said(
        "Per GPU ({}): {:.2f} output tok/s, {:.2f} total tok/s",
        some(figures.gpus, "GPU"),
        figures.output_tokens_per_s_per_gpu,
        figures.total_tokens_per_s_per_gpu,
    )
    share = figures.energy_coverage or 0.0
    yield from said(
        "Energy: {:.1f} J; {:.4f} J per output token, {:.4f} J per token{}",
        figures.energy_j,
        figures.joules_per_output_token,
        figures.joules_per_token,
        "" if share >= FULL else f", power read in {percent(share)} of the time",
    )
    cost = figures.cost_per_million_output_tokens
    yield from said(
        "Cost: {:.4f} per million output tokens, {:.4f} per million tokens",
        cost,
        figures.cost_per_million_tokens,
    )
    if cost is None and result.provenance.settings.gpu_hour_price is not None:
        yield "Cost: not known, since the number of GPUs is not; give --gpus"


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the tokens that were planned, counted and streamed, how they differ, the rates and
    the efficiency; nothing is counted of a run in which no request succeeded.
    """
    if not result.numbers.completed:
        yield Paragraph.of("No request succeeded.")
        return
    tokens = result.tokens
    settings, cached = result.provenance.settings, tokens.cached_tokens
    requested = None if settings.no_max_tokens else tokens.planned_output_tokens
    output = {
        "output, as it was requested": requested,
        f"output, counted by {tokens.output_counted_by}": tokens.output_tokens,
        "of that, events of reasoning": tokens.reasoning_events or None,
        "events with tokens": tokens.token_events,
        "events with tokens of failed requests, not counted above": tokens.lost_token_events
        or None,
    }
    rows = {
        "input, as the data set planned it": tokens.planned_input_tokens,
        "input, as the server was expected to count it": tokens.predicted_server_input_tokens,
        "input, as it was counted": None if tokens.unknown_input else tokens.input_tokens,
        "of that, from the server's prefix cache": cached if tokens.cached_counted else None,
        **(output if result.generates else {"embeddings or scores": tokens.results}),
    }
    shown = ((what, f"{count}") for what, count in rows.items() if count is not None)
    yield Table.of(("of requests that are ok", "tokens"), shown, text_columns=1)
    if notes := [*_count_differences(result), *rates(result), *efficiency(result)]:
        yield Items.of(notes)


def _count_differences(result: RunResult) -> Iterator[str]:
    """Write what was left out, how count and stream differ, and what TPOT is over all tokens."""
    left_out = result.provenance.saved_prompts.get("rows_left_out") or None
    yield from said("Rows of the trace without input or output tokens, left out: {}", left_out)
    tokens = result.tokens
    if result.generates and not result.streams:
        yield "Each answer came in one piece (--disable-stream): its tokens have no times"
    if tokens.unseen_tokens or tokens.surplus_events:
        yield (
            f"Usage and stream differ: {plural(tokens.unseen_tokens, 'token')} counted but not "
            f"seen as events, {plural(tokens.surplus_events, 'event')} beyond the count"
        )
    yield from said(
        "Tokens without text: {}, as many as usage or token ids count beyond the text",
        some(tokens.silent_events, "event"),
    )
    yield from said(
        "{} with prompt and completion tokens that do not add up to their total: {} tokens apart",
        some(tokens.disagreeing_counts, "answer"),
        tokens.disagreeing_tokens,
    )
    yield from said(
        "{} never streamed: in throughput, and not in TPOT; {}",
        some(tokens.hidden_tokens, "reasoning token"),
        BLOCK,
    )
    if (sample := tokens.text_sample) is not None:
        yield (
            f"Text tokenized after the run: {sample.streamed:g} tokens where {sample.counted:g} "
            f"were counted (medians of {plural(sample.answers, 'answer')}; {sample.difference:g} "
            "per answer were not streamed)"
        )
    if tokens.tpot_over == OVER_SAMPLE:
        yield (
            "TPOT is over the streamed tokens of these answers alone, as --tokenizer counts "
            f"them; {BLOCK}"
        )
    broken = "{} had NaN or infinity: the model's logits may be broken"
    yield from said(broken, some(tokens.nan_events, "event"))
    unplanned = "{} without a planned length: only the server counted them"
    yield from said(unplanned, some(tokens.unplanned_requests, "prompt"))
    yield from said(
        "Gaps of ITL that are imputed: {}, equal parts of the gap before an event of several "
        "tokens, counted by {}",
        tokens.imputed_gaps or None,
        tokens.itl_counted_by,
    )
    yield from said("TPOT weighted by tokens: {:.3f} ms", result.tpot_token_weighted_ms)


def _steady_state(state: SteadyState) -> str:
    """Write the throughput and the latencies while nearly all slots were in use, and what speaks
    against them.
    """
    window = state.window
    throughput = fixed(state.output_throughput, 2, "tok/s")
    slots = f"{window.threshold_abs} or more of {window.target_concurrency} in flight"
    warning = f", {window.warning}" if window.warning else ""
    medians = (
        ("TTFT", state.median_ttft_ms),
        ("TPOT", state.median_tpot_ms),
        ("E2EL", state.median_e2el_ms),
    )
    latencies = ", ".join(
        f"{name} {fixed(value, 2)}" for name, value in medians if value is not None
    )
    line = (
        f"Steady-state output throughput: {throughput} ({slots}, {window.duration_s:.1f} "
        f"s{warning})"
    )
    return f"{line}; medians in ms: {latencies}" if latencies else line
