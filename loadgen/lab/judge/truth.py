"""Truth: the figures of a case, from the log of its server."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from loadgen.lab.judge.case import Load

NS_PER_MS, NS_PER_S = 1e6, 1e9
PAUSE_NS = 1_000_000  # a server that did nothing for so long has read all that had come
MS = "_ms"
SENT = "sent"
DEVIATIONS = 3  # of a rate of Poisson arrivals, which is no error of the tool
STATISTICS = ("mean", "p50", "p99")


class Tolerance(NamedTuple):
    """How far a right figure may be off: the larger of both."""

    share: float
    absolute: float


EXACT = Tolerance(0.0, 0.0)
# ms. Client and server share a machine, and some clients connect for each request.
FROM_SENT, BETWEEN = Tolerance(0.05, 5.0), Tolerance(0.05, 1.0)
RATE = Tolerance(0.1, 0.0)  # tools begin and end their clocks at other events
TOLERANCES: Mapping[str, Tolerance] = {
    "completed": EXACT,
    "failed": EXACT,
    "input_tokens": EXACT,
    "output_tokens": EXACT,
    "peak_in_flight": EXACT,
    "request_rate": RATE,
    "output_rate": RATE,
    **{f"{name}_{each}{MS}": FROM_SENT for name in ("ttft", "e2el") for each in STATISTICS},
    **{f"{name}_{each}{MS}": BETWEEN for name in ("tpot", "itl") for each in STATISTICS},
    # What the server saw, against what was asked for.
    "sent": EXACT,
    "sent_cheated": EXACT,
    "sent_rate": RATE,
    "sent_peak": EXACT,
    "sent_spread_ms": Tolerance(0.0, 250.0),
    "sent_input_tokens": Tolerance(0.03, 0.0),
    "sent_output_tokens": EXACT,
    "sent_distinct": EXACT,
    "sent_shared_prefix": Tolerance(0.0, 0.1),
}


class Range(NamedTuple):
    """A true figure; low and high differ where right conventions do."""

    low: float
    high: float

    @classmethod
    def of(cls, value: float) -> "Range":
        """Return the range of one value."""
        return cls(value, value)

    def off(self, value: float) -> float:
        """Return how far a value is outside."""
        return max(self.low - value, value - self.high, 0.0)


@dataclass
class Served:
    """One request and its answer, as the log has them.

    Attributes:
        line: The line of the request.
        early_ms: How long before the server read it the request may have come: since when the
            server was busy without a pause.
        writes_ns: The time of each write that showed tokens, and their number.
        ended_ns: When the last bytes were written; the arrival without any.
    """

    line: Mapping[str, Any]
    early_ms: float = 0.0
    writes_ns: list[tuple[int, int]] = field(default_factory=list)
    ended_ns: int = 0

    @property
    def arrival_ns(self) -> int:
        """When the request had come."""
        return int(self.line["arrival_ns"])

    @property
    def ok(self) -> bool:
        """Whether it was a complete answer, all of which was written."""
        return bool(self.line["ok"]) and self.shown == self.line["tokens"]

    @property
    def shown(self) -> int:
        """The tokens that were written."""
        return sum(tokens for _, tokens in self.writes_ns)

    @property
    def ttft_ms(self) -> float:
        """From the arrival to the first token."""
        return (self.writes_ns[0][0] - self.arrival_ns) / NS_PER_MS

    @property
    def e2el_ms(self) -> float:
        """From the arrival to the last token."""
        return (self.writes_ns[-1][0] - self.arrival_ns) / NS_PER_MS

    @property
    def tpot_ms(self) -> float:
        """Time per output token after the first."""
        return (self.e2el_ms - self.ttft_ms) / (self.shown - 1)

    @property
    def gaps_ms(self) -> list[float]:
        """Times between writes with tokens."""
        times = [at_ns for at_ns, _ in self.writes_ns]
        return [(later - at) / NS_PER_MS for at, later in itertools.pairwise(times)]


def read(log: Path) -> list[Served]:
    """Return the requests of a server's log, in the order in which they came."""
    requests: dict[int, Served] = {}
    busy_ns = last_ns = 0
    for text in log.read_bytes().splitlines():
        line = orjson.loads(text)
        at_ns = line.get("arrival_ns", line["t_ns"])
        if at_ns - last_ns > PAUSE_NS:
            busy_ns = at_ns
        last_ns = line["t_ns"]
        if "request" in line:
            early_ms = max(0, at_ns - busy_ns) / NS_PER_MS
            requests[line["request"]] = Served(line, early_ms, ended_ns=at_ns)
        elif "bytes" in line:
            served = requests[line["answer"]]
            served.ended_ns = line["t_ns"]
            if line["tokens"]:
                served.writes_ns.append((line["t_ns"], line["tokens"]))
    return list(requests.values())


def true_figures(requests: Sequence[Served]) -> dict[str, Range | None]:
    """Return what a tool should print of these requests; None: there is no such figure."""
    good = [served for served in requests if served.ok]
    counted = [served for served in good if served.writes_ns]
    latencies: dict[str, list[float]] = {
        "ttft": [served.ttft_ms for served in counted],
        "tpot": [served.tpot_ms for served in counted if served.shown > 1],
        "itl": [gap for served in counted for gap in served.gaps_ms],
        "e2el": [served.e2el_ms for served in counted],
    }
    earlier = {
        "ttft": [served.ttft_ms + served.early_ms for served in counted],
        "e2el": [served.e2el_ms + served.early_ms for served in counted],
    }
    figures: dict[str, Range | None] = {
        f"{name}_{statistic}{MS}": _statistic(values, earlier.get(name, values), statistic)
        for name, values in latencies.items()
        for statistic in STATISTICS
    }
    tokens = sum(served.shown + served.line["unseen"] for served in good)
    exact = {
        "completed": len(good),
        "failed": len(requests) - len(good),
        "input_tokens": sum(served.line["prompt_tokens"] for served in good),
        "output_tokens": tokens,
        "peak_in_flight": peak(requests),
    }
    duration_s = duration(requests)
    if duration_s:
        figures |= {
            "request_rate": Range.of(len(good) / duration_s),
            "output_rate": Range.of(tokens / duration_s),
        }
    return figures | {name: Range.of(value) for name, value in exact.items()}


def sent_figures(requests: Sequence[Served]) -> dict[str, float]:
    """Return what the server saw of the load."""
    arrivals = sorted(served.arrival_ns for served in requests)
    if not arrivals:
        return {SENT: 0.0}
    spread_ns = arrivals[-1] - arrivals[0]
    prompts = [str(served.line["prompt"]) for served in requests]
    lines = [served.line for served in requests]
    figures = {
        "sent": float(len(requests)),
        "sent_cheated": float(sum(line["cheats"] for line in lines)),
        "sent_spread_ms": spread_ns / NS_PER_MS,
        "sent_peak": float(peak(requests)),
        "sent_input_tokens": float(np.mean([line["prompt_tokens"] for line in lines])),
        "sent_output_tokens": float(np.mean([line["asked_tokens"] for line in lines])),
        "sent_distinct": len(set(prompts)) / len(prompts),
        "sent_shared_prefix": shared_prefix(prompts),
    }
    if spread_ns:
        figures["sent_rate"] = (len(arrivals) - 1) / spread_ns * NS_PER_S
    return figures


def asked_figures(load: Load, *, is_poisson: bool = False) -> dict[str, Range]:
    """Return what the server should have seen; of few Poisson arrivals the rate varies."""
    asked = {
        "sent": load.count,
        "sent_rate": load.rate,
        "sent_cheated": 0.0,
        "sent_spread_ms": 0.0,
        "sent_peak": load.streams or load.count,
        "sent_input_tokens": load.input_tokens,
        "sent_output_tokens": load.output_tokens,
        "sent_distinct": 1.0,
        "sent_shared_prefix": 0.0,
    }
    figures = {name: Range.of(value) for name, value in asked.items() if math.isfinite(value)}
    if is_poisson and "sent_rate" in figures:
        spread = DEVIATIONS * load.rate / math.sqrt(load.count)
        figures["sent_rate"] = Range(load.rate - spread, load.rate + spread)
    return figures


def duration(requests: Sequence[Served]) -> float:
    """Return the seconds from the first arrival to the last byte."""
    if not requests:
        return 0.0
    first = min(served.arrival_ns for served in requests)
    return (max(served.ended_ns for served in requests) - first) / NS_PER_S


def peak(requests: Iterable[Served]) -> int:
    """Return the most requests that were in flight at once."""
    moments = [
        moment
        for served in requests
        for moment in ((served.arrival_ns, 1), (max(served.ended_ns, served.arrival_ns + 1), -1))
    ]
    return max(itertools.accumulate(change for _, change in sorted(moments)), default=0)


def shared_prefix(prompts: Sequence[str]) -> float:
    """Return the mean share of a prompt that it has in common with its neighbor in the order of
    the alphabet, which shares the most.
    """
    ordered = sorted(prompts)
    shares = []
    for one, other in itertools.pairwise(ordered):
        common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
        length = min(len(one), len(other))
        shares.append((length if common is None else common) / max(length, 1))
    return float(np.mean(shares)) if shares else 0.0


def _statistic(least: Sequence[float], greatest: Sequence[float], statistic: str) -> Range | None:
    if not least:
        return None
    if statistic == "mean":
        return Range(float(np.mean(least)), float(np.mean(greatest)))
    share = float(statistic.removeprefix("p"))
    bounds = [
        float(np.percentile(values, share, method=method))
        for values in (least, greatest)
        for method in ("linear", "inverted_cdf")  # interpolated, and by rank
    ]
    return Range(min(bounds), max(bounds))
