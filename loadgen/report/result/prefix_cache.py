"""PrefixCache: the state of the server's prefix cache that was asked for, and what it gave back."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from msgspec import Struct

from loadgen.checks import prefix_cache
from loadgen.config.load import WARM, CacheProtocol
from loadgen.metrics.run_data import RunData


class PrefixCache(Struct, frozen=True, kw_only=True):
    """The server's prefix cache: its state when the clock started, and how much of the input it gave back."""

    protocol: Annotated[
        CacheProtocol, "The state that --cache asked for; `server_calls` has the calls that emptied a cold one."
    ]
    salt: Annotated[str | None, "What the first words of the prompts depend on; null: they have no salt."]
    warm_requests: Annotated[int | None, "Requests that were to warm it up, to each server; null: none."]
    warmed: Annotated[int | None, "Requests that warmed it up, of all servers; null: none were to."]
    warmed_by: Annotated[Literal["prefix", "prompt"] | None, "What each of these requests sent; null: there were none."]
    block_size: Annotated[int | None, "Tokens of a block of the cache; null: unknown."]
    block_size_from: Annotated[str | None, "Where that is from: a flag, a metric, or the default."]
    best_hit_rate: Annotated[
        float | None,
        "Share of the input that a cache could give back which keeps all it has seen of the run, 0 to 1; null: "
        "unknown.",
    ]
    unpredicted_share: Annotated[
        float | None,
        "Share of the input that the server counted beyond the prediction, and that `best_hit_rate` does not "
        "cover: a chat template that is unknown here; null: there is no prediction, or not all requests succeeded.",
    ]
    best_unknown: Annotated[str | None, "Why that is unknown; null: it is known."]
    hit_rate: Annotated[
        float | None, "Share of the input that the server says it took from the cache, 0 to 1; null: unknown."
    ]
    hit_rate_from: Annotated[prefix_cache.Source | None, "Where the server says so; null: nowhere."]

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Take what was done, planned and found in a run."""
        prompts, settings = run.header.provenance["prompts"], run.settings
        known, best = prompts.get("prefix_cache", {}), prefix_cache.BestHits.of(prompts)
        rate, source = prefix_cache.hit_rate(run) or (None, None)
        unknown = known.get("unknown", "no --cache was given, and the server's metrics do not describe a cache")
        if "further" in prompts:
            unknown = "prompts were made while the run went on"
        return cls(
            protocol=settings.cache,
            salt=prompts.get("salt"),
            warm_requests=known.get("warm_requests"),
            warmed=sum(worker.cache_warmed for worker in run.workers) if settings.cache == WARM else None,
            warmed_by=known.get("warmed_by"),
            block_size=known.get("block_size"),
            block_size_from=known.get("block_size_from"),
            best_hit_rate=None if best is None else best.rate,
            unpredicted_share=None
            if best is None or best.requests != run.snapshot.ok
            else best.unpredicted(run.snapshot.counters["input_tokens"]),
            best_unknown=unknown if best is None else None,
            hit_rate=rate,
            hit_rate_from=source,
        )
