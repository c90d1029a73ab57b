"""The form of `--random-range-ratio`: how far lengths of random prompts and answers are from their mean."""

import json

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_share

FLAG = "--random-range-ratio"
REMEDY = 'give a number from 0 to below 1, or {"input": r, "output": r}'


def parse_ratios(text: str) -> tuple[float, float]:
    """Parse `--random-range-ratio`, and return the ratios of prompts and answers.

    Raises:
        BadInput: It is neither a number nor an object with exactly `input` and `output`, or a ratio is not in [0, 1).
    """
    try:
        given = json.loads(text) if text.lstrip().startswith("{") else {"input": text, "output": text}
        ratios = {key: parse_share(str(ratio)) for key, ratio in given.items()}
    except (ValueError, TypeError) as error:
        raise BadInput(FLAG, f"invalid ratio {text!r}", REMEDY) from error
    if ratios.keys() != {"input", "output"} or not all(0 <= ratio < 1 for ratio in ratios.values()):
        raise BadInput(FLAG, f"{text} is not in range", REMEDY)
    return ratios["input"], ratios["output"]
