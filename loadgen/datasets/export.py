"""Export: prompts as JSON lines, which the data set `jsonl` sends again as they are."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from loadgen.datasets.rows import line
from loadgen.errors import BadInput
from loadgen.prompts import Prompt


def exported(prompts: Iterable[Prompt], file: BinaryIO) -> Iterator[Prompt]:
    """Hand prompts on, each once its row has been written to `file`.

    Raises:
        BadInput: One follows another: a row has no place for that.
    """
    for prompt in prompts:
        if prompt.follows:
            problem = "rows have no place for sessions"
            raise BadInput("--export", problem, "leave out --turns, or send the data set itself")
        file.write(line(prompt))
        yield prompt
