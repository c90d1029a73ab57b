"""Makes what a run would have brought forth: Records read from bytes, Snapshots of them, results
and schedules.

Times are milliseconds after the start of the run's clock, so that a test can state them in its
head.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import structs

from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.header import RunHeader, provenance
from loadgen.metrics.records.trailer import RunTrailer, ServerCall, WorkerReport
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.snapshot import ROW_COLUMNS, Details, Snapshot
from loadgen.report.result import RunResult
from loadgen.testing.replies import STREAM as CHUNKED
from loadgen.testing.replies import delta, event, usage
from loadgen.workload.arrivals import Schedule

MS = 1_000_000
S = 1000 * MS
START = 5000 * S  # what CLOCK_MONOTONIC shows when the run's clock starts
PROMPTS = {"sha256": "0" * 64, "requests": 10**9, "distinct": 10**9}
CLIENT = ClientUsage(
    wall_s=1.0,
    cpu_s=0.25,
    busy_share=0.25,
    peak_memory_bytes=50_000_000,
    stolen_share=0.0,
    throttled_s=0.0,
    disturbance="",
    connections_reused=True,
    starved_requests=0,
)


def at(ms: float) -> int:
    """The stamp of a moment."""
    return START + round(ms * MS)


def planned(
    index: int = 0,
    *,
    due: float = 0,
    ready: float | None = None,
    connect: float = 0,
    sent: float | None = None,
    tokens: tuple[int, int] = (10, 3),
) -> Record:
    """A record whose request has been sent: when it was ready and connected, unless `sent` says
    otherwise.
    """
    ready = due if ready is None else ready
    record = Record(index, *tokens, at(due))
    record.ready, record.connect_ns = at(ready), round(connect * MS)
    record.sent = at(ready + connect if sent is None else sent)
    return record


def answered(
    index: int = 0,
    *,
    tokens: Sequence[float] = (20, 30, 40),
    reasoning: Sequence[float] = (),
    tools: Sequence[float] = (),
    counts: dict[str, Any] | None = None,
    closed: float | None = None,
    **sending: Any,
) -> Record:
    """A record that ended ok: its tokens of each kind came at these moments, and it closed with
    the last of them.
    """
    record = planned(
        index, **{"tokens": (10, len(tokens) + len(reasoning) + len(tools)), **sending}
    )
    events = [(ms, delta(content="x")) for ms in tokens]
    events += [(ms, delta(reasoning="x")) for ms in reasoning]
    events += [
        (ms, delta(tool_calls=[{"index": 0, "function": {"arguments": "x"}}])) for ms in tools
    ]
    events.sort(key=lambda one: one[0])
    response = Response()
    response.begin(record)
    response.feed(CHUNKED, at(events[0][0]))
    for ms, data in events:
        response.feed(chunk(data), at(ms))
    end = delta("stop") + (usage(**counts) if counts else b"")
    response.feed(chunk(end) + LAST_CHUNK, at(events[-1][0] if closed is None else closed))
    assert record.outcome is Outcome.OK
    return record


def per_event(*events: tuple[float, int], index: int = 0, total: int | None = None) -> Record:
    """A record whose events, each (ms, tokens so far), carry usage; `total` by the usage at the
    end.
    """
    record = planned(index, tokens=(10, events[-1][1]))
    response = Response()
    response.begin(record)
    response.feed(CHUNKED, at(events[0][0]))
    for ms, so_far in events:
        body = event(
            choices=[{"index": 0, "delta": {"content": "x"}}], usage={"completion_tokens": so_far}
        )
        response.feed(chunk(body), at(ms))
    end = delta("stop") + usage(completion_tokens=events[-1][1] if total is None else total)
    response.feed(chunk(end) + LAST_CHUNK, at(events[-1][0]))
    return record


def steady(
    index: int = 0, *, due: float = 0, ttft: float = 20, gap: float = 10, n: int = 3, **options: Any
) -> Record:
    """A record that ended ok: sent when due, its first token `ttft` later, then one every `gap`."""
    return answered(index, due=due, tokens=[due + ttft + i * gap for i in range(n)], **options)


def read(
    record: Record, data: bytes, *, when: float = 20, closed: float = 30, error: str | None = None
) -> Record:
    """The record after `data` arrived and the connection ended."""
    response = Response()
    response.begin(record)
    if data:
        response.feed(data, at(when))
    if not response.complete:
        response.eof(at(closed), error)
    return record


def failed(
    index: int = 0, outcome: Outcome = Outcome.STREAM_ERROR, *, detail: str = "why", **sending: Any
) -> Record:
    """A record that ended badly after two tokens, where the outcome allows any."""
    record = planned(index, **sending)
    words = delta(content="a") + delta(content="b")
    match outcome:
        case Outcome.STATUS:
            body = detail.encode()
            read(record, b"HTTP/1.1 503 Busy\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        case Outcome.REFUSED:
            read(record, b"", error=detail)
        case Outcome.TRUNCATED:
            read(record, CHUNKED + chunk(words), error=detail)
        case Outcome.STREAM_ERROR:
            read(record, CHUNKED + chunk(words + event(error={"message": detail})))
        case Outcome.EMPTY:
            read(record, CHUNKED + chunk(delta("stop")) + LAST_CHUNK)
        case _:
            record.outcome, record.detail, record.closed = outcome, detail, at(30)
    assert record.outcome is outcome
    return record


def unsent(
    index: int = 0, outcome: Outcome = Outcome.DNS_ERROR, *, due: float = 0, detail: str = "why"
) -> Record:
    """A record that ended before its request was sent."""
    record = planned(index, due=due)
    record.sent = 0
    record.outcome, record.detail, record.closed = outcome, detail, at(due + 5)
    return record


def measured(
    records: Iterable[Record],
    *,
    scheduled: int | None = None,
    partial: str | None = None,
    **options: Any,
) -> Snapshot:
    """The snapshot of a run that had these records."""
    records = list(records)
    recorder = Recorder(START, len(records) if scheduled is None else scheduled, **options)
    for record in records:
        recorder.add(record)
    return recorder.snapshot(partial)


def rows_of(**columns: Any) -> bytes:
    """The rows of a snapshot with these columns, each an array of as many numbers."""
    rows = np.zeros(len(columns["index"]), dtype=[*ROW_COLUMNS])
    for name, values in columns.items():
        rows[name] = values
    return rows.tobytes()


def in_order(snapshot: Snapshot) -> Snapshot:
    """The same snapshot with its requests in the order of the schedule."""
    order = np.argsort(snapshot.index, kind="stable")
    rows = rows_of(**{name: getattr(snapshot, name)[order] for name, _ in ROW_COLUMNS})
    details = snapshot.details and Details(
        *([column[i] for i in order] for column in structs.astuple(snapshot.details))
    )
    return structs.replace(
        snapshot, rows=rows, details=details, targets=tuple(map(in_order, snapshot.targets))
    )


def due_at(*ms: float, duration: float | None = None) -> Schedule:
    """A schedule of requests due at these moments."""
    due_ns = array("q", [round(m * MS) for m in ms])
    return Schedule(due_ns, round((max(ms) if duration is None else duration) * MS))


def heading(
    settings: RunSettings,
    schedule: Schedule,
    *,
    prompts: dict[str, Any] | None = None,
    engine: dict[str, Any] | None = None,
    model: str = "org/tiny",
    simulated: bool = False,
) -> RunHeader:
    """What stands above the numbers of a run; `prompts` says what is unlike PROMPTS."""
    origin = provenance(settings, settings, engine or {"name": "tests", "version": "1"})
    made = RunHeader(settings, model, "20250102-030405", simulated, origin)
    return made.with_requests(PROMPTS | (prompts or {}), schedule.about())


def shard(schedule: Schedule, number: int = 0, **client: Any) -> WorkerReport:
    """A worker that came to its end; `client` says what is unlike CLIENT."""
    return WorkerReport(
        number=number, client=structs.replace(CLIENT, **client), schedule_sha256=schedule.sha256
    )


def run_data(
    records: Iterable[Record] | Snapshot,
    settings: RunSettings | None = None,
    schedule: Schedule | None = None,
    *,
    client: dict[str, Any] | None = None,
    prompts: dict[str, Any] | None = None,
    engine: dict[str, Any] | None = None,
    model: str = "org/tiny",
    simulated: bool = False,
    shards: Sequence[WorkerReport] = (),
    telemetry: Telemetry | None = None,
    calls: Sequence[ServerCall] = (),
    facts: dict[str, Any] | None = None,
    **options: Any,
) -> RunData:
    """What a run that had these records would leave; `client` and `prompts` say what is unlike
    CLIENT and PROMPTS.

    Without `shards` it had one worker, the client.
    """
    settings = settings or RunSettings()
    snapshot = records if isinstance(records, Snapshot) else measured(records, **options)
    schedule = schedule or Schedule.burst(max(1, snapshot.scheduled))
    return RunData(
        header=heading(
            settings, schedule, prompts=prompts, engine=engine, model=model, simulated=simulated
        ),
        schedule=schedule,
        snapshot=snapshot,
        trailer=RunTrailer(
            workers=tuple(shards) or (shard(schedule, **(client or {})),),
            telemetry=telemetry or Telemetry(),
            calls=tuple(calls),
            facts=facts or {},
        ),
    )


def result(
    records: Iterable[Record] | Snapshot,
    settings: RunSettings | None = None,
    *,
    checks: Iterable[Check] = (),
    **options: Any,
) -> dict[str, Any]:
    """The JSON of the result of a run that had these records; see `run_data` for the options."""
    return RunResult.of(run_data(records, settings, **options), list(checks)).to_dict()
