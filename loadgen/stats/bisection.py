"""Bisection: where a condition ceases to hold."""

from collections.abc import Callable


def end_of(
    holds: Callable[[float], bool],  # whether the condition holds at a value above 0
    precision: float,  # how far above the end the result may lie, as a share of it
) -> float:
    """Return where a condition ends that holds from 0 on."""
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, 2 * high
    while high - low > precision * high:
        middle = (low + high) / 2
        if middle in (low, high):  # there is no number between them
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high
