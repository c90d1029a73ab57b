"""`Layout`: how the records of a data set become prompts, and how long their answers are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.workload.datasets.prompt_rows import Row

Record = Mapping[str, Any]
MIN_TOKENS = 4  # of a prompt and an answer, where a layout has bounds


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lengths of usable prompts and answers, in tokens.

    Attributes:
        prompt: The most in a prompt.
        total: The most in a prompt and its answer.
        of_any_answer: Whether the bounds also hold for answers whose length the user gives.
    """

    prompt: int
    total: int
    of_any_answer: bool = False

    def hold(self, prompt: int, answer: int) -> bool:
        """Return whether lengths are within the bounds."""
        return MIN_TOKENS <= prompt <= self.prompt and answer >= MIN_TOKENS and prompt + answer <= self.total


@dataclass(frozen=True, slots=True)
class Layout:
    """How the records of a data set become prompts.

    Attributes:
        read: Makes the row of a record, given its source; None: the record is left out. Raises LookupError, TypeError,
            ValueError or AttributeError for a record of another form.
        answer: Returns the recorded answer of a record; "" for none. None: the data set has none.
        output_len: Maximum tokens of an answer without a recorded one.
        subset, split: Those to read if the user names none.
        bounds: The usable lengths; None: all.
        special: Whether special tokens count in the length of an answer.
        rendered: Whether vLLM puts the chat template around the prompts itself.
        by_buffer: Whether the order is that of the package `datasets`, which shuffles a part at a time; else that of a
            list that is shuffled as a whole.
        columns: The column of each field, if prompts are made from columns that the user can choose.
    """

    read: Callable[[Record, str], Row | None]
    answer: Callable[[Record], str] | None = None
    output_len: int = 128
    subset: str | None = None
    split: str | None = "train"
    bounds: Bounds | None = None
    special: bool = True
    rendered: bool = False
    by_buffer: bool = True
    columns: Mapping[str, str] | None = None


def asking(prompt: str | Callable[[Record], Any]) -> Callable[[Record, str], Row | None]:
    """Return a `Layout.read` for a format of columns, or for what makes text or messages; None leaves a record out."""

    def read(record: Record, source: str) -> Row | None:
        asked = prompt.format_map(record) if isinstance(prompt, str) else prompt(record)
        return None if asked is None else Row.of({"messages" if isinstance(asked, list) else "prompt": asked}, source)

    return read
