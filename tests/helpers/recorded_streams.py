"""Records of streams written down event by event: what `loadgen run --records` would have kept
of them.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.core.http1 import Response
from loadgen.core.record import Record
from loadgen.lab.tools.emulate.recorded_run import RecordedRun
from loadgen.lab.tools.emulate.tool import Row, Rules, Tool, View
from loadgen.metrics.recorder import Recorder
from loadgen.runner.run_result import Result, conclude
from loadgen.workload.arrivals import Schedule
from tests.helpers.run_facts import CHUNKED, LAST_CHUNK, START, at, chunk
from tests.helpers.source import ROOT

GOLDEN = ROOT / "tests" / "data" / "tools"
STREAMS: dict[str, Any] = json.loads((GOLDEN / "streams.json").read_text())


def record_of(
    index: int,
    events: Iterable[tuple[float, bytes]],
    *,
    due: float = 0,
    sent: float | None = None,
    connect: float = 0,
    closed: float | None = None,
    planned: tuple[int, int] = (9, 8),
    status: int = 200,
) -> Record:
    """The record of a response: its events, each with the ms after the start at which it came."""
    record, response = Record(index, *planned, at(due)), Response()
    record.ready = at(due)
    record.sent, record.connect_ns = at(due if sent is None else sent), round(connect * 1e6)
    response.begin(record)
    events = list(events)
    end = closed if closed is not None else events[-1][0]
    if status != 200:
        response.feed(b"HTTP/1.1 %d Busy\r\nContent-Length: 0\r\n\r\n" % status, at(end))
        return record
    response.feed(CHUNKED, at(events[0][0]))
    for ms, data in events:
        if not response.complete:
            response.feed(chunk(data), at(ms))
    if not response.complete:
        response.feed(LAST_CHUNK, at(end))
    return record


def of_file(group: str, sent: Mapping[str, float] | None = None) -> tuple[list[Record], bool]:
    """The records of a group of streams of the golden data, and whether they are chats.

    `sent` moves them: they are sent from `first` on, one after `every` so many ms.
    """
    told = STREAMS[group]
    return of_streams(told["streams"], sent), told["chat"]


def of_streams(
    streams: Iterable[Mapping[str, Any]], sent: Mapping[str, float] | None = None
) -> list[Record]:
    """The records of such streams."""
    records = []
    for index, row in enumerate(streams):
        later = sent["first"] + index * sent["every"] - row["sent"] if sent else 0
        records.append(_record(index, row, later))
    return records


def _record(index: int, row: Mapping[str, Any], later: float) -> Record:
    events = [
        (round(ms + later, 3), f"data: {payload}\n\n".encode()) for ms, payload in row["events"]
    ]
    return record_of(
        index,
        events,
        due=round(row["due"] + later, 3),
        sent=round(row["sent"] + later, 3),
        closed=round(row["closed"] + later, 3),
        planned=tuple(row["planned"]),
        status=row["status"],
    )


def run_of(records: Iterable[Record], chat: bool = True, **settings: Any) -> RecordedRun:
    """The run that had these records."""
    return RecordedRun(_settings(chat, settings), START, records)


def result_of(records: Iterable[Record], chat: bool = True, **settings: Any) -> Result:
    """The result of that run."""
    from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
    from loadgen.metrics.run_data import Measurement
    from tests.helpers.run_facts import heading

    records = list(records)
    asked = _settings(chat, settings)
    schedule = Schedule.burst(len(records))
    recorder = Recorder.from_settings(asked, START, len(records))
    for record in records:
        recorder.add(record)
    trailer = RunTrailer(workers=(WorkerReport(schedule_sha256=schedule.sha256),))
    return conclude(heading(asked, schedule), schedule, Measurement(recorder.snapshot(), trailer))


def _settings(chat: bool, given: dict[str, Any]) -> RunSettings:
    return RunSettings(**{"backend": "openai-chat" if chat else "openai"} | given)


def rows_of(tool: Tool, run: RecordedRun, active: Rules) -> list[Row]:
    """All rows of a tool's console for a run with these rules."""
    return [row for section in tool.sections for row in section(View(run, active))]
