"""`HubDataset`: Hugging Face data sets, from a local copy, the cache of the hub, or the hub."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.hub import columns
from loadgen.workload.datasets.hub.columns import COLUMN
from loadgen.workload.datasets.hub.hub_folder import HubFolder
from loadgen.workload.datasets.hub.known_sets import KNOWN, NOT_SENT, SPEC_BENCH, SPEED_BENCH, known_name
from loadgen.workload.datasets.hub.layout import Layout
from loadgen.workload.datasets.hub.order import shuffled_by_buffer, shuffled_files, shuffled_list
from loadgen.workload.datasets.hub.record_file import Record, records
from loadgen.workload.datasets.hub.row_filter import row_filter
from loadgen.workload.datasets.hub.split import split_files
from loadgen.workload.datasets.prompt_rows import Row, count_tokens
from loadgen.workload.files import file_hash
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

BATCH = 256  # records read and encoded at a time, at most
NAMED = {"spec_bench": SPEC_BENCH, "speed_bench": SPEED_BENCH}  # data sets of a name of their own
Numbered = tuple[int, Record]


def known_layout(dataset_name: str, name: str | None) -> Layout | None:
    """Return the layout of a data set that is known by name; None: its columns decide.

    Args:
        dataset_name: The `--dataset-name`, one of `hf` and NAMED.
        name: The name on the hub, or the path of a local copy.

    Raises:
        BadInput: Its requests hold what loadgen does not send.
    """
    known = NAMED.get(dataset_name) or (None if name is None else known_name(name))
    if known is not None and known in NOT_SENT:
        problem = f"{known} has {NOT_SENT[known]}, which loadgen does not send"
        raise BadInput(DATASET_PATH, problem, "use another data set, or vLLM's own tool for this one")
    return KNOWN.get(known or "")


@dataclass(frozen=True, slots=True)
class HubDataset:
    """The records of one split, shuffled as vLLM shuffles them; random ones are repeated if there are too few.

    Records are read when they are needed, and files of the hub are downloaded when the first of their records is. A
    last answer in a chat is not sent; recorded answers decide the lengths of the requested ones.

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
        """Create the data set from `--dataset-path`, `--hf-*`, `--disable-shuffle` and `--tokenizer`.

        Raises:
            BadInput: The data set cannot be found or read, or no column has prompts.
        """
        name = settings.dataset_path or settings.hf_name
        if name is None and settings.dataset_name == "speed_bench":
            name = SPEED_BENCH
        if name is None:
            raise BadInput(DATASET_PATH, "is missing", "give a local copy of the data set, or its name on the hub")
        row_filter(settings.hf_where)
        layout = known_layout(settings.dataset_name, settings.hf_name or name) if not settings.hf_column else None
        folder = HubFolder.of(name)
        split = settings.hf_split or (layout.split if layout else None)
        files = tuple(split_files(folder, settings.hf_subset or (layout.subset if layout else None), split))
        first = next(iter(records(folder.fetch(files[0]))), None)
        if first is None:
            raise BadInput(DATASET_PATH, f"{files[0]} of {name} has no records", "give another split")
        return cls(folder, files, layout or columns.layout_of(settings, first), settings, LazyTokenizer(settings))

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
            found = list(self._generate(BATCH))
            if not found:
                meeting = f" that meets {' and '.join(self.settings.hf_where)}" if self.settings.hf_where else ""
                problem = f"{self.folder.name} has no usable record{meeting}"
                raise BadInput(DATASET_PATH, problem, "give another split or --hf-where")
            repeats = random.Random(seed_of(self.settings, "prompts"))
            yield from (repeats.choice(found) for _ in range(count - made))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts after the first `count`, each once.

        Raises:
            BadInput: A record cannot be used.
        """
        return islice(self._generate(BATCH), count, None)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        shuffled = not self.settings.disable_shuffle
        hashed = {"file_sha256": file_hash.sha256(self.folder.fetch(self.files[0]))} if len(self.files) == 1 else {}
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
        if self.settings.hf_output_len is not None and bounds is not None and not bounds.of_any_answer:
            bounds = None  # it holds only where recorded answers give the lengths
        while batch := list(islice(rows, size)):
            answers = [answer for _, answer in batch if answer]
            counted = self.tokenizer().count(answers, special=self.layout.special) if answers else []
            lengths = iter(counted)
            inputs = count_tokens([row for row, _ in batch], self.tokenizer)
            for (row, answer), tokens in zip(batch, inputs, strict=True):
                recorded = next(lengths) if answer else row.output_tokens
                wanted = self.settings.hf_output_len or recorded or self.layout.output_len
                if bounds is None or bounds.hold(tokens, wanted):
                    yield row.prompt(tokens, wanted)

    def _rows(self) -> Iterator[tuple[Row, str]]:
        read, answer = self.layout.read, self.layout.answer if self.settings.hf_output_len is None else None
        for number, record in self._ordered():
            source = f"{self.settings.dataset_name}/{number}"
            try:
                row = read(record, source)
                recorded = answer(record) if row is not None and answer else ""
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                problem = f"has no column {error}" if isinstance(error, KeyError) else str(error)
                remedy = f"give its columns: {COLUMN} prompt=COLUMN answer=COLUMN, of {', '.join(record)}"
                raise BadInput(DATASET_PATH, f"{source} of {self.folder.name} {problem}", remedy) from error
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
