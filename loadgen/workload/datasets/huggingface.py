"""`HubDataset`: Hugging Face data sets, from a local copy, the cache of the hub, or the hub."""

import operator
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets.hub_folder import HubFolder, Record, records, split_files
from loadgen.workload.datasets.hub_layouts import (
    COLUMN,
    KNOWN,
    NOT_SENT,
    SPEC_BENCH,
    SPEED_BENCH,
    Layout,
    known_name,
    layout_of,
)
from loadgen.workload.datasets.prompt_rows import (
    Row,
    count_tokens,
    shuffled_by_buffer,
    shuffled_files,
    shuffled_list,
)
from loadgen.workload.files import cache
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

BATCH = 256  # records read and encoded at a time, at most
NAMED = {"spec_bench": SPEC_BENCH, "speed_bench": SPEED_BENCH}  # data sets of a name of their own
WHERE = setting.hf_where
CONDITION = re.compile(r"([^<>=]+)(<=|>=|=)(.+)", re.DOTALL)
COMPARE: Mapping[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}
Numbered = tuple[int, Record]
Keeps = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class HubDataset:
    """The records of one split, shuffled as vLLM shuffles them; random ones are repeated if there
    are too few.

    Records are read when they are needed, and files of the hub are downloaded when the first of
    their records is. A last answer in a chat is not sent; recorded answers decide the lengths of
    the requested ones.

    Attributes:
        folder: The files of the data set.
        files: The names of those with the split, in their order.
        layout: How a record becomes a prompt.
        settings: The settings, with seeds and conditions.
        tokenizer: Counts tokens where a row has no length.
    """

    folder: HubFolder
    files: tuple[str, ...]
    layout: Layout
    settings: RunSettings
    tokenizer: LazyTokenizer

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, `--hf-*`, `--disable-shuffle` and
        `--tokenizer`.

        Raises:
            BadInput: The data set cannot be found or read, or no column has prompts.
        """
        name = settings.dataset_path or settings.hf_name
        if name is None and settings.dataset_name == "speed_bench":
            name = SPEED_BENCH
        if name is None:
            raise BadInput(
                DATASET_PATH,
                "is missing",
                "give a local copy of the data set, or its name on the hub",
            )
        row_filter(settings.hf_where)
        layout = (
            known_layout(settings.dataset_name, settings.hf_name or name)
            if not settings.hf_column
            else None
        )
        folder = HubFolder.of(name)
        split = settings.hf_split or (layout.split if layout else None)
        files = tuple(
            split_files(folder, settings.hf_subset or (layout.subset if layout else None), split)
        )
        first = next(iter(records(folder.fetch(files[0]))), None)
        if first is None:
            raise BadInput(
                DATASET_PATH, f"{files[0]} of {name} has no records", "give another split"
            )
        return cls(
            folder, files, layout or layout_of(settings, first), settings, LazyTokenizer(settings)
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`.

        Raises:
            BadInput: A record cannot be used, or none is of a usable length.
        """
        made = 0
        for prompt in islice(self._generate(min(count, BATCH)), count):
            yield prompt
            made += 1
        if made < count:
            prompts = list(self._generate(BATCH))
            if not prompts:
                meeting = (
                    f" that meets {' and '.join(self.settings.hf_where)}"
                    if self.settings.hf_where
                    else ""
                )
                problem = f"{self.folder.name} has no usable record{meeting}"
                raise BadInput(DATASET_PATH, problem, f"give another split or {setting.hf_where}")
            repeats = random.Random(seed_of(self.settings, "prompts"))
            yield from (repeats.choice(prompts) for _ in range(count - made))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts after the first `count`, each once.

        Raises:
            BadInput: A record cannot be used.
        """
        return islice(self._generate(BATCH), count, None)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        shuffled = not self.settings.disable_shuffle
        hashed = (
            {"file_sha256": cache.file_sha256(self.folder.fetch(self.files[0]))}
            if len(self.files) == 1
            else {}
        )
        return {
            "name": self.settings.dataset_name,
            "rule": "in a shuffled order" if shuffled else "in the split's order",
            "file": self.folder.name,
            "files": list(self.files),
            **hashed,
            "subset": self.settings.hf_subset,
            "split": self.settings.hf_split,
            "where": list(self.settings.hf_where),
            "columns": None if self.layout.columns is None else dict(self.layout.columns),
            "output_tokens": self.settings.hf_output_len,
            "seed_prompts": seed_of(self.settings, "prompts"),
            "seed_order": seed_of(self.settings, "order") if shuffled else None,
            **self.tokenizer.provenance(),
        }

    def _generate(self, size: int) -> Iterator[Prompt]:
        rows, bounds = self._rows(), self.layout.bounds
        if (
            self.settings.hf_output_len is not None
            and bounds is not None
            and not bounds.of_any_answer
        ):
            bounds = None  # it holds only where recorded answers give the lengths
        while batch := list(islice(rows, size)):
            answers = [answer for _, answer in batch if answer]
            counted = (
                self.tokenizer().count(answers, special=self.layout.special) if answers else []
            )
            lengths = iter(counted)
            inputs = count_tokens([row for row, _ in batch], self.tokenizer)
            for (row, answer), tokens in zip(batch, inputs, strict=True):
                recorded = next(lengths) if answer else row.output_tokens
                output_tokens = self.settings.hf_output_len or recorded or self.layout.output_len
                if bounds is None or bounds.hold(tokens, output_tokens):
                    yield row.prompt(tokens, output_tokens)

    def _rows(self) -> Iterator[tuple[Row, str]]:
        read, answer = (
            self.layout.read,
            self.layout.answer if self.settings.hf_output_len is None else None,
        )
        for number, record in self._ordered():
            source = f"{self.settings.dataset_name}/{number}"
            try:
                row = read(record, source)
                recorded = answer(record) if row is not None and answer else ""
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                problem = f"has no column {error}" if isinstance(error, KeyError) else str(error)
                remedy = (
                    f"give its columns: {COLUMN} prompt=COLUMN answer=COLUMN, of "
                    f"{', '.join(record)}"
                )
                raise BadInput(
                    DATASET_PATH, f"{source} of {self.folder.name} {problem}", remedy
                ) from error
            if row is not None:
                yield row, recorded

    def _ordered(self) -> Iterable[Numbered]:
        keeps = row_filter(self.settings.hf_where)
        kept = partial(filter, lambda numbered: keeps(numbered[1]))
        if self.settings.disable_shuffle:
            return kept(self._numbered(self.files))
        seed = seed_of(self.settings, "order")
        if self.layout.by_buffer:
            return kept(shuffled_by_buffer(self._numbered(shuffled_files(self.files, seed)), seed))
        return shuffled_list(kept(self._numbered(self.files)), seed)

    def _numbered(self, files: Iterable[str]) -> Iterator[Numbered]:
        return enumerate(record for file in files for record in records(self.folder.fetch(file)))


def known_layout(dataset_name: str, name: str | None) -> Layout | None:
    """Return the layout of a data set that is known by name; None: its columns decide.

    Args:
        dataset_name: The `--dataset-name`, one of `hf` and NAMED.
        name: The name on the hub, or the path of a local copy.

    Raises:
        BadInput: Its requests hold what loadgen does not send.
    """
    hub_name = NAMED.get(dataset_name) or (None if name is None else known_name(name))
    if hub_name is not None and hub_name in NOT_SENT:
        problem = f"{hub_name} has {NOT_SENT[hub_name]}, which loadgen does not send"
        raise BadInput(
            DATASET_PATH, problem, "use another data set, or vLLM's own tool for this one"
        )
    return KNOWN.get(hub_name or "")


def row_filter(conditions: Sequence[str]) -> Keeps:
    """Return whether a record meets all conditions, as a function.

    Args:
        conditions: Each `COLUMN=TEXT`, `COLUMN<=NUMBER` or `COLUMN>=NUMBER`.

    Raises:
        BadInput: A condition has another form. The function raises it for a record without the
            column.
    """
    tests = [_condition(condition) for condition in conditions]
    return lambda record: all(test(record) for test in tests)


def _condition(condition: str) -> Keeps:
    match = CONDITION.fullmatch(condition)
    remedy = "write COLUMN=TEXT, COLUMN<=NUMBER or COLUMN>=NUMBER"
    if match is None:
        raise BadInput(WHERE, f"{condition!r} is not a condition", remedy)
    column, sign, text = match.groups()

    def value(record: Mapping[str, Any]) -> Any:
        if column not in record:
            raise BadInput(WHERE, f"unknown column {column!r}", f"choose from {', '.join(record)}")
        return record[column]

    if sign == "=":
        return lambda record: str(value(record)) == text
    try:
        bound = float(text)
    except ValueError as error:
        raise BadInput(WHERE, f"{text!r} in {condition!r} is not a number", remedy) from error

    def holds(record: Mapping[str, Any]) -> bool:
        try:
            return COMPARE[sign](float(value(record)), bound)
        except (TypeError, ValueError) as error:
            raise BadInput(
                WHERE, f"{record[column]!r} in {column!r} is not a number", remedy
            ) from error

    return holds
