"""Export: prompts as JSON lines, which the data set `jsonl` sends again as they are."""

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import orjson

from loadgen.prompts import Prompt


def to_line(prompt: Prompt) -> bytes:
    """The row of a prompt: `id`, `prompt` (its text) or `messages` (of a chat), `input_tokens`, `output_tokens`."""
    asked: dict[str, Any] = {"messages": prompt.messages} if prompt.messages else {"prompt": prompt.text}
    tokens = {"input_tokens": prompt.input_tokens, "output_tokens": prompt.output_tokens}
    return orjson.dumps({"id": prompt.source} | asked | tokens) + b"\n"


def exported(prompts: Iterable[Prompt], file: BinaryIO) -> Iterator[Prompt]:
    """Hand prompts on, each once its row has been written to `file`."""
    for prompt in prompts:
        file.write(to_line(prompt))
        yield prompt
