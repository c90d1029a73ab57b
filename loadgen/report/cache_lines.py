"""Cache lines: the prefix cache of the server in a run, as lines of a report."""

from collections.abc import Iterator

from loadgen.config.load import AS_IS, COLD, SALTED
from loadgen.report.result import RunResult
from loadgen.report.result.prefix_cache import PrefixCache
from loadgen.util.number_format import percent, plural


def lines(result: RunResult) -> Iterator[str]:
    """Write what was done to the cache, what it gave back, and what it could; nothing where none of it is known."""
    cache = result.prefix_cache
    if cache is None or (cache.protocol == AS_IS and cache.hit_rate is None):
        return
    found = "the server does not say what it found there"
    if cache.hit_rate is not None:
        found = f"{percent(cache.hit_rate, 1)} of the input came from it, by {cache.hit_rate_from}"
    yield f"Prefix cache: {_state(cache)}; {found}; {_best(cache)}"


def _state(cache: PrefixCache) -> str:
    if cache.protocol == AS_IS:
        return "as it was"
    if cache.protocol == COLD:
        return "cold, emptied before the clock started"
    if cache.protocol == SALTED:
        return f"salted ({cache.salt})"
    each = {"prefix": "distinct prefixes", "prompt": "distinct prompts"}[cache.warmed_by or "prompt"]
    return f"warm, {cache.warm_requests or 0} {each} sent before, {plural(cache.warmed or 0, 'request')} ok"


def _best(cache: PrefixCache) -> str:
    if cache.best_hit_rate is None:
        return f"at best: unknown, since {cache.best_unknown}"
    size = plural(cache.block_size or 0, "token")
    template = ""
    if cache.unpredicted_share:
        template = f", without the {percent(cache.unpredicted_share, 1)} of the input that its chat template added"
    return f"at best: {percent(cache.best_hit_rate, 1)} in blocks of {size} ({cache.block_size_from}){template}"
