"""Course: what a result has of its run over time, from the records alone."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise

from loadgen.lab.verify.figures import NS_PER_MS, NS_PER_S, Figures, most_at_once
from loadgen.lab.verify.records import Record, Run

SHOWN = 1000  # requests that the sample has all of


def course(run: Run, width_s: Decimal | int | None) -> Figures:
    """Return the columns of the timeline and the sample of requests, by their path in a result.

    Args:
        run: The records.
        width_s: The width of a column of the result's timeline; None: it has none.
    """
    return (columns(run, int(width_s * NS_PER_S)) if width_s else {}) | sample(run)


def columns(run: Run, width_ns: int) -> Figures:
    """Return what was sent, ended and failed in each column, and the most in flight."""
    sent = [at for record in run.records if (at := record.at("sent")) is not None]
    closed = [(at, record) for record in run.records if (at := record.at("closed")) is not None]
    if not closed:
        return {}
    last = max(at for at, _ in closed)
    edges = [number * width_ns for number in range(int(last // width_ns) + 2)]
    kinds = {
        "sent": _per_column(sent, edges),
        "ended": _per_column((at for at, _ in closed), edges),
        "failed": _per_column((at for at, record in closed if record.failed), edges),
        "in_flight": [_most_within(run.records, begin, end) for begin, end in pairwise(edges)],
    }
    if all(record.is_plain for record in run.ok):
        tokens = [
            at
            for record in run.ok
            for at, count in zip(record.times, record.tokens_per_event, strict=True)
            for _ in range(count)
        ]
        kinds["output_tokens"] = _per_column(tokens, edges)
    return {
        f"loadgen.timeline.{kind}.{place}": count
        for kind, counts in kinds.items()
        for place, count in enumerate(counts)
    }


def sample(run: Run) -> Figures:
    """Return the sample of requests, where it has all of them and all were sent."""
    records = [each for each in run.records if not each.cut_off]
    sent = {record.index: at for record in records if (at := record.at("sent")) is not None}
    if not records or len(records) > SHOWN or len(sent) != len(records):
        return {}
    base = "loadgen.request_sample"
    computed: Figures = {f"{base}.requests": len(records)}
    from_sent = run.settings["latency_from"] == "sent"
    ordered = sorted(records, key=lambda record: (sent[record.index], record.index))
    for place, record in enumerate(ordered):
        computed[f"{base}.sent_s.{place}"] = sent[record.index] / NS_PER_S
        if record.ok and record.times:
            begin = record.line["sent"] if from_sent else 0
            for name, key in (("ttft_ms", "first_token"), ("e2el_ms", "last_token")):
                took = Decimal(record.line[key] - begin) / NS_PER_MS
                computed[f"{base}.{name}.{place}"] = took
            if record.output_tokens > 1:
                computed[f"{base}.tpot_ms.{place}"] = record.tpot_ms
    return computed


def _per_column(times: Iterable[Decimal], edges: Sequence[int]) -> list[int]:
    ordered = sorted(times)
    places = [bisect_left(ordered, edge) for edge in edges]
    return [later - earlier for earlier, later in pairwise(places)]


def _most_within(records: Sequence[Record], begin: int, end: int) -> int:
    """Return the most requests at once in a column: those that overlap it, clipped to it."""
    inside = [
        record
        for record in records
        if (sent := record.at("sent")) is not None
        and (closed := record.at("closed")) is not None
        and sent < end
        and closed > begin
    ]
    return most_at_once(inside)
