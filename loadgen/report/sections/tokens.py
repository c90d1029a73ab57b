"""Tokens: their counts, the sources of the counts, rates, and efficiency."""

from collections.abc import Iterator

from loadgen.document import Block, Items, Paragraph, Table
from loadgen.features import structured_output
from loadgen.report.result import RunResult
from loadgen.report.result.rates import SteadyState
from loadgen.report.result.tokens import OVER_SAMPLE, Tokens
from loadgen.report.sections import CLOCKS
from loadgen.util.number_format import fixed, percent, plural

FULL = 0.999  # coverage of the power's readings that needs no remark


def rates(result: RunResult) -> Iterator[str]:
    """Write the answers that are JSON as asked, and the rates that vLLM's block does not have."""
    yield from structured_output.lines(result.structured_output)
    rates = result.rates
    if (state := result.numbers.steady_state) is not None:
        yield _steady_state(state)
    elif rates.steady_output_tokens_per_s is not None:
        steady = fixed(rates.steady_output_tokens_per_s, 2, "tok/s")
        yield f"Steady output throughput, without ramp and tail: {steady}"
    if rates.uncached_input_tokens_per_s is not None:
        yield f"Uncached input throughput: {fixed(rates.uncached_input_tokens_per_s, 2, 'tok/s')}"
    if rates.good_share is not None:
        goodput = fixed(rates.goodput_requests_per_s, 2, "req/s")
        clock = CLOCKS[result.latency_from]
        yield f"Goodput from {clock}: {goodput}, {percent(rates.good_share, 2)} of all requests"


def efficiency(result: RunResult) -> Iterator[str]:
    """Write the speed for a user and per GPU; energy and cost only where they were measured or
    asked for.
    """
    figures = result.efficiency
    if figures is None:
        return
    if figures.output_tokens_per_s_per_user is not None:
        yield (
            f"Interactivity: {fixed(figures.output_tokens_per_s_per_user, 2)} tok/s per user "
            "(1 / median TPOT)"
        )
    if figures.gpus is not None:
        output, total = (
            fixed(figures.output_tokens_per_s_per_gpu, 2),
            fixed(figures.total_tokens_per_s_per_gpu, 2),
        )
        yield f"Per GPU ({plural(figures.gpus, 'GPU')}): {output} output tok/s, {total} total tok/s"
    if figures.energy_j is not None:
        share = figures.energy_coverage or 0.0
        covered = "" if share >= FULL else f", power read in {percent(share)} of the time"
        output, total = (
            fixed(figures.joules_per_output_token, 4),
            fixed(figures.joules_per_token, 4),
        )
        yield (
            f"Energy: {fixed(figures.energy_j, 1)} J; {output} J per output token, {total} J "
            f"per token{covered}"
        )
    if figures.cost_per_million_output_tokens is not None:
        output, total = (
            fixed(figures.cost_per_million_output_tokens, 4),
            fixed(figures.cost_per_million_tokens, 4),
        )
        yield f"Cost: {output} per million output tokens, {total} per million tokens"
    elif result.provenance.settings.gpu_hour_price is not None:
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
    if left_out := result.provenance.saved_prompts.get("rows_left_out"):
        yield f"Rows of the trace without input or output tokens, left out: {left_out}"
    tokens = result.tokens
    if result.generates and not result.streams:
        yield "Each answer came in one piece (--disable-stream): its tokens have no times"
    if tokens.unseen_tokens or tokens.surplus_events:
        yield (
            f"Usage and stream differ: {plural(tokens.unseen_tokens, 'token')} counted but not "
            f"seen as events, {plural(tokens.surplus_events, 'event')} beyond the count"
        )
    if tokens.silent_events:
        yield (
            f"Tokens without text: {plural(tokens.silent_events, 'event')}, as many as usage or "
            "token ids count beyond the text"
        )
    if tokens.disagreeing_counts:
        yield (
            f"{plural(tokens.disagreeing_counts, 'answer')} with prompt and completion tokens "
            f"that do not add up to their total: {tokens.disagreeing_tokens} tokens apart"
        )
    yield from _hidden(tokens)
    if tokens.nan_events:
        events = plural(tokens.nan_events, "event")
        yield f"{events} had NaN or infinity: the model's logits may be broken"
    if tokens.unplanned_requests:
        prompts = plural(tokens.unplanned_requests, "prompt")
        yield f"{prompts} without a planned length: only the server counted them"
    if tokens.imputed_gaps:
        yield (
            f"Gaps of ITL that are imputed: {tokens.imputed_gaps}, equal parts of the gap before "
            f"an event of several tokens, counted by {tokens.itl_counted_by}"
        )
    if result.tpot_token_weighted_ms is not None:
        yield f"TPOT weighted by tokens: {fixed(result.tpot_token_weighted_ms, unit='ms')}"


def _hidden(tokens: Tokens) -> Iterator[str]:
    """Write how many tokens were counted and never streamed, and what TPOT divides by instead."""
    block = (
        "the TPOT of vLLM's block divides by all output tokens minus one"  # whatever was streamed
    )
    if tokens.hidden_tokens:
        count = plural(tokens.hidden_tokens, "reasoning token")
        yield f"{count} never streamed: in throughput, and not in TPOT; {block}"
    if (sample := tokens.text_sample) is not None:
        yield (
            f"Text tokenized after the run: {sample.streamed:g} tokens where {sample.counted:g} "
            f"were counted (medians of {plural(sample.answers, 'answer')}; {sample.difference:g} "
            "per answer were not streamed)"
        )
    if tokens.tpot_over == OVER_SAMPLE:
        yield (
            "TPOT is over the streamed tokens of these answers alone, as --tokenizer counts "
            f"them; {block}"
        )


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
