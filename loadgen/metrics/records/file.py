"""Records on disk: a line of JSON that says what the run is, then one per request, written as it ends.

Each worker writes such a file; `pieces` makes them one.
"""

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import orjson

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.record_json import record_line
from loadgen.errors import BadInput
from loadgen.metrics.records import events
from loadgen.metrics.records.header import Heading
from loadgen.metrics.records.trailer import Ending
from loadgen.util import private_files
from loadgen.util.arrays import Int64s
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.prompt import UNPLANNED

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
        self._start_ns, self._sources, self._answers = 0, list[str](), False
        self.error: str | None = None

    @classmethod
    @contextlib.contextmanager
    def optional(cls, path: str | Path | None, limit: float = math.inf) -> Iterator[Self | None]:
        """A writer for `path`, closed at the end; None where there is no path.

        Raises:
            BadInput: The file cannot be written.
        """
        if path is None:
            yield None
            return
        writer = cls(private_files.create("--records", path), limit)
        try:
            yield writer
        finally:
            writer.close()

    def begin(
        self,
        heading: Heading,
        start_ns: int,
        scheduled: int,
        sources: list[str],
        asked: Int64s | None = None,
        stripe: Partition = WHOLE,
    ) -> None:
        """Write what the run is, so that it outlives this process.

        Args:
            heading: As far as it is known before the clock starts.
            start_ns: When that is.
            scheduled: How many requests are to be sent.
            sources: Where each prompt comes from, or nothing.
            asked: What the prompts say of their due times, as `requests.asked`.
            stripe: Whose records these will be.
        """
        self._start_ns, self._sources = start_ns, sources
        self._answers = heading.settings.save_detailed
        told = {"loadgen_records": SCHEMA, "start_ns": start_ns, "scheduled": scheduled, "heading": heading.to_dict()}
        told |= {"asked_due": asked, "stripe": [stripe.index, stripe.count]}
        self._append(orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
        self.flush()

    def write(self, record: Record) -> None:
        """Write one ended record."""
        if self.error is None:
            source = self._sources[record.index % len(self._sources)] if self._sources else None
            self._append(record_line(record, self._start_ns, source, answer=self._answers))

    def flush(self) -> None:
        """Hand what is buffered to the system: from then on it outlives this process."""
        try:
            self._file.flush()
        except OSError as error:
            self._failed(error)

    def close(self) -> None:
        """Write what is buffered, and close the file."""
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


def from_dict(told: dict[str, Any], start_ns: int) -> Record:
    """The record of which a line tells.

    Raises:
        KeyError, TypeError, ValueError: It tells of something else.
    """
    due = start_ns + told["due"]
    planned = told["planned_input_tokens"]
    record = Record(told["index"], UNPLANNED if planned is None else planned, told["planned_output_tokens"], due)
    for stamp in ("ready", "sent", "first_byte", "first_token", "first_answer", "last_token", "closed"):
        setattr(record, stamp, 0 if told[stamp] is None else due + told[stamp])
    counts = {name: name for name in ("prompt_tokens", "completion_tokens", "cached_tokens")}
    record.reasoning_tokens = -1 if (hidden := told.get("reasoning_tokens")) is None else hidden  # older files: none
    record.matched_stop, record.nan_events = told.get("matched_stop"), told.get("nan_events", 0)
    for name, count in (counts | {"predicted_server_input_tokens": "server_tokens"}).items():
        setattr(record, count, -1 if told[name] is None else told[name])
    for name in ("content_events", "reasoning_events", "other_events", "reads", "counted_by", "reused", "by_reader"):
        setattr(record, name, told[name])
    record.outcome, record.status = Outcome(told["outcome"]), told["status"] or 0
    record.target = told.get("target", 0)  # files of runs that knew one target alone do not say
    record.detail, record.finish_reason = told["detail"], told["finish_reason"]
    record.connect_ns = told["connect"]
    runs = events.from_json(told.get("stream") or (), due)  # older files do not have it
    stamps = [due + since for since in told["token_times"]]
    record.restore(stamps, told["tokens_per_event"], runs, told.get("answer", ""))
    return record


class RecordFile:
    """A file that a `RecordWriter` wrote, whether or not it came to its end.

    Attributes:
        heading: What the run was.
        start_ns: When its clock started, CLOCK_MONOTONIC ns.
        scheduled: How many requests were to be sent.
        asked: What the prompts said of their due times, as `requests.asked`.
        stripe: Whose records stand in it from the start.
        ending: What stands at its end; None where the run came to none.

    Raises:
        BadInput: It cannot be read, or is something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with open(path, "rb") as file:
                first, (_, last) = orjson.loads(file.readline()), last_line(file)
            if first["loadgen_records"] != SCHEMA:
                raise ValueError
            self.heading = Heading.from_dict(first["heading"])
            self.start_ns, self.scheduled = int(first["start_ns"]), int(first["scheduled"])
            asked = first.get("asked_due")
            self.asked = None if asked is None else np.array(asked, dtype=np.int64)
            self.stripe = Partition(*first.get("stripe", ()))  # files of runs that knew one worker alone do not say
        except OSError as error:
            raise BadInput("FILE", f"{path}: {error.strerror}", "name a file of records") from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal("line 1") from error
        try:
            self.ending = ending(last)
        except (BadInput, KeyError, TypeError, ValueError) as error:
            raise self._refusal("the last line") from error

    @staticmethod
    def is_one(path: str | Path) -> bool:
        """Whether the file's first line is that of records.

        Raises:
            BadInput: It cannot be read.
        """
        try:
            with open(path, "rb") as file:
                return "loadgen_records" in orjson.loads(file.readline())
        except OSError as error:
            raise BadInput("FILE", f"{path}: {error.strerror}", "name a file that can be read") from error
        except (TypeError, ValueError):
            return False

    def __iter__(self) -> Iterator[Record]:
        """Every record in the file, as of `told`."""
        return (record for _, record in self.told())

    def told(self) -> Iterator[tuple[dict[str, Any], Record]]:
        """Every line of a request, as it stands in the file, and its record; a last line that was cut off is left out.

        Raises:
            BadInput: A line is no record, or stands after the end.
        """
        tokenized = self.ending.tokenized if self.ending else {}
        with open(self.path, "rb") as file:
            next(file)
            for number, line in enumerate(file, 2):
                if not line.endswith(b"\n"):
                    return
                try:
                    told = orjson.loads(line)
                    if "end" in told:
                        break
                    record = from_dict(told, self.start_ns)
                    if not 0 <= record.target < max(len(self.heading.settings.urls), 1):
                        raise ValueError(record.target)
                except (KeyError, TypeError, ValueError) as error:
                    raise self._refusal(f"line {number}") from error
                record.tokenized = tokenized.get(record.index, -1)
                yield told, record
            if next(file, None) is not None:
                problem = f"{self.path}: line {number + 1} stands after the end of the run"
                raise BadInput("FILE", problem, "name the records of one run")

    def _refusal(self, where: str) -> BadInput:
        return BadInput(
            "FILE", f"{self.path}: {where} is none of a file of records", "name one that `loadgen run` wrote"
        )


def last_line(file: BinaryIO) -> tuple[int, bytes]:
    """Where the last whole line begins, and that line with its end; nothing where there is none."""
    size, back = file.seek(0, os.SEEK_END), _BUFFER
    while True:
        begin = file.seek(max(0, size - back))
        lines = file.read().split(b"\n")
        if len(lines) > 2 or begin == 0:
            line = lines[-2] + b"\n" if len(lines) > 1 else b""
            return size - len(lines[-1]) - len(line), line
        back *= 2


def ending(line: bytes) -> Ending | None:
    """The ending that a line tells of; None where it is no such line, so that the run came to no end.

    Raises:
        KeyError, TypeError, ValueError: It tells of another.
    """
    try:
        told = orjson.loads(line).get("end")
    except (AttributeError, ValueError):
        return None
    return None if told is None else Ending.from_dict(told)
