"""The form of `--lora-assignment`: how requests are shared among LoRA adapters."""

import re

from loadgen.errors import BadInput

FLAG, MODULES = "--lora-assignment", "--lora-modules"
RANDOM, IN_TURN, SKEWED = "random", "round-robin", "skewed"
REMEDY = f"write {RANDOM}, {IN_TURN}, or {SKEWED}:ALPHA with ALPHA above 1"


def parse_skew(assignment: str | None) -> float | None:
    """Return how many times as many requests an adapter gets on average as the next one; None: each in turn.

    Args:
        assignment: The text; None: random.

    Raises:
        BadInput: The text is not an assignment.
    """
    if assignment == IN_TURN:
        return None
    if assignment in (None, RANDOM):
        return 1.0
    name, _, alpha = assignment.partition(":")
    if name != SKEWED or not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", alpha, re.ASCII) or float(alpha) <= 1:
        raise BadInput(FLAG, f"invalid assignment {assignment!r}", REMEDY)
    return float(alpha)
