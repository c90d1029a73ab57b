"""Export: prompts as JSON lines, which the data set `jsonl` sends again as they are."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from loadgen.errors import BadInput
from loadgen.workload.datasets.prompt_rows import line
from loadgen.workload.prompt import Prompt


def exported(prompts: Iterable[Prompt], file: BinaryIO) -> Iterator[Prompt]:
    """Hand prompts on, each once its row has been written to `file`.

    Raises:
        BadInput: One follows another, or has a due time: a row has no place for that.
    """
    for prompt in prompts:
        if prompt.follows or prompt.due_ns is not None:
            what = "sessions" if prompt.follows else "due times"
            raise BadInput("--export", f"rows have no place for {what}", "send the data set itself")
        file.write(line(prompt))
        yield prompt
