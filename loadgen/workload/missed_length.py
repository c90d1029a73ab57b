"""Missed lengths: random prompts of a rule that are far longer or shorter than was requested.

Rules of other tools cut a list of tokens to the length, and send its text. Most tokenizers turn
that text into the same tokens again; some turn it into others.
"""

import logging

MAX_MISS = 0.1  # relative: prompts of which a few neighbouring tokens merge are within it
CAUSE = "the tokenizer turns the text of these tokens into other tokens"
REMEDY = (
    "name that of a real model, or send loadgen's own random prompts (no --dataset-rule), "
    "whose lengths are exact"
)

logger = logging.getLogger("loadgen")


def describe_miss(mean: float, low: int, high: int) -> str:
    """Describe how far prompts are from the requested length; empty if they are near it.

    Args:
        mean: Their mean number of tokens.
        low, high: The shortest and the longest prompt that was requested, tokens.
    """
    if low * (1 - MAX_MISS) <= mean <= high * (1 + MAX_MISS):
        return ""
    requested = f"{low}" if low == high else f"{low} to {high}"
    return f"prompts have {mean:.1f} tokens on average where {requested} were requested"


def warn_of_miss(mean: float, low: int, high: int) -> None:
    """Log a warning if prompts are far from the requested length, with cause and remedy."""
    if text := describe_miss(mean, low, high):
        logger.warning("%s: %s; %s", text, CAUSE, REMEDY)
