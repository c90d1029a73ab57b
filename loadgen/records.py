"""Records on disk: one JSON line per request, written as it ends."""

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from loadgen.errors import BadInput
from loadgen.wire import Record


class RecordWriter:
    """Appends records to a file. Times are ns; `due` counts from the run's start, all others from due."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: str | None = None  # why nothing more is written: a full disk does not end the run

    @classmethod
    @contextlib.contextmanager
    def optional(cls, path: str | None) -> Iterator["RecordWriter | None"]:
        """A writer for `path`, closed at the end; None where there is no path.

        Raises:
            BadInput: The file cannot be written.
        """
        if path is None:
            yield None
            return
        try:
            file = open(path, "wb", buffering=1 << 16)  # noqa: SIM115 - closed below
        except OSError as error:
            raise BadInput("--records", f"{path}: {error.strerror}", "name a file that can be written") from error
        writer = cls(file)
        try:
            yield writer
        finally:
            writer.close()

    def write(self, record: Record, start_ns: int, sources: list[str]) -> None:
        """Write one ended record as a line."""
        if self.error is None:
            try:
                self._file.write(orjson.dumps(to_dict(record, start_ns, sources)) + b"\n")
            except OSError as error:
                self.error = error.strerror or str(error)

    def close(self) -> None:
        """Write what is buffered, and close the file."""
        try:
            self._file.close()
        except OSError as error:
            self.error = self.error or error.strerror or str(error)


def to_dict(record: Record, start_ns: int, sources: list[str]) -> dict[str, Any]:
    """JSON form of a record; a stamp is null where the thing did not happen, a count where it was not told."""
    due = record.due

    def since_due(stamp: int) -> int | None:
        return stamp - due if stamp else None

    return {
        "index": record.index,
        "source": sources[record.index % len(sources)] if sources else None,
        "outcome": str(record.outcome),
        "detail": record.detail or None,
        "finish_reason": record.finish_reason,
        "planned_input_tokens": record.input_tokens,
        "planned_output_tokens": record.output_tokens,
        "status": record.status or None,
        "prompt_tokens": _told(record.prompt_tokens),
        "completion_tokens": _told(record.completion_tokens),
        "cached_tokens": _told(record.cached_tokens),
        "due": due - start_ns,
        "ready": since_due(record.ready),
        "sent": since_due(record.sent),
        "connect": record.connect_ns,
        "first_byte": since_due(record.first_byte),
        "first_token": since_due(record.first_token),
        "first_answer": since_due(record.first_answer),
        "last_token": since_due(record.last_token),
        "closed": since_due(record.closed),
        "reused": record.reused,
        "by_reader": record.by_reader,
        "token_events": [stamp - due for stamp in record.stamps],
    }


def _told(count: int) -> int | None:
    return count if count >= 0 else None
