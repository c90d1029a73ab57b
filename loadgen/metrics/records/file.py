"""Files of records: journals, which are written while a run goes on, and the lines of JSON that are
made of them at its end.

Both begin with a header line of JSON, and end with a trailer line. Between them a journal has a row
for each request that has ended. Each worker writes a journal of its own; `shards` names them.
"""

import contextlib
import errno
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import orjson
from msgspec import structs

from loadgen.core.record import Record
from loadgen.core.record_json import record_line
from loadgen.core.record_row import FIELDS, SIZE_BYTES, RowWriter, record_from_row
from loadgen.errors import BadInput, setting
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.json_lines import record_from_line
from loadgen.metrics.records.shards import further_shards, is_begun, shard_path
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals
from loadgen.util import files
from loadgen.util.partition import WHOLE, Partition
from loadgen.util.trace_context import trace_ids

# How a header line begins, with the version of the format.
LINES = {"loadgen_records": 2}
JOURNAL = {"loadgen_journal": 3, "byte_order": sys.byteorder, "fields": list(FIELDS)}
TRAILER = b'{"end":'
_BUFFER = 1 << 16


class RecordWriter(RowWriter):
    """Appends records to a journal, which never grows beyond a limit. docs/records.md describes
    it.
    """

    @classmethod
    @contextlib.contextmanager
    def optional(cls, path: str | Path | None, limit: float = math.inf) -> Iterator[Self | None]:
        """Open a writer for `path` and close it at the end; give None where there is no path.

        Args:
            path: The file.
            limit: Its maximum size, bytes.

        Raises:
            BadInput: The file cannot be written.
        """
        if path is None:
            yield None
            return
        writer = cls(files.create_private(setting.records, path), limit)
        try:
            yield writer
        finally:
            writer.close()

    def begin(
        self,
        header: RunHeader,
        start_ns: int,
        scheduled: int,
        sources: list[str],
        asked_due: Sequence[int] | None = None,
        partition: Partition = WHOLE,
    ) -> None:
        """Write the header line, so that it outlives this process.

        Args:
            header: Facts that are known before the clock starts.
            start_ns: When the clock starts, CLOCK_MONOTONIC ns.
            scheduled: How many requests are to be sent.
            sources: The source of each prompt, or an empty list.
            asked_due: Due times that the prompts ask for, as `request_store.requested_due_ns`
                returns them.
            partition: Whose records these will be.
        """
        from loadgen.util.clock import unix_ns  # not before: to read a file needs no event loop

        self.sources = sources
        self.keeps_answers = header.settings.save_detailed
        first = JOURNAL | {
            "start_ns": start_ns,
            "start_unix_ns": unix_ns(start_ns),
            "scheduled": scheduled,
            "heading": header.to_dict(),
            "asked_due": None if asked_due is None else list(asked_due),
            "stripe": [partition.index, partition.count],
        }
        self.append(
            orjson.dumps(first, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
        )
        self.flush()


class RecordFile:
    """The records of a run: lines of JSON, or its journals; the run may have ended early.

    Args:
        path: The lines of JSON, or the journal of the first worker.

    Attributes:
        path: As the argument.
        is_journal: Whether it is a journal.
        header: Facts that were known before the clock started.
        start_ns: When the clock started, CLOCK_MONOTONIC ns.
        start_unix_ns: The same since 1970; None in files of earlier versions.
        scheduled: How many requests were to be sent.
        asked_due: Due times that the prompts asked for, as `request_store.requested_due_ns` returns
            them.
        partition: Whose records the file has; lines of JSON have all.
        trailer, totals: What its last line says; None where the run did not come to its end.

    Raises:
        BadInput: The file cannot be read, or has no records, or none that this version can read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._later_ns = 0
        try:
            with open(path, "rb") as file:
                self._first: dict[str, Any] = orjson.loads(file.readline())
                self._begin = self._position = file.tell()
                end, last = last_line(file)
                self._size = file.seek(0, os.SEEK_END)
                self._identity = os.fstat(file.fileno()).st_ino, self._size
            first = self._first
            self.is_journal = "loadgen_journal" in first
            if not self.is_journal and first["loadgen_records"] != LINES["loadgen_records"]:
                problem = f"{path} has records of version {first['loadgen_records']!r}"
                problem += f", and this loadgen reads {LINES['loadgen_records']}"
                raise BadInput((), problem, "read them with the loadgen that wrote them")
            if self.is_journal and first | JOURNAL != first:
                version = first["heading"]["provenance"]["versions"]["loadgen"]
                raise BadInput(
                    (),
                    f"{path} is a journal of loadgen {version} that this loadgen cannot read",
                    "report it with that version, on a machine of the same kind",
                )
            self.header = RunHeader.from_dict(first["heading"])
            settings = self.header.settings
            self._targets = max(len(settings.urls), 1)
            self._classes = [request_class.name for request_class in settings.request_classes]
            self.start_ns = int(first["start_ns"])
            start_unix_ns = first.get("start_unix_ns")
            self.start_unix_ns = None if start_unix_ns is None else int(start_unix_ns)
            self.scheduled = int(first["scheduled"])
            self.asked_due: list[int] | None = first.get("asked_due")
            self.partition = Partition(*first["stripe"]) if self.is_journal else WHOLE
        except OSError as error:
            raise BadInput((), f"{path}: {error.strerror}", "name a file of records") from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal("line 1") from error
        self.trailer: RunTrailer | None
        self.totals: LoopTotals | None
        try:
            self.trailer, self.totals = _trailer(last)
        except (BadInput, KeyError, TypeError, ValueError) as error:
            raise self._refusal("the last line") from error
        if self.trailer is not None:
            self._size = end - 1 if self.is_journal else end

    @staticmethod
    def is_one(path: str | Path) -> bool:
        """Return whether the first line of a file is that of a file of records.

        Raises:
            BadInput: The file cannot be read.
        """
        try:
            with open(path, "rb") as file:
                first = orjson.loads(file.readline())
                return "loadgen_records" in first or "loadgen_journal" in first
        except OSError as error:
            raise BadInput(
                (), f"{path}: {error.strerror}", "name a file that can be read"
            ) from error
        except (TypeError, ValueError):
            return False

    @property
    def is_of_whole_run(self) -> bool:
        """Whether its last line is that of the whole run, not of one worker."""
        return self.trailer is not None and (
            not self.is_journal or len(self.trailer.workers) == self.partition.count
        )

    def parts(self) -> "Iterator[RecordFile]":
        """Iterate over the files of the run: this one, and the journals of further workers, whose
        times are moved to the clock of this one.

        Raises:
            BadInput: A file has no records that can be read.
        """
        yield self
        for index in range(1, self.partition.count):
            path = shard_path(self.path, index)
            if is_begun(path):
                part = RecordFile(path)
                part._later_ns, part.start_ns = self.start_ns - part.start_ns, self.start_ns
                yield part

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records of the run, without a last one that is cut off.

        Raises:
            BadInput: A row or line is no record, or stands after the trailer.
        """
        tokenized = self.trailer.tokenized if self.trailer else {}
        for part in self.parts():
            for record in part.own_records():
                if record.tokenized < 0:
                    record.tokenized = tokenized.get(record.index, -1)
                yield record

    def own_records(self) -> Iterator[Record]:
        """Iterate over the records in this file alone; raises as `__iter__`."""
        tokenized = self.trailer.tokenized if self.trailer else {}
        with open(self.path, "rb") as file:
            file.seek(self._begin)
            for record in self._rows(file) if self.is_journal else self._lines(file):
                record.tokenized = tokenized.get(record.index, -1)
                yield record

    def new_records(self) -> Iterator[Record]:
        """Iterate over the records that a journal has got since the last call; raises as
        `__iter__`.
        """
        self._size = self.path.stat().st_size
        with open(self.path, "rb") as file:
            position = file.seek(self._position)
            for record in self._rows(file):
                position = file.tell()
                yield record
        self._position = position

    def lines(self) -> Iterator[bytes]:
        """Iterate over the records of the run as lines of JSON; raises as `__iter__`."""
        has_answers = self.header.settings.save_detailed
        key = self.header.trace_key
        for record in self:
            yield record_line(
                record,
                self.start_ns,
                answer=has_answers,
                class_name=self._classes[record.class_number] if self._classes else None,
                trace=None if key is None else trace_ids(key, record.index),
            )

    def write_lines(self, path: Path, trailer: RunTrailer, totals: LoopTotals) -> None:
        """Write the run as lines of JSON, and remove its journals.

        Args:
            path: The file, which may be that of the first journal.
            trailer: The trailer of the run.
            totals: What the trailer line says beside it.

        Raises:
            BadInput: A row is no record; the journals stay.
            OSError: The file cannot be written, a journal not removed, or the run has written its
                trailer since it was read; the journals stay.
        """
        journals = [part.path for part in self.parts() if part.is_journal]
        first = {key: value for key, value in self._first.items() if key not in JOURNAL}
        with files.atomic_file(path, files.private_opener) as file:
            file.write(orjson.dumps(LINES | first) + b"\n")
            file.writelines(self.lines())
            file.write(_trailer_line(trailer, totals))
            now = self.path.stat()
            if (now.st_ino, now.st_size) != self._identity:
                raise OSError(errno.EAGAIN, "its run is just ending")
        for journal in journals:
            if journal.resolve() != path.resolve():
                journal.unlink(missing_ok=True)

    def _rows(self, file: BinaryIO) -> Iterator[Record]:
        begin = file.tell()
        while begin + SIZE_BYTES <= self._size:
            head = file.read(SIZE_BYTES)
            size = int.from_bytes(head, sys.byteorder, signed=True)
            if begin + size > self._size:
                return
            try:
                row = head + file.read(max(size - SIZE_BYTES, 0))
                record = record_from_row(row, self._later_ns)
                self._check(record)
            except (IndexError, OverflowError, TypeError, ValueError) as error:
                raise self._refusal(f"the row at byte {begin}") from error
            yield record
            begin += size

    def _lines(self, file: BinaryIO) -> Iterator[Record]:
        number = 1
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                return
            try:
                data = orjson.loads(line)
                if "end" in data:
                    break
                record = record_from_line(data, self.start_ns)
                if "class" in data:
                    record.class_number = self._classes.index(data["class"])
                self._check(record)
            except (KeyError, TypeError, ValueError) as error:
                raise self._refusal(f"line {number}") from error
            yield record
        if next(file, None) is not None:
            problem = f"{self.path}: line {number + 1} comes after the end of the run"
            raise BadInput((), problem, "name the records of one run")

    def _check(self, record: Record) -> None:
        """Refuse a record of a target or a class that the run does not have.

        Raises:
            ValueError: It is one.
        """
        if not 0 <= record.target < self._targets:
            raise ValueError(record.target)
        if not 0 <= record.class_number < max(len(self._classes), 1):
            raise ValueError(record.class_number)

    def _refusal(self, where: str) -> BadInput:
        return BadInput(
            (),
            f"{self.path}: {where} is no part of a file of records",
            "name one that `loadgen run` wrote",
        )


def last_line(file: BinaryIO) -> tuple[int, bytes]:
    """Return the offset and the bytes of the last line that is whole, line end included; empty
    where there is none.
    """
    size = file.seek(0, os.SEEK_END)
    back = _BUFFER
    while True:
        begin = file.seek(max(0, size - back))
        lines = file.read().split(b"\n")
        if len(lines) > 2 or begin == 0:
            line = lines[-2] + b"\n" if len(lines) > 1 else b""
            return size - len(lines[-1]) - len(line), line
        back *= 2


def write_trailer(
    path: Path, trailer: RunTrailer, totals: LoopTotals, lines: str | None = None
) -> str | None:
    """Write the trailer of a run to its journal; then, if lines of JSON are wanted, write these in
    place of the journal, which stays if they cannot be written.

    Args:
        path: The journal of the first worker; if that was never begun, the next one takes its
            place.
        trailer: The trailer.
        totals: What the trailer line says beside it.
        lines: The file for lines of JSON.

    Returns:
        Why it could not be done, or None.
    """
    try:
        begun = [shard for shard in (path, *further_shards(path)) if is_begun(shard)]
        if not begun:
            return None
        if begun[0] != path:
            begun[0].replace(path)
        with open(path, "a+b") as file:
            file.seek(0)
            if b'"loadgen_journal"' in file.readline():  # else `loadgen report` has made it lines
                file.write(b"\n" + _trailer_line(trailer, totals))
        if lines is not None:
            RecordFile(path).write_lines(Path(lines), trailer, totals)
    except BadInput as error:
        return error.problem
    except OSError as error:
        problem = error.strerror or str(error)
        if lines is not None and Path(lines) == path:
            problem += f"; it is still a journal, which `loadgen report {path}` reads"
        return problem
    return None


def _trailer_line(trailer: RunTrailer, totals: LoopTotals) -> bytes:
    return TRAILER + orjson.dumps(trailer.to_dict(totals), default=structs.asdict) + b"}\n"


def _trailer(line: bytes) -> tuple[RunTrailer, LoopTotals] | tuple[None, None]:
    """Read the trailer line; (None, None) where it is another line, so that the run did not come to
    its end.

    Raises:
        KeyError, TypeError, ValueError: It is no trailer of ours.
    """
    if not line.startswith(TRAILER):
        return None, None
    return RunTrailer.from_dict(orjson.loads(line)["end"])
