"""Figures: the numbers of a result, from its records alone, in decimals."""

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from loadgen.lab.verify.records import Record, Run

NS_PER_MS, NS_PER_S = Decimal(10**6), Decimal(10**9)
BIN_NS = 10**7
FAULTS_OF_OTHERS = ("ok", "cancelled", "disconnected", "client_error")
VLLM_NAMES = {"ttft": "ttft_sent", "tpot": "tpot_n1", "itl": "icl", "e2el": "e2el_sent"}
Number = Decimal | int | None
Figures = dict[str, Number]


def figures(run: Run, percentiles: Mapping[str, Iterable[str]]) -> Figures:
    """Return the numbers of a result by their path within it, as `loadgen.latency_ms.tpot.p99`.

    Args:
        run: The records.
        percentiles: For each distribution, which of its percentiles the result has.
    """
    computed = counts(run) | rates(run)
    distributions = latencies(run)
    for name, values in distributions.items():
        for statistic, value in _statistics(values, percentiles.get(name, ())).items():
            computed[f"loadgen.latency_ms.{name}.{statistic}"] = value
        for key, value in _histogram(values).items():
            computed[f"loadgen.histograms.{name}.{key}"] = value
    for short, name in VLLM_NAMES.items():
        if name in distributions:
            wanted = {*percentiles.get(short, ()), "p50"}
            for statistic, value in _statistics(distributions[name], wanted).items():
                key = "median" if statistic == "p50" else statistic
                computed |= {f"{each}_{short}_ms": value for each in (key, statistic)}
    median = _percentile(sorted(distributions.get("tpot", ())), Decimal(50))
    if median:
        computed["loadgen.efficiency.output_tokens_per_s_per_user"] = 1000 / median
    return computed


def counts(run: Run) -> Figures:
    """Return what is counted."""
    ok = run.ok
    outcomes = Counter(_outcome(record) for record in run.records)
    if run.never_sent:
        outcomes["cancelled"] += run.never_sent
    faults = sum(record.outcome not in FAULTS_OF_OTHERS for record in run.records)
    ended = sum(not record.cut_off for record in run.records)
    computed: Figures = {
        "completed": len(ok),
        "failed": sum(record.failed for record in run.records),
        "num_prompts": int(run.head["scheduled"]),
        "loadgen.scheduled": int(run.head["scheduled"]),
        "total_output_tokens": sum(record.output_tokens for record in ok),
        "loadgen.tokens.output_tokens": sum(record.output_tokens for record in ok),
        "loadgen.error_rate": Decimal(faults) / ended if ended else Decimal(0),
    }
    computed |= {f"loadgen.outcomes.{name}": number for name, number in outcomes.items()}
    reasons = Counter(record.line.get("finish_reason") for record in ok)
    computed |= {
        f"loadgen.finish_reasons.{name}": number for name, number in reasons.items() if name
    }
    sums = {
        "planned_output_tokens": "planned_output_tokens",
        "content_events": "content_events",
        "reasoning_events": "reasoning_events",
        "other_events": "other_events",
        "token_reads": "reads",
        "nan_events": "nan_events",
    }
    for name, key in sums.items():
        values = [record.line.get(key) for record in ok]
        if None not in values:
            computed[f"loadgen.tokens.{name}"] = sum(map(int, filter(None, values)))
    inputs = [_input_tokens(record) for record in ok]
    if None not in inputs:
        computed["total_input_tokens"] = sum(filter(None, inputs))
        computed["loadgen.tokens.input_tokens"] = sum(filter(None, inputs))
    streams = [record for record in ok if record.times]
    computed["loadgen.tokens.stream_ns"] = int(sum(record.span_ns for record in streams))
    computed["loadgen.tokens.token_events"] = sum(len(record.times) for record in streams)
    several = [record for record in streams if len(record.times) > 1]
    if several and all(record.is_plain for record in ok):
        decode_ns = sum(record.span_ns for record in several)
        tokens = sum(record.output_tokens - record.tokens_per_event[0] for record in several)
        computed["loadgen.tokens.decode_ns"] = int(decode_ns)
        computed["loadgen.tokens.decode_tokens"] = tokens
        computed["loadgen.tpot_token_weighted_ms"] = decode_ns / NS_PER_MS / tokens
    return computed


def duration_ns(run: Run) -> Decimal | None:
    """Return the time from the first send to the end of the last request."""
    sent = _present(record.at("sent") for record in run.records)
    closed = _present(record.at("closed") for record in run.records)
    return max(closed) - min(sent) if sent and closed else None


def rates(run: Run) -> Figures:
    """Return the numbers per second, and the most at once."""
    wall = duration_ns(run)
    if not wall:
        return {}
    seconds = wall / NS_PER_S
    ok = run.ok
    output = sum(record.output_tokens for record in ok)
    inputs = [_input_tokens(record) for record in ok]
    computed: Figures = {
        "duration": seconds,
        "request_throughput": len(ok) / seconds,
        "output_throughput": output / seconds,
        "max_concurrent_requests": most_at_once(run.records),
    }
    if None not in inputs:
        total = sum(filter(None, inputs))
        computed["input_throughput"] = total / seconds
        computed["total_token_throughput"] = (total + output) / seconds
    if all(record.is_plain for record in ok):
        bins = Counter(
            int(at // BIN_NS)
            for record in ok
            for at, tokens in zip(record.times, record.tokens_per_event, strict=True)
            for _ in range(tokens)
        )
        computed["max_output_tokens_per_s"] = _best_second(bins) / min(seconds, Decimal(1))
    ends = sorted(_present(record.at("closed") for record in ok))
    if len(ends) >= 10 and ends[-1] > ends[0]:
        computed["loadgen.rates.answers_per_s"] = (len(ends) - 1) * NS_PER_S / (ends[-1] - ends[0])
    return computed


def latencies(run: Run) -> dict[str, list[Decimal]]:
    """Return the values of each distribution, ms."""
    ok = [record for record in run.ok if not record.line.get("whole")]
    values: dict[str, list[Decimal]] = {
        "ttft_due": _between(ok, "first_token"),
        "ttft_sent": _between(ok, "first_token", "sent"),
        "e2el_due": _between(run.ok, "last_token"),
        "e2el_sent": _between(run.ok, "last_token", "sent"),
        "icl": [gap for record in ok for gap in _gaps(record, by_token=False)],
        "tpot_n1": [record.tpot_ms for record in ok if record.output_tokens > 1 and record.times],
    }
    if all(record.is_plain for record in ok):
        values["itl"] = [gap for record in ok for gap in _gaps(record, by_token=True)]
        values["tpot"] = [
            record.span_ns / NS_PER_MS / (record.output_tokens - record.tokens_per_event[0])
            for record in ok
            if len(record.times) > 1 and record.output_tokens > record.tokens_per_event[0]
        ]
    once = [record for record in run.records if record.at("sent") is not None]
    if not any("attempts" in record.line for record in once):
        waits: dict[str, Callable[[Record], Decimal]] = {
            "pool_wait": lambda record: Decimal(record.line["ready"]),
            "connect": lambda record: Decimal(record.line["connect"]),
            "lag": lambda record: (
                Decimal(record.line["sent"]) - record.line["ready"] - record.line["connect"]
            ),
        }
        for name, of in waits.items():
            values[name] = [of(record) / NS_PER_MS for record in once]
    return values


def most_at_once(records: Sequence[Record]) -> int:
    """Return the most requests between sent and closed; a close comes before a send."""
    moments = [
        moment
        for record in records
        if (sent := record.at("sent")) is not None and (closed := record.at("closed")) is not None
        for moment in ((sent, 1), (closed, -1))
    ]
    return max(itertools.accumulate(change for _, change in sorted(moments)), default=0)


def _outcome(record: Record) -> str:
    status = record.line.get("status")
    return f"status({status})" if record.outcome == "status" else record.outcome


def _input_tokens(record: Record) -> int | None:
    counted = record.line.get("prompt_tokens")
    planned = record.line.get("planned_input_tokens")
    value = counted if counted is not None else planned
    return None if value is None else int(value)


def _present(values: Iterable[Decimal | None]) -> list[Decimal]:
    return [value for value in values if value is not None]


def _between(records: Iterable[Record], end: str, begin: str = "") -> list[Decimal]:
    return [
        (Decimal(record.line[end]) - (record.line[begin] if begin else 0)) / NS_PER_MS
        for record in records
        if record.line.get(end) is not None
    ]


def _gaps(record: Record, *, by_token: bool) -> list[Decimal]:
    gaps = []
    later = zip(record.times[1:], record.tokens_per_event[1:], strict=True)
    for before, (at, tokens) in zip(record.times, later, strict=False):
        parts = tokens if by_token else 1
        gaps += [(at - before) / NS_PER_MS / parts] * parts
    return gaps


def _best_second(bins: Counter[int]) -> int:
    if not bins:
        return 0
    last = max(bins)
    filled = [bins[number] for number in range(last + 1)]
    sums = [0, *itertools.accumulate(filled)]
    size = 10**9 // BIN_NS
    if len(filled) <= size:
        return sums[-1]
    return max(sums[end] - sums[end - size] for end in range(size, len(sums)))


def _statistics(values: Sequence[Decimal], percentiles: Iterable[str]) -> Figures:
    if not values:
        return {}
    ordered = sorted(values)
    mean = sum(ordered, Decimal(0)) / len(ordered)
    square = sum(((value - mean) ** 2 for value in ordered), Decimal(0)) / len(ordered)
    computed: Figures = {
        "count": len(ordered),
        "mean": mean,
        "std": square.sqrt(),
        "min": ordered[0],
        "max": ordered[-1],
    }
    computed |= {p: _percentile(ordered, Decimal(p[1:])) for p in percentiles}
    return computed


def _histogram(values: Sequence[Decimal]) -> Figures:
    if not values:
        return {}
    whole = [int(value * NS_PER_MS) for value in values]
    return {
        "count": len(whole),
        "min": min(whole),
        "max": max(whole),
        "total": Decimal(sum(whole)),
        "total_of_squares": Decimal(sum(value * value for value in whole)),
    }


def _percentile(ordered: Sequence[Decimal], percent: Decimal) -> Decimal | None:
    if not ordered:
        return None
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


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
