"""The console report: `vllm bench serve`'s block, row for row, then loadgen's own section."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from loadgen.config.output import parse_percentiles
from loadgen.core.outcome import Outcome
from loadgen.metrics.failures import Failures
from loadgen.metrics.snapshot import requests_of
from loadgen.report import server, targets
from loadgen.report.client_lines import of_client
from loadgen.report.result import OVER_SAMPLE, VLLM_MEANING
from loadgen.report.run_summary import failed, noted, seen
from loadgen.stats.percentile_interval import least_samples
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
PER_EVENT = "one token per event"
BUNDLING = (PER_EVENT, "gaps above 50 us", "events read one by one")
OF_FEW = "* few requests; 99 % confidence interval if requests are independent, in ms"
WAITS = {"lag": "Lag", "pool_wait": "Wait for a slot", "connect": "Connect"}


def render(result: dict[str, Any]) -> str:
    """The whole console report of a result, as it was printed when the run ended; nothing in it moves a terminal."""
    settings = result["loadgen"]["provenance"]["settings"]
    selected, percentiles = settings["percentile_metrics"].split(","), settings["metric_percentiles"]
    rows = [*block(result, selected, parse_percentiles(percentiles)), *_own(result)]
    return "\n".join(map(printable, rows)) + "\n"


def block(result: Mapping[str, Any], metrics: Sequence[str], percentiles: Sequence[float]) -> Iterator[str]:
    """The lines of `vllm bench serve`'s block.

    Args:
        result: Its numbers, by `vllm bench serve`'s names.
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


def _own(result: dict[str, Any]) -> Iterator[str]:
    own = result["loadgen"]
    yield ""
    yield from banners(own)
    yield from _verdict(result)
    yield "Outcomes: " + (", ".join(f"{name} {count}" for name, count in own["outcomes"].items()) or "none")
    for name, examples in own["examples"].items():
        for example in examples:
            to = f" to {own['targets'][example['target']]['base_url']}" if "target" in example else ""
            yield f"  {name}: request {example['index']}{to}, {example['phase']}: {one_line(example['detail'])}"
    yield ""
    yield from _latencies(own)
    yield from _of_few(own)
    yield ""
    yield from targets.table(own)
    for part in (_prompts, of_tokens, of_rates, of_slo, of_client):
        yield from part(own)
    yield from server.lines(own.get("server"))


def banners(own: dict[str, Any]) -> Iterator[str]:
    """What one is to know before any number."""
    if own["simulated"]:
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, no real server."
    if own["insecure"]:
        yield "INSECURE: the server's TLS certificate was not verified (--insecure)."
    if own["partial"]:
        yield _partial(own)
    elif own.get("no_answer_since_s") is not None:  # results of earlier versions do not say
        yield f"NO ANSWER since {own['no_answer_since_s']:.1f} s: every connection was refused from then on."
    if own["outcomes"] and not own["outcomes"].get("ok"):
        yield "NO REQUEST SUCCEEDED: there is no latency to believe or to doubt."
    if failing := not_ok(own):
        yield f"NOT OK: {failing} ({_kinds(own)})."
    if (silent := own.get("silent_streams", {"count": 0}))["count"]:
        each = ", ".join(
            f"request {one['index']} from {one['since_s']:.1f} s on for {one['for_s']:.1f} s"
            for one in silent["examples"]
        )
        yield f"SILENT STREAMS: {plural(silent['count'], 'stream')} had no token for 60 s or more ({each})."
    if own["overloaded"]:
        yield "OVERLOADED: requests came faster than they were answered."


def not_ok(own: Mapping[str, Any]) -> str | None:
    """The share of the requests that failed, in words; None where none did."""
    failures = Failures.among(own["outcomes"], own["never_due"])
    if not failures.failed:
        return None
    return f"{percent(failures.failed / failures.of, 2)} of {plural(failures.of, 'request')} failed"


def _kinds(own: Mapping[str, Any]) -> str:
    """How they failed."""
    ways = {name: count for name, count in own["outcomes"].items() if name not in (Outcome.OK, Outcome.CANCELLED)}
    if own["never_due"]:
        ways["never sent after a failed turn"] = own["never_due"]
    return ", ".join(f"{name} {count}" for name, count in ways.items())


def _partial(own: Mapping[str, Any]) -> str:
    """Why the run ended early, and which requests that cost: those that were never sent, and those in flight."""
    unsent, in_flight = (own.get("cancelled", {}).get(name, 0) for name in ("never_sent", "in_flight"))
    lost = [f"{plural(unsent, 'request')} never sent"] if unsent else []
    lost += [f"{in_flight} cancelled in flight"] if in_flight else []
    return f"PARTIAL: {own['partial']}{'; ' * bool(lost)}{', '.join(lost)}."


def _verdict(result: dict[str, Any]) -> Iterator[str]:
    """What was found wrong, the grave first; then what a reader should bear in mind."""
    yield f"Verdict: {judgement(result['loadgen'])}"
    for advice, checks in groupby(failed(result), lambda check: check["advice"]):
        for check in checks:
            yield f"  {check['group']} {check['name']}: {seen(check)}"
        yield f"    -> {advice}"
    for check in noted(result):
        yield f"  note: {check['value']}"
        yield f"    -> {check['advice']}"


def judgement(own: dict[str, Any]) -> str:
    """The verdict; where requests failed that comes first, since the verdict is on the measurement alone."""
    failing = not_ok(own)
    return f"NOT OK, {failing}; the measurement is {passed(own)}" if failing else passed(own)


def passed(own: dict[str, Any]) -> str:
    """The verdict, and how many of the checks that apply say so."""
    applied = [check for check in own["checks"] if check["ok"] is not None]
    wrong = [check for check in applied if not check["ok"]]
    notes = sum(not check["counts"] for check in wrong)
    noted = f", {notes} {'note' if notes == 1 else 'notes'}" if notes else ""
    return f"{own['verdict']} ({len(applied) - len(wrong)} of {len(applied)} checks passed{noted})"


def _latencies(own: dict[str, Any]) -> Iterator[str]:
    summaries = own["latency_ms"]
    columns = statistics(own)
    yield f"{'Latency (ms)':<18}" + "".join(f"{column:>10}" for column in columns)
    sure: list[str] = []
    for name, title in distributions(own):
        yield _line(title, summaries[name], columns, of_requests(name, own))
        sure += interval(name, title, own)
    if sure:
        yield f"{OF_FEW}: {', '.join(sure)}"
    yield "ICL: inter-chunk latency, from one event with tokens to the next; vLLM, and the block above, call it ITL"
    yield from _bundles(own)


def _bundles(own: dict[str, Any]) -> Iterator[str]:
    """Why gaps between events are not gaps between tokens, where they are not."""
    tokens = own["tokens"]
    bundled = tokens["output_tokens"] - tokens.get("hidden_tokens", 0) > tokens["token_events"]
    values = {check["name"]: check["value"] for check in own["checks"] if check["ok"] is False}
    reasons = [values[name] for name in BUNDLING if name in values and (bundled or name != PER_EVENT)]
    if reasons:
        said = "; ".join(reasons)
        yield f"  ICL is between groups of tokens here; 1000 / ICL is not the tok/s of a user: {said}"


def statistics(own: dict[str, Any]) -> list[str]:
    """The columns of the table: mean, percentiles, maximum."""
    return ["mean", *(name for name in own["latency_ms"]["ttft_due"] if name.startswith("p")), "max"]


def _of_few(own: dict[str, Any]) -> Iterator[str]:
    """Which percentiles of vLLM's block are of too few values: its rows have no place for a mark."""
    settings, few = own["provenance"]["settings"], []
    for metric in settings["percentile_metrics"].split(","):
        count = of_requests(VLLM_MEANING[metric], own)
        for p in parse_percentiles(settings["metric_percentiles"]):
            if 0 < count < least_samples(p):
                few.append(f"{percentile(p).upper()} {HEADERS[metric][0]} (of {count})")
    if few:
        yield f"Of few requests in the block above: {', '.join(few)}"


def distributions(own: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The rows of the table: the name of each distribution, and its title."""
    clocks = ("due", "sent") if own["latency_from"] == "due" else ("sent", "due")
    said = _said_otherwise(own)
    for metric, title in (TABLE | WAITS).items():
        if metric in said:
            continue
        if metric in own["latency_ms"]:
            yield metric, title
        else:
            for clock in clocks:
                yield f"{metric}_{clock}", f"{title} from {clock}"


def interval(name: str, title: str, own: dict[str, Any]) -> Iterator[str]:
    """Where the highest of a row's marked percentiles lies; no more than one clock's, and no wait's."""
    if name.endswith(("_due", "_sent")) and not name.endswith(own["latency_from"]):
        return
    intervals = own["intervals_ms"].get(name, {})
    marked = [column for column in intervals if mark(column, of_requests(name, own))]
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


def _said_otherwise(own: dict[str, Any]) -> set[str]:
    """The rows that would only repeat another one, or say nothing but zero."""
    tokens = own["tokens"]
    repeated = {
        "itl": not tokens["imputed_gaps"],  # each event brought one token, as far as anybody told
        "ttfo": not tokens["reasoning_events"],  # the first token is the first of the answer: TTFT
        "pool_wait": own["provenance"]["settings"]["max_concurrency"] is None or own["closed_loop"],
        "connect": not own["client"]["late_connections"],
    }
    return {name for name, is_so in repeated.items() if is_so}


def _line(title: str, summary: dict[str, float | None], columns: list[str], requests: int) -> str:
    line, star = f"{title:<18}", ""
    for column in columns:
        value = summary[column]
        line += f"{fixed(value):>{10 - len(star)}}"  # a mark stands in the space before the next column
        star = mark(column, requests)
        line += star
    return line


def of_requests(name: str, own: dict[str, Any]) -> int:
    """How many requests the values of a distribution come from."""
    return requests_of(name, lambda each: int(own["latency_ms"][each]["count"]))


def mark(column: str, requests: int) -> str:
    """A star for a percentile of too few requests."""
    return "*" if column.startswith("p") and 0 < requests < least_samples(float(column[1:])) else ""


def _prompts(own: dict[str, Any]) -> Iterator[str]:
    """What was made to be asked, by the same hash as `loadgen dataset` shows."""
    made = own["provenance"]["prompts"]
    which = "of those prepared first, and made on while it ran" if made.get("further") else ""
    yield f"Prompts: {made['requests']}, SHA-256 {made['sha256']} {which}".rstrip()
    if made.get("rows_left_out"):
        yield f"  left out of the trace, for want of tokens asked or answered: {made['rows_left_out']}"


def of_tokens(own: dict[str, Any]) -> Iterator[str]:
    """What was counted, by what, and what of it was not seen."""
    tokens = own["tokens"]
    yield f"Output tokens counted by {tokens['output_counted_by']}: {tokens['output_tokens']}" + (
        f" ({plural(tokens['reasoning_events'], 'reasoning event')})" if tokens["reasoning_events"] else ""
    )
    if tokens["unseen_tokens"] or tokens["surplus_events"]:
        yield (
            f"  usage and stream differ: {plural(tokens['unseen_tokens'], 'token')} counted but not seen as events, "
            f"{plural(tokens['surplus_events'], 'event')} beyond the count"
        )
    yield from _hidden(tokens)
    if tokens.get("nan_events"):
        events = plural(tokens["nan_events"], "event")
        yield f"  {events} had NaN or infinity: the model's logits may be broken"
    if tokens["unplanned_requests"]:
        prompts = plural(tokens["unplanned_requests"], "prompt")
        yield f"  {prompts} without a planned length: only the server counted them"
    if tokens["imputed_gaps"]:
        yield (
            f"  gaps of ITL that are imputed: {tokens['imputed_gaps']}, equal parts of the gap before an event "
            f"of several tokens, counted by {tokens['itl_counted_by']}"
        )
    if own["tpot_token_weighted_ms"] is not None:
        yield f"TPOT weighted by tokens: {fixed(own['tpot_token_weighted_ms'], unit='ms')}"


def _hidden(tokens: dict[str, Any]) -> Iterator[str]:
    """The tokens that were counted and never streamed, and what TPOT divides by instead."""
    block = "vLLM's TPOT above divides by all output tokens minus one"  # whatever was streamed
    if tokens.get("hidden_tokens"):  # results saved before there were any do not have it
        count = plural(tokens["hidden_tokens"], "reasoning token")
        yield f"  {count} never streamed: in throughput, and not in TPOT; {block}"
    sample = tokens.get("text_sample")
    if sample is not None:
        yield (
            f"  text tokenized after the run: {sample['streamed']:g} tokens where {sample['counted']:g} were counted "
            f"(medians of {plural(sample['answers'], 'answer')}; {sample['difference']:g} an answer were not streamed)"
        )
    if tokens.get("tpot_over") == OVER_SAMPLE:
        yield f"  TPOT is over the streamed tokens of these answers alone, as --tokenizer counts them; {block}"


def of_rates(own: dict[str, Any]) -> Iterator[str]:
    """Rates that vLLM's block does not have."""
    rates = own["rates"]
    if rates["steady_output_tokens_per_s"] is not None:
        steady = fixed(rates["steady_output_tokens_per_s"], 2, "tok/s")
        yield f"Steady output throughput, ramp and tail left out: {steady}"
    if rates["uncached_input_tokens_per_s"] is not None:
        yield f"Uncached input throughput: {fixed(rates['uncached_input_tokens_per_s'], 2, 'tok/s')}"
    if rates["good_share"] is not None:
        goodput = fixed(rates["goodput_requests_per_s"], 2, "req/s")
        yield f"Goodput from {own['latency_from']}: {goodput}, {percent(rates['good_share'], 2)} of all requests"


def of_slo(own: dict[str, Any]) -> Iterator[str]:
    """Each limit of the SLO, and whether it was met."""
    for row in own["slo"]:
        is_rate = "_rate" in row["limit"]
        bare = "" if is_rate or not row["limit"][-1:].isdigit() else "ms"  # what a limit without a unit means
        if row.get("beyond"):  # results of earlier versions do not say
            value = str(not_ok(own))
        elif row["value"] is None:
            value = UNKNOWN
        else:
            value = f"{100 * row['value']:.4g}%" if is_rate else four_digits(row["value"], "ms")
        yield f"SLO {row['limit']}{bare}: {'met' if row['met'] else 'MISSED'} ({value})"


def one_line(text: str) -> str:
    """A text of a server on one line, and no longer than that may be."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= 160 else flat[:157] + "..."
