"""Caching: what a server took from its prefix cache, beside what the prompts of the run allow.

A part of group E.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from msgspec import Struct

from loadgen.checks.check import Bound, Check, inapplicable
from loadgen.config.load import AS_IS, COLD, SALTED, WARM
from loadgen.metrics.run_data import RunData
from loadgen.util.number_format import SHARE, in_percent

Source = Literal["usage", "server metrics"]
NAME = "prefix cache not as asked"
# of the input: less may be tokens of a chat template, or prompts that begin alike by chance
MIN_SHARE = 0.05
MIN_WARM = 0.5  # of what could be found: below it, most of what was sent before had been lost
ADVICE = (
    "the server knew these prompts from an earlier run: give --cache cold or salted, or "
    "another --seed"
)
ADVICE_BY_PROTOCOL = {
    COLD: "the server has not emptied all of its cache, or other clients send the same prompts: "
    "restart it",
    SALTED: "the server found what no earlier run can have left: see whether its count of cached "
    "tokens is right",
    WARM: "the cache is off or too small, or the requests came to other servers: see the server's "
    "settings",
}


class BestHits(Struct, frozen=True):
    """What a prefix cache could give back at best, if it kept all that it has seen of a run.

    Attributes:
        requests: How many prompts there are.
        tokens: Tokens of all prompts, as predicted.
        shared_tokens: Those of them that could be found.
    """

    requests: int
    tokens: int
    shared_tokens: int

    @classmethod
    def of(cls, prompts: Mapping[str, Any]) -> Self | None:
        """Read it from what is known of the prompts of a run; None if it is unknown."""
        plan = prompts.get("prefix_cache", {})
        if not plan.get("tokens") or "further" in prompts:
            return None
        return cls(prompts["requests"], plan["tokens"], plan["shared_tokens"])

    @property
    def rate(self) -> float:
        """The share of the predicted tokens, 0 to 1."""
        return self.shared_tokens / self.tokens

    def unpredicted(self, input_tokens: int) -> float:
        """The share of the input that a server counted beyond the prediction: a chat template that
        is unknown here.

        Args:
            input_tokens: Input tokens of all requests.
        """
        return max(0.0, 1 - self.tokens / input_tokens) if input_tokens else 0.0

    def allowed(self, input_tokens: int) -> float:
        """The share of the input that could be found, and what is unpredicted, which all
        requests may share.
        """
        unpredicted = self.unpredicted(input_tokens)
        return self.rate * (1 - unpredicted) + unpredicted


def unexplained(tokens: Mapping[str, int], prompts: Mapping[str, Any]) -> float:
    """The share of the input that the server had cached beyond what the prompts allow; 0 where it
    is unknown.

    Args:
        tokens: The sums of a run, by the names of `snapshot.TOKENS`.
        prompts: What is known of its prompts.
    """
    best, input_tokens = BestHits.of(prompts), tokens["input_tokens"]
    if best is None or not input_tokens or tokens["cached_counted"] != best.requests:
        return 0.0
    share = tokens["cached_tokens"] / input_tokens - best.allowed(input_tokens)
    return share if share >= MIN_SHARE else 0.0


def hit_rate(run: RunData) -> tuple[float, Source] | None:
    """The share of the input that the server says it took from its prefix cache, and where it
    says so; or None.
    """
    counters, telemetry = run.snapshot.counters, run.telemetry
    if counters["cached_counted"] and counters["input_tokens"]:
        return counters["cached_tokens"] / counters["input_tokens"], "usage"
    rate = telemetry.prefix_hit_rate if telemetry.covers and not telemetry.restarts else None
    return None if rate is None else (rate, "server metrics")


def as_asked(run: RunData) -> Iterator[Check]:
    """Check that the cache was in the state that --cache asks for; nothing where it asks for
    none.
    """
    protocol = run.settings.cache
    if protocol == AS_IS:
        return
    best, hits = BestHits.of(run.header.provenance["prompts"]), hit_rate(run)
    warmed = sum(worker.cache_warmed for worker in run.workers)
    plan = run.header.provenance["prompts"].get("prefix_cache", {})
    to_warm = int(plan.get("warm_requests", 0)) * max(1, len(run.settings.urls))  # of all targets
    if warmed < to_warm:
        about = f"of {to_warm} requests that were to warm the cache up succeeded"
        advice = "see why the server refuses them: ask for fewer at a time"
        yield Bound(to_warm, comparison=">=").check(NAME, warmed, about, advice)
    elif best is None:
        yield inapplicable(NAME, "it is unknown what the prompts have in common")
    elif hits is None:
        yield inapplicable(NAME, "the server does not say what it took from its cache")
    elif run.snapshot.partial is not None:
        yield inapplicable(NAME, "not all prompts were sent")
    elif run.snapshot.ok != best.requests:
        yield inapplicable(
            NAME, "not all requests succeeded, and it is known only what all prompts have in common"
        )
    else:
        yield _compared(run, best, *hits)


def _compared(run: RunData, best: BestHits, rate: float, source: Source) -> Check:
    protocol, allowed = run.settings.cache, best.allowed(run.snapshot.counters["input_tokens"])
    why = f"({in_percent(MIN_SHARE)} more than the {in_percent(allowed)} at best)"
    bound = Bound(allowed + MIN_SHARE, SHARE, "<", why)
    if protocol == WARM:
        why = f"({in_percent(MIN_WARM)} of the {in_percent(best.rate)} at best)"
        bound = Bound(MIN_WARM * best.rate, SHARE, ">=", why)
    about = f"of the input from the cache, by {source}, with --cache {protocol}"
    return bound.check(NAME, rate, about, ADVICE_BY_PROTOCOL[protocol])
