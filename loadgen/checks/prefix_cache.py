"""Caching: input that a server took from its prefix cache though the run has sent nothing like it before."""

from collections.abc import Mapping
from typing import Any

MIN_SHARE = 0.05  # of the input: less may be tokens of a chat template, or prompts that begin alike by chance
# Data sets of which it is known what their prompts share: `prefix_tokens` each, or nothing.
KNOWN = ("random", "prefix_repetition", "prose", "sharegpt")
ADVICE = "the server knew these prompts from an earlier run: restart it, or give another --seed"


def unexplained(tokens: Mapping[str, int], prompts: Mapping[str, Any]) -> float:
    """The share of the input that the server had cached beyond what shared prefixes explain; 0 where it is unknown.

    Args:
        tokens: The sums of a run, by the names of `snapshot.TOKENS`.
        prompts: What is known of its prompts, which are distinct.
    """
    if prompts.get("name") not in KNOWN or "turns" in prompts or not tokens["input_tokens"]:
        return 0.0
    # What the server counts beyond the prompts is its chat template, which all requests share.
    beside = max(0, tokens["input_tokens"] - tokens["planned_input_tokens"])
    shared = tokens["cached_counted"] * int(prompts.get("prefix_tokens", 0)) + beside
    share = (tokens["cached_tokens"] - shared) / tokens["input_tokens"]
    return share if share >= MIN_SHARE else 0.0
