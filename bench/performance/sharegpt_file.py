"""ShareGPT file: one as big as the published one and of its shape, made up, because no package
ships the whole.
"""

import json
import random
from pathlib import Path

PUBLISHED_BYTES = 673_000_000
DISTINCT = 4000  # conversations drawn; a file repeats them under other ids
TURNS = (1, 2, 2, 4, 6, 8, 10, 12)
# Lognormal: medians of 100 and 200, with long tails.
QUESTION_WORDS, ANSWER_WORDS = ((4.6, 1.0), (5.3, 1.0))
COMMON = """
    the of and to in is that it for on with as was are be this have from or one had by word but not what all were we
    when your can said there use an each which she do how their if will up other about out many then them these so some
    her would make like him into time has look two more write go see number no way could people my than first water been
    call who its now find long down day did get come made may part over new sound take only little work
"""  # noqa: E501
VOCABULARY = COMMON.split()


def write(path: Path, size: int = PUBLISHED_BYTES) -> int:
    """Write a file of `size` bytes, a little more, and return how many conversations it holds;
    always the same one.
    """
    draw = random.Random(0)
    distinct = [
        json.dumps(_conversation(draw), indent=2, ensure_ascii=False) for _ in range(DISTINCT)
    ]
    written, count = 0, 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            written += file.write(",\n" if count else "[\n")
            written += file.write(
                distinct[count % DISTINCT].replace('"id": ""', f'"id": "made_{count}"', 1)
            )
            count += 1
        file.write("\n]")
    return count


def _conversation(draw: random.Random) -> dict[str, object]:
    turns = [
        {"from": "gpt", "value": _text(draw, *ANSWER_WORDS)}
        if at % 2
        else {"from": "human", "value": _text(draw, *QUESTION_WORDS)}
        for at in range(draw.choice(TURNS))
    ]
    return {"id": "", "conversations": turns}


def _text(draw: random.Random, mean: float, deviation: float) -> str:
    words = draw.choices(VOCABULARY, k=1 + int(draw.lognormvariate(mean, deviation)))
    return " ".join(words) + '.\n\nIt says: "[{}]"'
