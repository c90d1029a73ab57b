"""The rule `sglang`: conversations as SGLang's `bench_serving` chooses them."""

import math
from pathlib import Path
from typing import ClassVar

from loadgen.config.settings import RunSettings
from loadgen.workload.datasets.sharegpt import ShareGPTDataset
from loadgen.workload.datasets.sharegpt_file import LINES_REMEDY, ConversationLines
from loadgen.workload.files.mapped_file import dataset_path
from loadgen.workload.tokenizer.tokenizer import tokenizer_of


class SGLangShareGPT(ShareGPTDataset):
    """Conversations of at least two turns, whose first two have two tokens or more each; lengths are not limited."""

    __slots__ = ()
    RULE: ClassVar[str] = "sglang"
    HAS_IMAGES: ClassVar[bool] = False
    MIN_TOKENS: ClassVar[int] = 2
    MAX_PROMPT_TOKENS: ClassVar[float] = math.inf
    MAX_TOTAL_TOKENS: ClassVar[float] = math.inf


class SGLangCustom(SGLangShareGPT):
    """The same of a file with a conversation in each line, which is SGLang's data set custom."""

    __slots__ = ()
    NAME: ClassVar[str] = "custom"

    @classmethod
    def from_settings(cls, settings: RunSettings) -> "SGLangCustom":
        """Create it from `--dataset-path`, `--tokenizer` and `--sharegpt-output-len`.

        Raises:
            BadInput: The file or the tokenizer cannot be used.
        """
        return cls(ConversationLines(dataset_path(settings, LINES_REMEDY)), tokenizer_of(settings), settings)

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """Return None: the rows are read as fast as kept prompts."""
        return None
