"""Cache: prompts that were made before, where making them again would cost more than reading them.

An entry is a file of rows, a line of JSON for each prompt, and at its end a line about them and the hash of it all. Its
name is the hash of what they depend on: the data settings, the seeds, their number, the files read, and the versions of
what made them. Entries are written aside and put in place whole; one that is not whole is thrown away and made again.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import logging
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson

from loadgen.config.data import DataSettings
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.util import private_files
from loadgen.version import __version__
from loadgen.workload import datasets
from loadgen.workload.datasets.prompt_rows import Row, is_whole_in_a_row, line
from loadgen.workload.files import cache_folder, file_hash
from loadgen.workload.files.cache_folder import folder
from loadgen.workload.prompt import Continued, Dataset, Prompt, Sessions, Timed
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer.token_count import Tailored
from loadgen.workload.tokenizer.tokenizer import Tokenizer

__all__ = ["Entry", "clear", "entries", "folder", "limit", "prepared"]

VERSION = 1  # of the entries and of the rules that made them
LIMIT = "LOADGEN_CACHE_BYTES"
MOST_BYTES = 4 << 30
ENDING = ".rows"
LAST_BYTES = 1 << 16  # in which the line about the prompts stands
BLOCK = 1 << 20
MORE = (Sessions, Timed, Tailored)  # what a data set may be beyond its prompts, and rows are not
UNREADABLE = (ValueError, KeyError, TypeError)  # what a file that is no entry meets with

logger = logging.getLogger("loadgen")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of one data set.

    Attributes:
        path: Its file.
        dataset: The data set's name.
        prompts: How many there are.
        bytes: How large it is.
        used_s: When it was made or last read, seconds since the epoch.
    """

    path: Path
    dataset: str
    prompts: int
    bytes: int
    used_s: float


def entries() -> list[Entry]:
    """What is kept, the last used first."""
    found = []
    for path in folder().glob(f"*{ENDING}"):
        with contextlib.suppress(OSError, *UNREADABLE), open(path, "rb") as file:
            about, state = _last(file)["about"], os.fstat(file.fileno())
            found.append(Entry(path, about["dataset"], about["prompts"], state.st_size, state.st_mtime))
    return sorted(found, key=lambda entry: -entry.used_s)


def clear() -> None:
    """Remove all that is kept, the hashes of files included; a run that is reading an entry goes on.

    Raises:
        OSError: It cannot be removed.
    """
    if folder().is_dir():
        shutil.rmtree(folder())


def limit() -> int:
    """Most bytes that all that is kept may have together, by LOADGEN_CACHE_BYTES; at 0 no prompts are kept.

    Raises:
        BadInput: It is no number of bytes.
    """
    given = os.environ.get(LIMIT) or str(MOST_BYTES)
    if not given.isdecimal():
        raise BadInput(LIMIT, f"{given!r} is no number of bytes", "write digits alone, or 0 to keep nothing")
    return int(given)


def prepared(settings: RunSettings) -> Dataset:
    """The data set that the settings name, read from what was kept where that is cheaper.

    Raises:
        BadInput: See `loadgen.workload.datasets.create`.
    """
    most = limit()
    kind = datasets.find(settings)
    made_of = getattr(kind, "made_of", None)
    files = made_of(settings) if made_of and most else None
    if files is None:
        return kind.from_settings(settings)
    try:
        sums = [file_hash.sha256(file) for file in files]
    except OSError:
        return kind.from_settings(settings)  # which says what is wrong with them
    if settings.dataset_name not in datasets.BUILT_IN:  # a built-in one names no files where it is more
        dataset = kind.from_settings(settings)
        if isinstance(dataset, MORE):
            return dataset
    return _Cached(kind, settings, sums, most)


class _Cached:
    """A data set that keeps what it has made."""

    def __init__(self, kind: datasets.DatasetClass, settings: RunSettings, sums: list[str], most: int) -> None:
        self._kind, self._settings, self._sums, self._most = kind, settings, sums, most
        self._provenance: dict[str, Any] = {}

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """What counts the prompts' tokens; None where none can be had."""
        try:
            return tokenizers.of_settings(self._settings)
        except BadInput:
            return None

    def prompts(self, count: int) -> Iterator[Prompt]:
        path = folder() / f"{self._key(count)}{ENDING}"
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(open(path, "rb"))
                about = _verified(file, count)
            except FileNotFoundError:
                about = None
            except (OSError, *UNREADABLE):
                about = None
                with contextlib.suppress(OSError):
                    path.unlink()
            if about is None:
                yield from self._made(count, path)
                return
            with contextlib.suppress(OSError):
                os.utime(path)
            for warning in about["warnings"]:
                logger.warning("%s", warning)
            self._provenance = about["provenance"]
            yield from (_prompt(data) for data in islice(file, count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        dataset = self._kind.from_settings(self._settings)  # when the first of them is asked for
        if isinstance(dataset, Continued):
            yield from dataset.beyond(count)

    def provenance(self) -> dict[str, Any]:
        return self._provenance

    def _made(self, count: int, path: Path) -> Iterator[Prompt]:
        with _Heard() as warnings, _Draft(path, self._most) as draft:
            dataset = self._kind.from_settings(self._settings)
            for prompt in dataset.prompts(count):
                if is_whole_in_a_row(prompt):
                    draft.add(line(prompt))
                else:
                    draft.drop()
                yield prompt
            self._provenance = dataset.provenance()
            about = {"dataset": self._settings.dataset_name, "prompts": count, "warnings": warnings}
            draft.keep(about | {"provenance": self._provenance})

    def _key(self, count: int) -> str:
        settings = self._settings
        fields = {field.name: getattr(settings, field.name) for field in dataclasses.fields(DataSettings)}
        parts = {
            "version": [VERSION, __version__, importlib.metadata.version("tokenizers")],
            "kind": f"{self._kind.__module__}:{getattr(self._kind, '__qualname__', '')}",
            "settings": fields | {"tokenizer": tokenizers.name_of(settings)},
            "seeds": [seed_of(settings, "prompts"), seed_of(settings, "order")],
            "count": count,
            "files": self._sums,
        }
        return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=repr)).hexdigest()


class _Heard(logging.Handler):
    """Hears what is warned of, so that it can be said again; the list is what `with` gives."""

    def __enter__(self) -> list[str]:
        self._said: list[str] = []
        self.setLevel(logging.WARNING)
        logger.addHandler(self)
        return self._said

    def __exit__(self, *error: object) -> None:
        logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())


class _Draft:
    """An entry being written; whatever its file meets, the prompts go on without it."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most = path, most
        self._beside = path.with_name(f"{secrets.token_hex(16)}{cache_folder.DRAFT}")
        self._digest, self._bytes = hashlib.sha256(), 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "_Draft":
        with contextlib.suppress(OSError):
            cache_folder.make_folder()
            self._file = open(self._beside, "xb", opener=_nameless)
        return self

    def __exit__(self, *error: object) -> None:
        self.drop()

    def add(self, data: bytes) -> None:
        """Write the line of one prompt."""
        if self._file is None:
            return
        self._digest.update(data)
        self._bytes += len(data)
        if self._bytes > self._most:
            self.drop()
            return
        try:
            self._file.write(data)
        except OSError:
            self.drop()

    def keep(self, about: dict[str, Any]) -> None:
        """Write the last line, put the entry in place and make room for it."""
        if self._file is None:
            return
        about |= {"bytes": self._bytes}
        self._digest.update(orjson.dumps(about))
        last = {"about": about, "sha256": self._digest.hexdigest()}
        try:
            self._file.write(orjson.dumps(last) + b"\n")
            self._file.flush()
            if not self._beside.exists():  # src_dir_fd: without one, the link in /proc is not followed
                os.link(f"/proc/self/fd/{self._file.fileno()}", self._beside, src_dir_fd=self._file.fileno())
            self._file.close()
            self._beside.replace(self._path)
            cache_folder.make_room(self._most)
        except OSError:
            self.drop()
        self._file = None

    def drop(self) -> None:
        """Keep nothing of it."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            with contextlib.suppress(OSError):
                self._beside.unlink()
        self._file = None


def _nameless(path: str, flags: int) -> int:
    """Open a file that has no name yet, so that nothing is left of a process that is killed; as an opener of `open`.

    Where the system knows none it has its name from the start.
    """
    try:
        return os.open(os.path.dirname(path), os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (AttributeError, OSError):  # of Linux, and not of all its file systems
        return private_files.opener(path, flags)


def _last(file: IO[bytes]) -> dict[str, Any]:
    """Read the last line of an entry.

    Raises:
        ValueError, KeyError, TypeError: There is none.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LAST_BYTES))
    *_, data, rest = [b"", b"", *file.read().split(b"\n")]
    last: dict[str, Any] = orjson.loads(data)
    if rest or last["about"]["bytes"] + len(data) + 1 != size:
        raise ValueError("cut off")
    return last


def _verified(file: IO[bytes], count: int) -> dict[str, Any]:
    """Read all of an entry; returns what its last line says of it, and leaves the file at its first.

    Raises:
        ValueError, KeyError, TypeError: It is not what was written.
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


def _prompt(data: bytes) -> Prompt:
    row = Row.of(orjson.loads(data), "")
    return row.prompt(row.input_tokens or 0, row.output_tokens or 0)
