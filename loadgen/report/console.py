"""The console report: `vllm bench serve`'s block, row for row, then loadgen's own section."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from loadgen.checks.client_error import allowed_ms
from loadgen.checks.distortion import GAPS_ABOVE_50_US, READ_ONE_BY_ONE
from loadgen.checks.workload import ONE_TOKEN_PER_EVENT
from loadgen.config.output import parse_percentiles
from loadgen.core.outcome import Outcome
from loadgen.metrics.failures import Failures
from loadgen.metrics.snapshot import DISTRIBUTIONS, LATENCIES, requests_of
from loadgen.report import server, targets
from loadgen.report.client_lines import of_client
from loadgen.report.distribution import Distribution
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import VLLM_MEANING
from loadgen.report.result.tokens import OVER_SAMPLE, Tokens
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.number_format import UNKNOWN, fixed, four_digits, percent, percentile, plural
from loadgen.util.terminal_text import printable

WIDTH = 50
HEADERS = {
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-token Latency"),
    "e2el": ("E2EL", "End-to-end Latency"),
}
TABLE = {
    "ttft": "TTFT",
    "ttfo": "TTFO",
    "tpot": "TPOT",
    "itl": "ITL",
    "icl": "ICL",
    "e2el": "E2EL",
}
# The checks that find several tokens in one event, or several events sent at once.
BUNDLING = (ONE_TOKEN_PER_EVENT, GAPS_ABOVE_50_US, READ_ONE_BY_ONE)
MET = {True: "met", False: "MISSED", None: "CANNOT TELL at this client error"}
OF_FEW = "* few requests; 99 % confidence interval if requests are independent, in ms"
WAITS = {"lag": "Lag", "pool_wait": "Wait for a slot", "connect": "Connect"}


def render(result: RunResult) -> str:
    """Render the console report of a result, as it was printed when the run ended; nothing in it moves a terminal."""
    settings = result.provenance.settings
    selected, percentiles = settings.percentile_metrics.split(","), parse_percentiles(settings.metric_percentiles)
    rows = [*block(result.numbers.to_dict(), selected, percentiles), *_own(result)]
    return "\n".join(map(printable, rows)) + "\n"


def block(result: Mapping[str, Any], metrics: Sequence[str], percentiles: Sequence[float]) -> Iterator[str]:
    """Write the lines of `vllm bench serve`'s block.

    Args:
        result: The numbers, by `vllm bench serve`'s names.
        metrics: The latencies that are shown: ttft, tpot, itl, e2el.
        percentiles: Those that are shown of each.
    """
    yield f"{' Serving Benchmark Result ':=^{WIDTH}}"
    yield _row("Successful requests:", result["completed"], "")
    yield _row("Failed requests:", result["failed"], "")
    if result["max_concurrency"] is not None:
        yield _row("Maximum request concurrency:", result["max_concurrency"], "")
    if result["request_rate"] != "inf":
        yield _row("Request rate configured (RPS):", result["request_rate"])
    yield _row("Benchmark duration (s):", result["duration"])
    yield _row("Total input tokens:", result["total_input_tokens"], "")
    yield _row("Total generated tokens:", result["total_output_tokens"], "")
    yield _row("Request throughput (req/s):", result["request_throughput"])
    if result["request_goodput"] is not None:
        yield _row("Request goodput (req/s):", result["request_goodput"])
    yield _row("Output token throughput (tok/s):", result["output_throughput"])
    yield _row("Peak output token throughput (tok/s):", result["max_output_tokens_per_s"])
    yield _row("Peak concurrent requests:", result["max_concurrent_requests"])
    yield _row("Total token throughput (tok/s):", result["total_token_throughput"])
    for metric, (name, header) in HEADERS.items():
        if metric in metrics:
            yield f"{header:-^{WIDTH}}"
            yield _row(f"Mean {name} (ms):", result[f"mean_{metric}_ms"])
            yield _row(f"Median {name} (ms):", result[f"median_{metric}_ms"])
            for p in percentiles:
                yield _row(f"{percentile(p).upper()} {name} (ms):", result[f"{percentile(p)}_{metric}_ms"])
    yield "=" * WIDTH


def _row(label: str, value: float | None, form: str = ".2f") -> str:
    return f"{label:<40} {UNKNOWN if value is None else format(value, form):<10}"


def _own(result: RunResult) -> Iterator[str]:
    yield ""
    yield from banners(result)
    yield from _verdict(result)
    yield "Outcomes: " + (", ".join(f"{name} {count}" for name, count in result.outcomes.items()) or "none")
    for name, examples in result.examples.items():
        for example in examples:
            to = f" to {result.targets[example.target].base_url}" if isinstance(example.target, int) else ""
            yield f"  {name}: request {example.index}{to}, {example.phase}: {one_line(example.detail)}"
    yield ""
    yield from _latencies(result)
    yield from _of_few(result)
    yield ""
    yield from targets.table(result)
    for part in (_prompts, of_tokens, of_rates, of_slo, of_client):
        yield from part(result)
    yield from server.lines(result.server)


def banners(result: RunResult) -> Iterator[str]:
    """Write what one is to know before any number."""
    if result.simulated:
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, not a real server."
    if result.insecure:
        yield "INSECURE: the server's TLS certificate was not verified (--insecure)."
    if result.partial:
        yield _partial(result)
    elif result.no_answer_since_s is not None:
        yield f"NO ANSWER since {result.no_answer_since_s:.1f} s: every connection was refused from then on."
    if result.outcomes and not result.outcomes.get("ok"):
        yield "NO REQUEST SUCCEEDED: there are no latencies."
    if failing := not_ok(result):
        yield f"NOT OK: {failing} ({_kinds(result)})."
    if (silent := result.silent_streams).count:
        each = ", ".join(
            f"request {one.index} from {one.since_s:.1f} s on for {one.for_s:.1f} s" for one in silent.examples
        )
        yield f"SILENT STREAMS: {plural(silent.count, 'stream')} had no token for 60 s or more ({each})."
    if result.overloaded:
        yield "OVERLOADED: requests came faster than they were answered."


def not_ok(result: RunResult) -> str | None:
    """Write the share of the requests that failed; None where none did."""
    failures = Failures.among(result.outcomes, result.never_due)
    if not failures.failed:
        return None
    return f"{percent(failures.failed / failures.of, 2)} of {plural(failures.of, 'request')} failed"


def _kinds(result: RunResult) -> str:
    """List the outcomes of the requests that failed."""
    ways = {name: count for name, count in result.outcomes.items() if name not in (Outcome.OK, Outcome.CANCELLED)}
    if result.never_due:
        ways["never sent after a failed turn"] = result.never_due
    return ", ".join(f"{name} {count}" for name, count in ways.items())


def _partial(result: RunResult) -> str:
    """Say why the run ended early, and which requests that cost: those never sent, and those in flight."""
    unsent, in_flight = result.cancelled.never_sent, result.cancelled.in_flight
    lost = [f"{plural(unsent, 'request')} never sent"] if unsent else []
    lost += [f"{in_flight} cancelled in flight"] if in_flight else []
    return f"PARTIAL: {result.partial}{'; ' * bool(lost)}{', '.join(lost)}."


def _verdict(result: RunResult) -> Iterator[str]:
    """Write the verdict, the checks that failed, and the notes."""
    yield f"Verdict: {judgement(result)}"
    for advice, checks in groupby(result.failed_checks, lambda check: check.advice):
        for check in checks:
            yield f"  {check.group} {check.name}: {check.finding}"
        yield f"    -> {advice}"
    if because := explanation(result):
        yield f"  explained by: {because}"
    for check in result.notes:
        yield f"  note: {check.value}"
        yield f"    -> {check.advice}"


def explanation(result: RunResult) -> str:
    """Say what explains the failed checks; empty if nothing does."""
    return ", ".join(f"{check.name} {check.value}" for check in result.explanations)


def judgement(result: RunResult) -> str:
    """Write the verdict. Failed requests come first, since the verdict is on the measurement alone."""
    failing = not_ok(result)
    return f"NOT OK, {failing}; the measurement is {passed(result)}" if failing else passed(result)


def passed(result: RunResult) -> str:
    """Write the verdict, and how many of the checks that apply passed."""
    applied = [check for check in result.checks if check.ok is not None and not check.explains]
    wrong = [check for check in applied if not check.ok]
    notes = len(result.notes)
    noted = f", {notes} {'note' if notes == 1 else 'notes'}" if notes else ""
    error = result.max_client_error_ms
    client = f", client at most {four_digits(error)} ms" if error is not None else ""
    return f"{result.verdict}{client} ({len(applied) - len(wrong)} of {len(applied)} checks passed{noted})"


def _latencies(result: RunResult) -> Iterator[str]:
    columns = statistics(result)
    yield f"{'Latency (ms)':<18}" + "".join(f"{column:>10}" for column in columns)
    intervals: list[str] = []
    for name, title in distributions(result):
        row = _line(title, result.latency_ms.named(name), columns, of_requests(name, result))
        error = client_error(name, result, columns)
        yield f"{row}  ({error})" if error else row
        intervals += interval(name, title, result)
    if intervals:
        yield f"{OF_FEW}: {', '.join(intervals)}"
    yield "ICL: inter-chunk latency, from one event with tokens to the next; vLLM, and the block above, call it ITL"
    yield from _bundles(result)


def _bundles(result: RunResult) -> Iterator[str]:
    """Say why gaps between events are not gaps between tokens, where they are not."""
    tokens = result.tokens
    bundled = tokens.output_tokens - tokens.hidden_tokens > tokens.token_events
    values = {check.name: check.value for check in result.checks if check.ok is False}
    reasons = [values[name] for name in BUNDLING if name in values and (bundled or name != ONE_TOKEN_PER_EVENT)]
    if reasons:
        yield f"  ICL is between groups of tokens here; 1000 / ICL is not the tok/s of a user: {'; '.join(reasons)}"


def statistics(result: RunResult) -> list[str]:
    """List the columns of the table: mean, percentiles, maximum."""
    return ["mean", *result.latency_ms.ttft_due.percentiles_ms, "max"]


def _of_few(result: RunResult) -> Iterator[str]:
    """List the percentiles of vLLM's block that are of too few values: its rows have no place for a mark."""
    settings, few = result.provenance.settings, []
    for metric in settings.percentile_metrics.split(","):
        count = of_requests(VLLM_MEANING[metric], result)
        for p in parse_percentiles(settings.metric_percentiles):
            if 0 < count < least_samples(p):
                few.append(f"{percentile(p).upper()} {HEADERS[metric][0]} (of {count})")
    if few:
        yield f"Too few requests for some percentiles in the block above: {', '.join(few)}"


def distributions(result: RunResult) -> Iterator[tuple[str, str]]:
    """List the rows of the table: the name of each distribution, and its title."""
    clocks = ("due", "sent") if result.latency_from == "due" else ("sent", "due")
    redundant = _redundant(result)
    for metric, title in (TABLE | WAITS).items():
        if metric in redundant:
            continue
        if metric in DISTRIBUTIONS:
            yield metric, title
        else:
            for clock in clocks:
                yield f"{metric}_{clock}", f"{title} from {clock}"


def interval(name: str, title: str, result: RunResult) -> Iterator[str]:
    """Write the interval of the highest marked percentile in a row; of one clock alone, and not of waits."""
    if name.endswith(("_due", "_sent")) and not name.endswith(result.latency_from):
        return
    intervals = result.intervals_ms.named(name)
    marked = [column for column in intervals if mark(column, of_requests(name, result))]
    for column in marked[-1:]:
        match intervals[column]:
            case None, None:
                yield f"{title} {column} unknown"
            case low, None:
                yield f"{title} {column} >= {low:.1f}"
            case None, high:
                yield f"{title} {column} <= {high:.1f}"
            case low, high:
                yield f"{title} {column} {low:.1f} to {high:.1f}"


def _redundant(result: RunResult) -> set[str]:
    """Name the rows that would only repeat another one, or be all zero."""
    tokens = result.tokens
    repeated = {
        "itl": not tokens.imputed_gaps,  # each event brought one token, as far as the server tells
        "ttfo": not tokens.reasoning_events,  # the first token is the first of the answer: TTFT
        "pool_wait": result.numbers.max_concurrency is None or result.closed_loop,
        "connect": not result.client.late_connections,
    }
    return {name for name, is_so in repeated.items() if is_so}


def _line(title: str, distribution: Distribution, columns: list[str], requests: int) -> str:
    line, star = f"{title:<18}", ""
    for column in columns:
        value = distribution.statistic_ms(column)
        line += f"{fixed(value):>{10 - len(star)}}"  # a mark stands in the space before the next column
        star = mark(column, requests)
        line += star
    return line


def client_error(name: str, result: RunResult, statistics: Sequence[str]) -> str:
    """Say how far the client may have moved statistics of a latency, where that is more than the verdict allows."""
    if result.client_error_ms is None or name not in LATENCIES:
        return ""
    values, errors = result.latency_ms.named(name), result.client_error_ms.named(name)
    beyond = [
        f"{four_digits(error)} at {statistic}"
        for statistic in statistics
        if (error := errors.get(statistic)) is not None and error > allowed_ms(values.statistic_ms(statistic) or 0.0)
    ]
    return f"client at most {', '.join(beyond)}" if beyond else ""


def of_requests(name: str, result: RunResult) -> int:
    """Count the requests that the values of a distribution come from."""
    return requests_of(name, lambda each: result.latency_ms.named(each).count)


def mark(column: str, requests: int) -> str:
    """Mark a percentile of too few requests with a star."""
    return "*" if column.startswith("p") and 0 < requests < least_samples(float(column[1:])) else ""


def _prompts(result: RunResult) -> Iterator[str]:
    """Write how many prompts were made, with the hash that `loadgen dataset` shows."""
    prompts = result.provenance.prompts
    which = "of the prompts prepared before the run; more were made during the run" if prompts.further else ""
    yield f"Prompts: {prompts.requests}, SHA-256 {prompts.sha256} {which}".rstrip()
    if prompts.rows_left_out:
        yield f"  rows of the trace without input or output tokens, left out: {prompts.rows_left_out}"


def of_tokens(result: RunResult) -> Iterator[str]:
    """Write what was counted, by what, and how count and stream differ."""
    tokens = result.tokens
    yield f"Output tokens counted by {tokens.output_counted_by}: {tokens.output_tokens}" + (
        f" ({plural(tokens.reasoning_events, 'reasoning event')})" if tokens.reasoning_events else ""
    )
    if tokens.unseen_tokens or tokens.surplus_events:
        yield (
            f"  usage and stream differ: {plural(tokens.unseen_tokens, 'token')} counted but not seen as events, "
            f"{plural(tokens.surplus_events, 'event')} beyond the count"
        )
    yield from _hidden(tokens)
    if tokens.nan_events:
        events = plural(tokens.nan_events, "event")
        yield f"  {events} had NaN or infinity: the model's logits may be broken"
    if tokens.unplanned_requests:
        prompts = plural(tokens.unplanned_requests, "prompt")
        yield f"  {prompts} without a planned length: only the server counted them"
    if tokens.imputed_gaps:
        yield (
            f"  gaps of ITL that are imputed: {tokens.imputed_gaps}, equal parts of the gap before an event "
            f"of several tokens, counted by {tokens.itl_counted_by}"
        )
    if result.tpot_token_weighted_ms is not None:
        yield f"TPOT weighted by tokens: {fixed(result.tpot_token_weighted_ms, unit='ms')}"


def _hidden(tokens: Tokens) -> Iterator[str]:
    """Write how many tokens were counted and never streamed, and what TPOT divides by instead."""
    block = "vLLM's TPOT above divides by all output tokens minus one"  # whatever was streamed
    if tokens.hidden_tokens:
        count = plural(tokens.hidden_tokens, "reasoning token")
        yield f"  {count} never streamed: in throughput, and not in TPOT; {block}"
    if (sample := tokens.text_sample) is not None:
        yield (
            f"  text tokenized after the run: {sample.streamed:g} tokens where {sample.counted:g} were counted "
            f"(medians of {plural(sample.answers, 'answer')}; {sample.difference:g} per answer were not streamed)"
        )
    if tokens.tpot_over == OVER_SAMPLE:
        yield f"  TPOT is over the streamed tokens of these answers alone, as --tokenizer counts them; {block}"


def of_rates(result: RunResult) -> Iterator[str]:
    """Write the rates that vLLM's block does not have."""
    rates = result.rates
    if rates.steady_output_tokens_per_s is not None:
        steady = fixed(rates.steady_output_tokens_per_s, 2, "tok/s")
        yield f"Steady output throughput, without ramp and tail: {steady}"
    if rates.uncached_input_tokens_per_s is not None:
        yield f"Uncached input throughput: {fixed(rates.uncached_input_tokens_per_s, 2, 'tok/s')}"
    if rates.good_share is not None:
        goodput = fixed(rates.goodput_requests_per_s, 2, "req/s")
        yield f"Goodput from {result.latency_from}: {goodput}, {percent(rates.good_share, 2)} of all requests"


def of_slo(result: RunResult) -> Iterator[str]:
    """Write each limit of the SLO, and whether it was met."""
    for row in result.slo:
        is_rate = "_rate" in row.limit
        bare = "" if is_rate or not row.limit[-1:].isdigit() else "ms"  # what a limit without a unit means
        if row.beyond:
            value = str(not_ok(result))
        elif row.value is None:
            value = UNKNOWN
        else:
            value = f"{100 * row.value:.4g}%" if is_rate else four_digits(row.value, "ms")
        if row.met is None:
            value += f", client at most {four_digits(row.client_error_ms, 'ms')}"
        yield f"SLO {row.limit}{bare}: {MET[row.met]} ({value})"


def one_line(text: str) -> str:
    """Put a text of a server on one line of at most 160 characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= 160 else flat[:157] + "..."
