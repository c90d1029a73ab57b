"""Causes: what can make requests slow, as data: how each shows, what is said of it, and what to do.

The catalogue has no rule of its own; `diagnosis` says how much of the time is each cause's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, convert

from loadgen.util.files import table_rows

Side = Literal["client", "way", "server"]


class Cause(Struct, frozen=True, array_like=True):
    """One cause.

    Attributes:
        name: Its name in the JSON.
        side: Where it is.
        rests_on: What it needs: counts alone, an estimate of parts, or the cost of the engine's
            steps.
        shows: How it shows in the records, for the documentation.
        sentence: What is said of it; {ms} is its time.
        advice: What to do; {max_seqs} and the like are knobs, as the engine spells them.
    """

    name: str
    side: Side
    rests_on: Literal["counts", "parts", "steps"]
    shows: str
    sentence: str
    advice: str


# How knobs are called where the engine is not known.
KNOBS = {
    "max_seqs": "the limit of running requests",
    "max_batched_tokens": "the tokens of a step",
    "memory_fraction": "the memory of the KV cache",
}
CAUSES = {row[0]: convert(row, Cause) for row in table_rows(Path(__file__).with_suffix(".txt"))}


def advice(cause: Cause, knobs: Mapping[str, str]) -> str:
    """Write what to do.

    Args:
        cause: The cause.
        knobs: The engine's own names of knobs.
    """
    return cause.advice.format(**KNOBS | {name: knobs[name] for name in KNOBS if name in knobs})
