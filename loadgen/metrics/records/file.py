"""Records files: a header line of JSON, a line for each request, written as it ends, and a trailer
line.

Each worker writes such a file; `shards` joins them.
"""

import contextlib
import functools
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import orjson

from loadgen.core.event_flags import NAMES, TOKENS
from loadgen.core.outcome import Outcome
from loadgen.core.record import UNBOUNDED, Record
from loadgen.core.record_json import record_line
from loadgen.errors import BadInput
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals
from loadgen.util import files
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.prompt import UNPLANNED

SCHEMA = 1
_BUFFER = 1 << 16
EventRuns = Sequence[tuple[int, int]]  # as `Record.stream` has them

STAMPS = ("ready", "sent", "first_byte", "first_token", "first_answer", "last_token", "closed")
COUNTS = {  # keys of a line, and the attributes of a Record that are -1 where the line says null
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "predicted_server_input_tokens": "server_tokens",
}
COPIED = (
    "content_events",
    "reasoning_events",
    "other_events",
    "reads",
    "counted_by",
    "reused",
    "by_reader",
)


class RecordWriter:
    """Appends records to a file, which never grows beyond `limit` bytes.

    Times are CLOCK_MONOTONIC ns: `start_ns` as it is, `due` from there, all others from due.
    docs/records.md describes the file.

    Args:
        file: The file.
        limit: Its maximum size, bytes.

    Attributes:
        error: Why nothing more is written, or None: a full disk does not end the run.
    """

    def __init__(self, file: BinaryIO, limit: float = math.inf) -> None:
        self._file = file
        self._left = limit
        self._start_ns = 0
        self._sources = list[str]()
        self._answers = False
        self._classes = list[str]()
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
            asked_due: Due times that the prompts ask for, as `request_store.requested_due_ns`
                returns them.
            partition: Whose records these will be.
        """
        self._start_ns = start_ns
        self._sources = sources
        self._answers = header.settings.save_detailed
        self._classes = [request_class.name for request_class in header.settings.request_classes]
        first = {
            "loadgen_records": SCHEMA,
            "start_ns": start_ns,
            "scheduled": scheduled,
            "heading": header.to_dict(),
            "asked_due": None if asked_due is None else list(asked_due),
            "stripe": [partition.index, partition.count],
        }
        self._append(
            orjson.dumps(first, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
        )
        self.flush()

    def write(self, record: Record) -> None:
        """Write the line of a request that has ended."""
        if self.error is None:
            source = self._sources[record.index % len(self._sources)] if self._sources else None
            class_name = self._classes[record.class_number] if self._classes else None
            self._append(
                record_line(
                    record, self._start_ns, source, answer=self._answers, class_name=class_name
                )
            )

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
        asked_due: Due times that the prompts asked for, as `request_store.requested_due_ns` returns
            them.
        partition: Whose records the file had at first.
        trailer, totals: What its last line says; None where the run did not come to its end.

    Raises:
        BadInput: The file cannot be read, or is no records file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with open(path, "rb") as file:
                first = orjson.loads(file.readline())
                _, last = last_line(file)
            if first["loadgen_records"] != SCHEMA:
                raise ValueError
            self.header = RunHeader.from_dict(first["heading"])
            self.start_ns = int(first["start_ns"])
            self.scheduled = int(first["scheduled"])
            self.asked_due: list[int] | None = first.get("asked_due")
            # Older files of one worker do not have it.
            self.partition = Partition(*first.get("stripe", ()))
        except OSError as error:
            raise BadInput("FILE", f"{path}: {error.strerror}", "name a file of records") from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal("line 1") from error
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
            raise BadInput(
                "FILE", f"{path}: {error.strerror}", "name a file that can be read"
            ) from error
        except (TypeError, ValueError):
            return False

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records in the file; raises as `lines`."""
        return (record for _, record in self.lines())

    def lines(self) -> Iterator[tuple[dict[str, Any], Record]]:
        """Iterate over the requests in the file: the parsed line and its Record, without a last
        line that is cut off.

        Raises:
            BadInput: A line is no record, or stands after the trailer.
        """
        tokenized = self.trailer.tokenized if self.trailer else {}
        classes = [request_class.name for request_class in self.header.settings.request_classes]
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
            "FILE",
            f"{self.path}: {where} is not a line of a file of records",
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


def _trailer(line: bytes) -> tuple[RunTrailer, LoopTotals] | tuple[None, None]:
    """Read the trailer line; (None, None) where it is another line, so that the run did not come to
    its end.

    Raises:
        KeyError, TypeError, ValueError: It is no trailer of ours.
    """
    try:
        data = orjson.loads(line).get("end")
    except (AttributeError, ValueError):
        return None, None
    return (None, None) if data is None else RunTrailer.from_dict(data)


def record_from_line(data: dict[str, Any], start_ns: int) -> Record:
    """Make a Record from a parsed line.

    Args:
        data: The JSON object; times are ns from `due`, and `due` is ns from the start of the clock.
        start_ns: When the clock started, CLOCK_MONOTONIC ns.

    Raises:
        KeyError, TypeError, ValueError: It is no line of a request.
    """
    due = start_ns + data["due"]
    planned = data["planned_input_tokens"]
    record = Record(
        data["index"], UNPLANNED if planned is None else planned, data["planned_output_tokens"], due
    )
    for stamp in STAMPS:
        setattr(record, stamp, 0 if data[stamp] is None else due + data[stamp])
    for key, attribute in COUNTS.items():
        setattr(record, attribute, -1 if data[key] is None else data[key])
    for name in COPIED:
        setattr(record, name, data[name])
    reasoning_tokens = data.get("reasoning_tokens")  # older files have none
    record.reasoning_tokens = -1 if reasoning_tokens is None else reasoning_tokens
    record.total_tokens = data.get("total_tokens", -1)
    record.done_seen = bool(data.get("done"))
    unread = data.get("unread", {})
    record.unread = {name: (count, sample) for name, (count, sample) in unread.items()} or None
    record.matched_stop = data.get("matched_stop")
    record.nan_events = data.get("nan_events", 0)
    record.outcome = Outcome(data["outcome"])
    record.status = data["status"] or 0
    record.target = data.get("target", 0)  # older files of runs against one target do not have it
    record.turn = data.get("turn", 0) - 1  # absent in a run without sessions
    record.detail = data["detail"]
    record.finish_reason = data["finish_reason"]
    record.connect_ns = data["connect"]
    # Older files do not say how late their stamps may be.
    record.user_stamped = data.get("user_stamped", UNBOUNDED)
    record.reordered = data.get("reordered", 0)
    record.window_filled = data.get("window_filled", False)
    record.written = 0 if data.get("written") is None else due + data["written"]
    record.first_answer_earliest = record.first_answer
    if "first_answer_earliest" in data:
        record.first_answer_earliest = due + data["first_answer_earliest"]
    record.disconnect_tokens = data.get("disconnect_tokens", 0)
    record.disconnect_ns = data.get("disconnect_after", -1)
    if "attempts" in data:
        record.attempts = data["attempts"]
        record.retried_ns = data["retried"]
        record.first_status = data["first_status"]
        record.first_sent = due + data["first_sent"]
        record.first_closed = due + data["first_closed"]
    record.results = data.get("results", -1)
    record.is_whole = bool(data.get("whole"))
    runs = event_runs(data.get("stream") or (), due)  # older files do not have it
    stamps = [due + since for since in data["token_times"]]
    earliest = [(number, due + since) for number, since in data.get("earliest", ())]
    answer = data.get("answer", "")
    read_late = data.get("read_late")
    record.restore(stamps, data["tokens_per_event"], runs, answer, earliest, read_late)
    return record


def event_runs(stream: Sequence[tuple[str, int]], due: int) -> EventRuns:
    """Return the run-length list of all events of an answer, from the "stream" of a line.

    Args:
        stream: Pairs of joined event names, and a count (of token events) or a time in ns from
            `due` (of others).
        due: ns, CLOCK_MONOTONIC.

    Returns:
        Pairs of event flags, and a count or a time in ns, CLOCK_MONOTONIC.

    Raises:
        KeyError, TypeError, ValueError: It is no such list.
    """
    runs = ((_flags(names), value) for names, value in stream)
    return [(flags, value if flags & TOKENS else value + due) for flags, value in runs]


@functools.lru_cache(1024)
def _flags(names: str) -> int:
    return sum(NAMES[name] for name in names.split("+")) if names else 0
