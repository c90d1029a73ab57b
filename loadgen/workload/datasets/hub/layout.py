"""`Layout`: how the records of a data set become prompts, and how long their answers are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.workload.datasets.prompt_rows import Row

Record = Mapping[str, Any]
MIN_TOKENS = 4  # of a prompt and an answer, where a layout has bounds


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lengths of usable prompts and answers, in tokens."""

    prompt: int  # most tokens in a prompt
    total: int  # most tokens in a prompt and its answer
    of_any_answer: bool = False  # whether the bounds also hold for answers whose length the user gives

    def hold(self, prompt: int, answer: int) -> bool:
        """Return whether lengths are within the bounds."""
        return MIN_TOKENS <= prompt <= self.prompt and answer >= MIN_TOKENS and prompt + answer <= self.total


@dataclass(frozen=True, slots=True)
class Layout:
    """How the records of a data set become prompts."""

    # makes the row of a record, given its source; None: the record is left out. Raises LookupError, TypeError,
    # ValueError or AttributeError for a record of another form.
    read: Callable[[Record, str], Row | None]
    # returns the recorded answer of a record; "" for none. None: the data set has none.
    answer: Callable[[Record], str] | None = None
    output_len: int = 128  # maximum tokens of an answer without a recorded one
    # subset, split: those to read if the user names none
    subset: str | None = None
    split: str | None = "train"
    bounds: Bounds | None = None  # usable lengths; None: all
    special: bool = True  # whether special tokens count in the length of an answer
    rendered: bool = False  # whether vLLM puts the chat template around the prompts itself
    # whether the order is that of the package `datasets`, which shuffles a part at a time; else that of a list that is
    # shuffled as a whole
    by_buffer: bool = True
    # column of each field, if prompts are made from columns that the user can choose
    columns: Mapping[str, str] | None = None


def asking(prompt: str | Callable[[Record], Any]) -> Callable[[Record, str], Row | None]:
    """Return a `Layout.read` for a format of columns, or for what makes text or messages; None leaves a record out."""

    def read(record: Record, source: str) -> Row | None:
        asked = prompt.format_map(record) if isinstance(prompt, str) else prompt(record)
        return None if asked is None else Row.of({"messages" if isinstance(asked, list) else "prompt": asked}, source)

    return read
