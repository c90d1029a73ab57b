"""The cache of prompts: data sets whose prompts cost more to make than to read.

An entry is a file of rows, one JSON line for each prompt, and a last line about them with the hash
of everything. Its name is the hash of all that the prompts depend on: the data settings, the seeds,
their number, the files read, and the versions of the code. A damaged entry is removed and made
again.
"""

import contextlib
import dataclasses
import hashlib
import logging
import os
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson
from msgspec import Struct

from loadgen.config.data import DataSettings
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.util.packages import package_version
from loadgen.version import __version__
from loadgen.workload import datasets
from loadgen.workload.chat_template.prediction import SizedToServer
from loadgen.workload.datasets.prompt_rows import Row, is_whole_in_a_row, line
from loadgen.workload.files import cache
from loadgen.workload.files.cache import clear, folder
from loadgen.workload.prompt import Continued, Dataset, Prompt, Sessions, Timed
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_name, tokenizer_of

__all__ = ["Entry", "cached_dataset", "clear", "entries", "folder"]

VERSION = 2  # of the entries and of the rules that made them
SUFFIX = ".rows"
LAST_BYTES = 1 << 16  # maximum length of the last line
BLOCK = 1 << 20
# Protocols whose further facts rows cannot hold.
MORE_THAN_PROMPTS = (Sessions, Timed, SizedToServer)
DAMAGED = (ValueError, KeyError, TypeError)  # errors of a damaged entry

logger = logging.getLogger("loadgen")


class Entry(Struct, frozen=True, dict=True):
    """The cached prompts of one data set.

    Attributes:
        path: The file.
        dataset: The name of the data set.
        prompts: How many prompts it has.
        bytes: The size of the file.
        used_s: When it was made or last read, seconds since the epoch.
    """

    path: Path
    dataset: str
    prompts: int
    bytes: int
    used_s: float


def entries() -> list[Entry]:
    """List the cached prompts, the most recently used first."""
    items = []
    for path in folder().glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError, *DAMAGED), open(path, "rb") as file:
            about, state = _last(file)["about"], os.fstat(file.fileno())
            items.append(
                Entry(path, about["dataset"], about["prompts"], state.st_size, state.st_mtime)
            )
    return sorted(items, key=lambda entry: -entry.used_s)


def cached_dataset(settings: RunSettings) -> Dataset:
    """Create the data set that the settings name; it reads its prompts from the cache where that is
    cheaper.

    Raises:
        BadInput: As `loadgen.workload.datasets.create`.
    """
    max_bytes = cache.limit()
    kind = datasets.find(settings)
    made_of = getattr(kind, "made_of", None)
    files = made_of(settings) if made_of and max_bytes else None
    if files is None:
        return kind.from_settings(settings)
    try:
        hashes = [cache.file_sha256(file) for file in files]
    except OSError:
        return kind.from_settings(settings)  # which reports the unreadable file
    if (
        settings.dataset_name not in datasets.BUILT_IN
    ):  # a built-in one names no files where it is more than prompts
        dataset = kind.from_settings(settings)
        if isinstance(dataset, MORE_THAN_PROMPTS):
            return dataset
    return _CachedDataset(kind, settings, hashes, max_bytes)


class _CachedDataset:
    """A data set that reads its prompts from the cache, or makes and stores them."""

    def __init__(
        self, kind: datasets.DatasetClass, settings: RunSettings, hashes: list[str], max_bytes: int
    ) -> None:
        self._kind, self._settings, self._hashes, self._max_bytes = (
            kind,
            settings,
            hashes,
            max_bytes,
        )
        self._provenance: dict[str, Any] = {}

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the prompts; None where there is none."""
        try:
            return tokenizer_of(self._settings)
        except BadInput:
            return None

    def prompts(self, count: int) -> Iterator[Prompt]:
        path = folder() / f"{self._key(count)}{SUFFIX}"
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(open(path, "rb"))
                about = _verified(file, count)
            except FileNotFoundError:
                about = None
            except (OSError, *DAMAGED):
                about = None
                with contextlib.suppress(OSError):
                    path.unlink()
            if about is None:
                yield from self._make(count, path)
                return
            cache.mark_used(path)
            for warning in about["warnings"]:
                logger.warning("%s", warning)
            self._provenance = about["provenance"]
            for data in islice(file, count):
                row = Row.of(orjson.loads(data), "")
                yield row.prompt(row.input_tokens or 0, row.output_tokens or 0)

    def beyond(self, count: int) -> Iterator[Prompt]:
        # Only when the first of these prompts is wanted.
        dataset = self._kind.from_settings(self._settings)
        if isinstance(dataset, Continued):
            yield from dataset.beyond(count)

    def provenance(self) -> dict[str, Any]:
        return self._provenance

    def _make(self, count: int, path: Path) -> Iterator[Prompt]:
        with _RecordedWarnings() as warnings, cache.Draft(path, self._max_bytes) as draft:
            dataset = self._kind.from_settings(self._settings)
            for prompt in dataset.prompts(count):
                if is_whole_in_a_row(prompt):
                    draft.write(line(prompt))
                else:
                    draft.discard()
                yield prompt
            self._provenance = dataset.provenance()
            about = {"dataset": self._settings.dataset_name, "prompts": count, "warnings": warnings}
            about |= {"provenance": self._provenance, "bytes": draft.size}
            digest = draft.digest.copy()
            digest.update(orjson.dumps(about))
            draft.write(orjson.dumps({"about": about, "sha256": digest.hexdigest()}) + b"\n")
            draft.commit()

    def _key(self, count: int) -> str:
        settings = self._settings
        fields = {
            field.name: getattr(settings, field.name) for field in dataclasses.fields(DataSettings)
        }
        parts = {
            "version": [VERSION, __version__, package_version("tokenizers")],
            "kind": f"{self._kind.__module__}:{getattr(self._kind, '__qualname__', '')}",
            "settings": fields | {"tokenizer": tokenizer_name(settings)},
            "seeds": [seed_of(settings, "prompts"), seed_of(settings, "order")],
            "count": count,
            "files": self._hashes,
        }
        return hashlib.sha256(
            orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=repr)
        ).hexdigest()


class _RecordedWarnings(logging.Handler):
    """Collects the warnings logged in its context, to log them again when the entry is read."""

    def __enter__(self) -> list[str]:
        self._messages: list[str] = []
        self.setLevel(logging.WARNING)
        logger.addHandler(self)
        return self._messages

    def __exit__(self, *error: object) -> None:
        logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(record.getMessage())


def _last(file: IO[bytes]) -> dict[str, Any]:
    """Read the last line of an entry.

    Raises:
        ValueError, KeyError, TypeError: The entry is damaged.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LAST_BYTES))
    *_, data, rest = [b"", b"", *file.read().split(b"\n")]
    last: dict[str, Any] = orjson.loads(data)
    if rest or last["about"]["bytes"] + len(data) + 1 != size:
        raise ValueError("cut off")
    return last


def _verified(file: IO[bytes], count: int) -> dict[str, Any]:
    """Verify the hash of an entry, rewind the file, and return the facts of its last line.

    Raises:
        ValueError, KeyError, TypeError: The entry is damaged.
    """
    last = _last(file)
    about: dict[str, Any] = last["about"]
    file.seek(0)
    digest, left = hashlib.sha256(), about["bytes"]
    while left and (block := file.read(min(BLOCK, left))):
        digest.update(block)
        left -= len(block)
    digest.update(orjson.dumps(about))
    if about["prompts"] != count or last["sha256"] != digest.hexdigest():
        raise ValueError("changed")
    file.seek(0)
    return about
