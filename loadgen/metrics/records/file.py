"""Records files: a header line of JSON, a line for each request, written as it ends, and a trailer line.

Each worker writes such a file; `shards` joins them.
"""

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import orjson

from loadgen.core.record import Record
from loadgen.core.record_json import record_line
from loadgen.errors import BadInput
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.line import record_from_line
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals
from loadgen.util import files
from loadgen.util.partition import WHOLE, Partition

SCHEMA = 1
_BUFFER = 1 << 16


class RecordWriter:
    """Appends records to a file, which never grows beyond `limit` bytes.

    Times are CLOCK_MONOTONIC ns: `start_ns` as it is, `due` from there, all others from due. docs/records.md describes
    the file.

    Attributes:
        error: Why nothing more is written, or None: a full disk does not end the run.
    """

    def __init__(self, file: BinaryIO, limit: float = math.inf) -> None:
        self._file, self._left = file, limit
        self._start_ns, self._sources, self._answers, self._classes = 0, list[str](), False, list[str]()
        self.error: str | None = None

    @classmethod
    @contextlib.contextmanager
    def optional(cls, path: str | Path | None, limit: float = math.inf) -> Iterator[Self | None]:
        """Open a writer for `path` and close it at the end; give None where there is no path.

        Raises:
            BadInput: The file cannot be written.
        """
        if path is None:
            yield None
            return
        writer = cls(files.create_private("--records", path), limit)
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
            start_ns: When the clock starts.
            scheduled: How many requests are to be sent.
            sources: The source of each prompt, or an empty list.
            asked_due: Due times that the prompts ask for, as `request_store.requested_due_ns` returns them.
            partition: Whose records these will be.
        """
        self._start_ns, self._sources = start_ns, sources
        self._answers = header.settings.save_detailed
        self._classes = [one.name for one in header.settings.request_classes]
        first = {
            "loadgen_records": SCHEMA,
            "start_ns": start_ns,
            "scheduled": scheduled,
            "heading": header.to_dict(),
            "asked_due": None if asked_due is None else list(asked_due),
            "stripe": [partition.index, partition.count],
        }
        self._append(orjson.dumps(first, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
        self.flush()

    def write(self, record: Record) -> None:
        """Write the line of a request that has ended."""
        if self.error is None:
            source = self._sources[record.index % len(self._sources)] if self._sources else None
            class_name = self._classes[record.class_number] if self._classes else None
            self._append(record_line(record, self._start_ns, source, answer=self._answers, class_name=class_name))

    def flush(self) -> None:
        """Hand the buffer to the system: from then on it outlives this process."""
        try:
            self._file.flush()
        except OSError as error:
            self._failed(error)

    def close(self) -> None:
        """Write the buffer, and close the file."""
        try:
            self._file.close()
        except OSError as error:
            self._failed(error)

    def _append(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self.error = "the file has reached its limit"
            return
        try:
            self._file.write(data)
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        self.error = self.error or error.strerror or str(error)


class RecordFile:
    """A file that a `RecordWriter` wrote; its run may have ended early.

    Attributes:
        header: Facts that were known before the clock started.
        start_ns: When the clock started, CLOCK_MONOTONIC ns.
        scheduled: How many requests were to be sent.
        asked_due: Due times that the prompts asked for, as `request_store.requested_due_ns` returns them.
        partition: Whose records the file had at first.
        trailer, totals: What its last line says; None where the run did not come to its end.

    Raises:
        BadInput: The file cannot be read, or is no records file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with open(path, "rb") as file:
                first, (_, last) = orjson.loads(file.readline()), last_line(file)
            if first["loadgen_records"] != SCHEMA:
                raise ValueError
            self.header = RunHeader.from_dict(first["heading"])
            # start_ns: when the clock started, CLOCK_MONOTONIC ns
            self.start_ns, self.scheduled = int(first["start_ns"]), int(first["scheduled"])
            # due times that the prompts asked for, as `request_store.requested_due_ns` returns them
            self.asked_due: list[int] | None = first.get("asked_due")
            # whose records the file had at first; older files of one worker do not have it
            self.partition = Partition(*first.get("stripe", ()))
        except OSError as error:
            raise BadInput("FILE", f"{path}: {error.strerror}", "name a file of records") from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal("line 1") from error
        # trailer, totals: what its last line says; None where the run did not come to its end
        self.trailer: RunTrailer | None
        self.totals: LoopTotals | None
        try:
            self.trailer, self.totals = _trailer(last)
        except (BadInput, KeyError, TypeError, ValueError) as error:
            raise self._refusal("the last line") from error

    @staticmethod
    def is_one(path: str | Path) -> bool:
        """Return whether the first line of a file is that of a records file.

        Raises:
            BadInput: The file cannot be read.
        """
        try:
            with open(path, "rb") as file:
                return "loadgen_records" in orjson.loads(file.readline())
        except OSError as error:
            raise BadInput("FILE", f"{path}: {error.strerror}", "name a file that can be read") from error
        except (TypeError, ValueError):
            return False

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records in the file; raises as `lines`."""
        return (record for _, record in self.lines())

    def lines(self) -> Iterator[tuple[dict[str, Any], Record]]:
        """Iterate over the requests in the file: the parsed line and its Record, without a last line that is cut off.

        Raises:
            BadInput: A line is no record, or stands after the trailer.
        """
        tokenized = self.trailer.tokenized if self.trailer else {}
        classes = [one.name for one in self.header.settings.request_classes]
        with open(self.path, "rb") as file:
            next(file)
            for number, line in enumerate(file, 2):
                if not line.endswith(b"\n"):
                    return
                try:
                    data = orjson.loads(line)
                    if "end" in data:
                        break
                    record = record_from_line(data, self.start_ns)
                    if not 0 <= record.target < max(len(self.header.settings.urls), 1):
                        raise ValueError(record.target)
                    if "class" in data:
                        record.class_number = classes.index(data["class"])
                except (KeyError, TypeError, ValueError) as error:
                    raise self._refusal(f"line {number}") from error
                record.tokenized = tokenized.get(record.index, -1)
                yield data, record
            if next(file, None) is not None:
                problem = f"{self.path}: line {number + 1} comes after the end of the run"
                raise BadInput("FILE", problem, "name the records of one run")

    def _refusal(self, where: str) -> BadInput:
        return BadInput(
            "FILE", f"{self.path}: {where} is not a line of a file of records", "name one that `loadgen run` wrote"
        )


def last_line(file: BinaryIO) -> tuple[int, bytes]:
    """Return the offset and the bytes of the last line that is whole, line end included; empty where there is none."""
    size, back = file.seek(0, os.SEEK_END), _BUFFER
    while True:
        begin = file.seek(max(0, size - back))
        lines = file.read().split(b"\n")
        if len(lines) > 2 or begin == 0:
            line = lines[-2] + b"\n" if len(lines) > 1 else b""
            return size - len(lines[-1]) - len(line), line
        back *= 2


def _trailer(line: bytes) -> tuple[RunTrailer, LoopTotals] | tuple[None, None]:
    """Read the trailer line; (None, None) where it is another line, so that the run did not come to its end.

    Raises:
        KeyError, TypeError, ValueError: It is no trailer of ours.
    """
    try:
        data = orjson.loads(line).get("end")
    except (AttributeError, ValueError):
        return None, None
    return (None, None) if data is None else RunTrailer.from_dict(data)
