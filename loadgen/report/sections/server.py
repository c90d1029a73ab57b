"""Server: its prefix cache, and what servers and GPUs reported, with what was measured."""

from collections.abc import Iterator
from statistics import fmean
from urllib.parse import urlsplit

from loadgen.config.load import AS_IS, COLD, SALTED
from loadgen.core.server_times import ASKED
from loadgen.document import Block, Items, Paragraph, Table
from loadgen.report.result import RunResult
from loadgen.report.result.server import GpuLevels, MetricsSource, PrefixCache, ServerMetrics
from loadgen.report.sections import outcomes, said, some
from loadgen.util.number_format import UNKNOWN, in_table, percent, plural

HEADINGS = ("server", "loadgen")
NO_METRICS = (
    "No server metrics: --server-metrics was off, or the server has no metrics that are known."
)
UNKNOWN_METRICS = "Server metrics are unknown: the run was killed before its end."


def table(result: RunResult, metrics: ServerMetrics) -> list[tuple[str, str, str]]:
    """List what the server reported, with what loadgen measured of the same; without what the
    server does not report.

    Returns:
        Rows of a name, the value of the server, and that of loadgen; the last is empty if only the
        server knows it.
    """
    ttft, counts, levels, tokens = metrics.ttft_ms, metrics.counts, metrics.levels, result.tokens
    rows: list[tuple[str, str, str]] = []
    if ttft is not None:
        theirs, ours = ttft.server, ttft.ours
        rows.append(("TTFT mean, ms from sent", in_table(theirs.mean), in_table(ours.mean)))
        rows.append(("TTFT p50, ms from sent", _bucket(theirs.p50), in_table(ours.p50)))
        rows.append(("TTFT p99, ms from sent", _bucket(theirs.p99), in_table(ours.p99)))
    if (means := metrics.means_ms) and means.front is not None:
        rows += [
            ("of this mean: between loadgen and it", "", in_table(means.path)),
            ("its front end", in_table(means.front), ""),
            ("its queue", in_table(means.queue), ""),
            ("computing the prompt", in_table(means.prefill), ""),
        ]
    ended = sum(result.outcomes.values()) - result.cancelled.never_sent - result.never_due
    ended -= result.departures.never_sent if result.departures else 0
    unit = "requests"
    if tokens.results > result.numbers.completed:  # a server counts each input as a request
        unit, ended = "inputs", tokens.results
    output = counts.generation_tokens if result.generates else None
    for what, count, measured in (
        (f"{unit} ended", counts.requests, ended),
        ("requests aborted", counts.aborted or None, outcomes.users_left(result)),
        ("input tokens", counts.prompt_tokens, tokens.input_tokens),
        ("output tokens", output, tokens.output_tokens),
        ("preemptions", counts.preemptions, None),
    ):
        if count is not None:
            rows.append((what, f"{count:.0f}", "" if measured is None else f"{measured}"))
    for what, level, form in (
        ("requests running, mean", levels.running, "{:.1f}"),
        ("requests waiting, mean", levels.waiting, "{:.1f}"),
        ("KV cache in use, mean", levels.kv_usage, "{:.1%}"),
    ):
        if level.mean is not None:
            rows.append((what, f"{form.format(level.mean)} (max {form.format(level.max)})", ""))
    for what, share in (
        ("prompt tokens from the prefix cache", metrics.prefix_hit_rate),
        ("drafted tokens accepted", metrics.spec_acceptance),
    ):
        if share is not None:
            rows.append((what, percent(share, 1), ""))
    return rows


def cache_lines(result: RunResult) -> Iterator[str]:
    """Write what was done to the cache, what it gave back, and what it could; nothing where none
    of it is known.
    """
    cache = result.prefix_cache
    if cache is None or (cache.protocol == AS_IS and cache.hit_rate is None):
        return
    hits = "the server does not say what it found there"
    if cache.hit_rate is not None:
        hits = f"{percent(cache.hit_rate, 1)} of the input came from it, by {cache.hit_rate_from}"
    yield f"Prefix cache: {_cache_state(cache)}; {hits}; {_best_hits(cache)}"


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the prefix cache, the calls, then the metrics of the server, or that there are none."""
    if notes := [*cache_lines(result), *_other_notes(result)]:
        yield Items.of(notes)
    metrics = result.server
    if metrics is None:
        yield Paragraph.of(NO_METRICS if result.client.wall_s is not None else UNKNOWN_METRICS)
        return
    if metrics.missing:
        others = "the metrics of the other servers do not cover the whole run"
        yield Paragraph.of(f"No server metrics from {', '.join(metrics.missing)}: {others}.")
    if metrics.sources:
        yield Paragraph.of(_heading(metrics.sources))
        yield Table.of(("", *HEADINGS), table(result, metrics), text_columns=1)
    if metrics.gpus:
        yield Paragraph.of(_gpu_summary(metrics.gpu_levels))


def _other_notes(result: RunResult) -> Iterator[str]:
    """Write the calls beside the load that succeeded, how often the key was renewed, and who said
    times of the server's.
    """
    paths: dict[str, dict[str, None]] = {}
    for call in result.server_calls:
        if call.error is None:
            paths.setdefault(call.moment, {})[urlsplit(call.url).path] = None
    calls = [f"{' and '.join(names)} {moment} the run" for moment, names in paths.items()]
    yield from said("Calls to the server: {}", ", ".join(calls) or None)
    yield from said("API key: renewed {} during the run", some(result.key_renewals, "time"))
    for by, count in result.server_times.items():
        cost = "; this costs it CPU time" if by in ASKED else ""
        yield f"Times of the server: said by {by} of {plural(count, 'request')}{cost}"


def _heading(sources: list[MetricsSource]) -> str:
    """Name the sources, and how often they were scraped."""
    scrapes = sum(len(source.failed) for source in sources)
    failed = sum(why is not None for source in sources for why in source.failed)
    where = sources[0].url if len(sources) == 1 else f"{len(sources)} sources"
    wrong = f", {failed} failed" if failed else ""
    return f"Server metrics ({where}; {plural(scrapes, 'scrape')}{wrong}):"


def _bucket(ends: list[float | None] | None) -> str:
    """Write a percentile of which only the bucket is known."""
    match ends:
        case [low, None]:
            return f"above {low:.0f}"
        case [low, high]:
            return f"{low:g} to {high:g}"
    return UNKNOWN


def _gpu_summary(levels: list[GpuLevels]) -> str:
    """Sum up the GPUs in a line."""
    parts = list[str]()
    for text, summary, values in (
        ("{:.0f} W on average", sum, [gpu.power_w.mean for gpu in levels]),
        ("{:.0%} busy", fmean, [gpu.busy_share.mean for gpu in levels]),
        ("{:.0f} MHz", fmean, [gpu.sm_clock_mhz.mean for gpu in levels]),
        (
            "{:.1f} GB in use",
            sum,
            [gpu.memory_bytes.max and gpu.memory_bytes.max / 1e9 for gpu in levels],
        ),
    ):
        if known := [value for value in values if value is not None]:
            parts.append(text.format(summary(known)))
    return f"GPUs ({len(levels)}): {', '.join(parts) or UNKNOWN}"


def _cache_state(cache: PrefixCache) -> str:
    if cache.protocol == AS_IS:
        return "as it was"
    if cache.protocol == COLD:
        return "cold, emptied before the clock started"
    if cache.protocol == SALTED:
        return f"salted ({cache.salt})"
    prompts = "prefixes" if cache.warmed_by == "prefix" else "prompts"
    ok = plural(cache.warmed or 0, "request")
    return f"warm, {cache.warm_requests or 0} distinct {prompts} sent before, {ok} ok"


def _best_hits(cache: PrefixCache) -> str:
    if cache.best_hit_rate is None:
        return f"at best: unknown, since {cache.best_unknown}"
    blocks = f"blocks of {plural(cache.block_size or 0, 'token')} ({cache.block_size_from})"
    best = f"at best: {percent(cache.best_hit_rate, 1)} in {blocks}"
    if not cache.unpredicted_share:
        return best
    added = percent(cache.unpredicted_share, 1)
    return f"{best}, without the {added} of the input that its chat template added"
