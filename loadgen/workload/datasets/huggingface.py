"""`HubDataset`: Hugging Face data sets by name or from a folder, read with the package `datasets`."""

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.packages import require
from loadgen.workload.datasets.prompt_rows import FIELDS, Row, count_tokens, message_texts
from loadgen.workload.files.mapped_file import FIELD
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

COLUMN = "--hf-column"
MAPPED = (*FIELDS, "answer")
BATCH = 256  # rows read and encoded at a time


@dataclass(frozen=True, slots=True)
class HubDataset:
    """The rows of one split in order, repeated if there are too few.

    A last answer in a chat is not sent; its length, or that of the column `answer`, is the length of the requested
    answer. Rows are read when they are needed.

    Attributes:
        rows: The split, which can be iterated repeatedly.
        columns: The column of each field of MAPPED that the data set has.
        output_tokens: Maximum tokens of each answer; None: the length of the recorded answer.
        settings: The settings, with the name of the data set.
        tokenizer: Counts tokens where a row has no length.
    """

    rows: Iterable[Mapping[str, Any]]
    columns: Mapping[str, str]
    output_tokens: int | None
    settings: RunSettings
    tokenizer: LazyTokenizer

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, the `--hf-*` fields and `--tokenizer`.

        Raises:
            BadInput: The package is not installed, the data set cannot be loaded, or a column is missing.
        """
        rows = _loaded(settings)
        first = next(iter(rows), None)
        if first is None:
            raise BadInput(FIELD, f"{settings.dataset_path} has no rows", "give another split")
        return cls(rows, _columns(settings, list(first)), settings.hf_output_len, settings, LazyTokenizer(settings))

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`. One batch at a time is in memory.

        Raises:
            BadInput: A row cannot be used, or the length of its answer is unknown.
        """
        rows = islice(self._numbered(), count)
        while batch := list(islice(rows, BATCH)):
            asked = [self._row(number, found) for number, found in batch]
            recorded = [text for _, text in asked if text]
            answers = iter(self.tokenizer().count(recorded, special=True) if recorded else [])
            outputs = [next(answers) if text else row.output_tokens for row, text in asked]
            inputs = count_tokens([row for row, _ in asked], self.tokenizer)
            for (row, _), tokens, wanted in zip(asked, inputs, outputs, strict=True):
                if not (self.output_tokens or wanted):
                    problem = f"is missing, and {row.source} has no answer that gives the length"
                    raise BadInput("--hf-output-len", problem, f"give it, or {COLUMN} answer=COLUMN")
                yield row.prompt(tokens, self.output_tokens or wanted or 0)

    def provenance(self) -> dict[str, Any]:
        """Return name, subset, split, columns and version of the data set."""
        return {
            "name": "hf",
            "rule": "in the split's order",
            "file": self.settings.dataset_path,
            "subset": self.settings.hf_subset,
            "split": self.settings.hf_split,
            "columns": dict(self.columns),
            "output_tokens": self.output_tokens,
            "datasets": importlib.metadata.version("datasets"),
            **self.tokenizer.provenance(),
        }

    def _numbered(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        while True:
            yield from enumerate(self.rows)

    def _row(self, number: int, found: Mapping[str, Any]) -> tuple[Row, str]:
        """Convert a row; returns it with its recorded answer, "" if there is none or its length is not needed."""
        place = f"hf/{number}"
        fields = {field: found[column] for field, column in self.columns.items()}
        answer = fields.pop("answer", None)
        chat = fields.get("messages")
        if (
            isinstance(chat, list)
            and len(chat) > 1
            and isinstance(chat[-1], dict)
            and chat[-1].get("role") == "assistant"
        ):
            answer = answer or "\n".join(message_texts(chat[-1:]))
            fields["messages"] = chat[:-1]
        if not isinstance(answer, str | None):
            raise BadInput(
                COLUMN, f"the answer of {place} is not a text", f"give another column: {COLUMN} answer=COLUMN"
            )
        try:
            row = Row.of(fields, place)
        except ValueError as error:
            remedy = f"give the columns: {COLUMN} prompt=COLUMN, or messages=COLUMN"
            raise BadInput(COLUMN, f"{place} of {self.settings.dataset_path} {error}", remedy) from error
        return row, answer or "" if self.output_tokens is None else ""


def _columns(settings: RunSettings, there: list[str]) -> dict[str, str]:
    """Map fields to columns: by `--hf-column`, else by the name of the field."""
    given = dict(pair.partition("=")[::2] for pair in settings.hf_column)
    for field, column in given.items():
        if field not in MAPPED or not column:
            raise BadInput(
                COLUMN, f"unknown field or empty column in {field!r}", f"write FIELD=COLUMN with {', '.join(MAPPED)}"
            )
        if column not in there:
            raise BadInput(COLUMN, f"unknown column {column!r}", f"choose from {', '.join(there)}")
    own = () if {"prompt", "messages"} & given.keys() else ("prompt", "messages")
    rest = [name for name in (*own, "id", "input_tokens", "output_tokens", "answer") if name in there]
    columns = {name: name for name in rest} | given
    if {"prompt", "messages"} <= columns.keys():
        del columns["prompt"]
    if not {"prompt", "messages"} & columns.keys():
        remedy = f"give it: {COLUMN} prompt=COLUMN, with one of {', '.join(there)}"
        raise BadInput(COLUMN, f"{settings.dataset_path} has no column prompt or messages", remedy)
    return columns


def _loaded(settings: RunSettings) -> Iterable[Mapping[str, Any]]:
    """The split, streamed: only what is read of it is fetched."""
    name = settings.dataset_path
    if name is None:
        raise BadInput(FIELD, "is missing", "give the name of a data set on the hub, or a folder")
    require("--dataset-name", "hf", "datasets")
    from datasets import load_dataset  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from huggingface_hub import constants

    local = Path(name).expanduser()
    is_local = local.exists()
    if not is_local and not constants.HF_HUB_OFFLINE and not tokenizers.has_address(constants.ENDPOINT):
        problem = f"{name} is not a folder, and the hub cannot be reached"
        raise BadInput(FIELD, problem, "give a folder, or set HF_HUB_OFFLINE=1 to use earlier downloads")
    try:
        split: Iterable[Mapping[str, Any]] = load_dataset(
            str(local) if is_local else name,
            settings.hf_subset,
            split=settings.hf_split,
            streaming=is_local or not constants.HF_HUB_OFFLINE,
        )
    except Exception as error:
        problem = f"{name} cannot be loaded ({tokenizers.first_line(error)})"
        raise BadInput(FIELD, problem, "check name, --hf-subset and --hf-split") from error
    return split
