"""`--random-range-ratio` as SGLang and older vLLM mean it: lengths from this share of the length up to it."""

import math
from typing import Any

from loadgen.config.data import FULL_ANSWERS
from loadgen.errors import BadInput

LENGTHS = ("random_input_len", "random_output_len")


def with_length_ranges(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with a range for each length of random prompts, in place of the ratio.

    Raises:
        BadInput: The ratio is not between 0 and 1.
    """
    found = dict(settings)
    ratio = _share(found.pop("random_range_ratio"))
    for name in LENGTHS if found["dataset_name"] in FULL_ANSWERS else ():
        most = found[name]
        if isinstance(most, int):
            least = max(int(most * ratio), 1)
            found[name] = most if least == most else f"{least}:{most}"
    return found


def _share(ratio: float | str) -> float:
    try:
        found = float(ratio)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise BadInput("--random-range-ratio", f"{ratio} is out of range", "give a number from 0 to 1")
    return found
