"""Sums of what is counted by name: outcomes, finish reasons, what no rule took of answers, and
facts of features.
"""

from collections.abc import Mapping
from typing import Any

from loadgen.core.answer import unread_name


def add_unread(
    counts: dict[str, tuple[int, str]], further: Mapping[str, tuple[int, str]]
) -> dict[str, tuple[int, str]]:
    """Add up what no rule took.

    Args:
        counts: By its name: how often it came, and an example.
        further: The same of further answers.
    """
    total = dict(counts)
    for name, (count, sample) in further.items():
        key = unread_name(name, total)
        before, first = total.get(key, (0, sample))
        total[key] = (before + count, first)
    return total


def add_counts(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    """Add up counts by name."""
    return {name: a.get(name, 0) + b.get(name, 0) for name in sorted(a.keys() | b.keys())}


def add_facts(facts: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Add up facts by name: add numbers, join lists, and add up facts within them."""
    total = dict(facts)
    for name, fact in further.items():
        before = total.get(name, type(fact)())
        total[name] = add_facts(before, fact) if isinstance(fact, dict) else before + fact
    return total
