"""Usage: where servers write the counts of an answer's tokens, and by which names."""

from typing import Any

from loadgen.core.json_fields import count_of, object_of

# The keys of each count, the first of which counts: those of chat completions; those of Responses,
# which mlx writes in chat, too; those of DeepSeek and Kimi. A dot leads into an object.
KEYS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
    "cached_tokens": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
    ),
    "reasoning_tokens": (
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
    ),
    "total_tokens": ("total_tokens",),
}
LENIENT = ("reasoning_tokens",)  # one of another type is none


def find(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the usage object of an event: its own, that of a choice (Kimi), or that of `x_groq`;
    None: it has none.

    Raises:
        ValueError: It is no object.
    """
    if event.get("usage") is not None:
        return object_of(event, "usage")
    choices = event.get("choices")
    holders = [event.get("x_groq"), *(choices if isinstance(choices, list) else ())]
    for holder in holders:
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
            return object_of(holder, "usage")
    return None


def counts(usage: dict[str, Any]) -> dict[str, int]:
    """Return the counts of a usage object by the names of a `Delta`; -1: it does not say.

    Raises:
        ValueError: One of them is of a type that the API does not have.
    """
    return {name: _first(usage, name, paths) for name, paths in KEYS.items()}


def _first(usage: dict[str, Any], name: str, paths: tuple[str, ...]) -> int:
    for path in paths:
        *inner, key = path.split(".")
        try:
            holder = object_of(usage, inner[0]) if inner else usage
            count = count_of(holder, key)
        except ValueError:
            if name in LENIENT:
                continue
            raise
        if count >= 0:
            return count
    return -1
