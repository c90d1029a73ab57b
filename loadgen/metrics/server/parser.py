"""Parses server metrics into quantities that have the same name for every engine."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson

from loadgen.metrics.server.names import (
    ABORTED,
    ABORTED_LABEL,
    ACCEPTED_AT,
    PER_POSITION,
    PLAIN,
    REPEATED,
    SAMPLES,
    TTFT,
    together,
)
from loadgen.metrics.server.prom_histogram import PromHistogram
from loadgen.metrics.server.prometheus_text import Sample, samples

_NAMES = frozenset(name.encode() for name in SAMPLES)
_LINE = re.compile(rb"^[ \t]*([\w:]+).*", re.MULTILINE)  # with the name of its metric
_OF_ITERATIONS = ("numActiveRequests", "numQueuedRequests")


@dataclass(frozen=True)
class Reading:
    """The quantities in one answer.

    Attributes:
        values: By the neutral names of `names`; without those that are missing, or no finite number.
        names: How the server spells each of them, and "ttft".
        ttft: Its own times to first token since it started, in seconds, where it keeps them.
    """

    values: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    ttft: PromHistogram | None = None


class Unreadable(ValueError):
    """An answer that is neither Prometheus' text format nor TensorRT-LLM's iteration statistics."""


def read(body: bytes) -> Reading:
    """Parse the answer of any engine; the reading is empty where it has none of the known names.

    Raises:
        Unreadable: A line with a known name cannot be parsed, or the JSON is none of iteration statistics.
    """
    # Only lines with known names are parsed: a server may have thousands of others.
    if is_json(body):
        return _reading(_of_iterations(body))
    return _reading(_of_text(b"\n".join(line[0] for line in _LINE.finditer(body) if line[1] in _NAMES)))


def is_text(body: bytes) -> bool:
    """Return whether an answer is Prometheus' text format with at least one value, of any name."""
    try:
        return bool(_of_text(body))
    except Unreadable:
        return False


def is_json(body: bytes) -> bool:
    """Return whether an answer is TensorRT-LLM's iteration statistics, by its first byte."""
    return body.lstrip()[:1] == b"["


def _of_text(text: bytes) -> list[Sample]:
    try:
        return samples(text.decode())
    except ValueError as error:
        raise Unreadable(str(error)) from error


def _of_iterations(body: bytes) -> list[Sample]:
    """Return the samples of the engine's last iteration since the answer before; none where there was no iteration."""
    try:
        iterations = orjson.loads(body)
        if not iterations:
            return []
        last = iterations[-1]
        found: list[Sample] = [(name, {}, float(last[name])) for name in _OF_ITERATIONS]
        if blocks := last.get("kvCacheStats", {}).get("maxNumBlocks"):
            used = last["kvCacheStats"]["usedNumBlocks"]
            found.append(("kvCacheStats.usedNumBlocks / maxNumBlocks", {}, used / blocks))
        return found
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unreadable("no iteration statistics") from error


def _reading(samples: Iterable[Sample]) -> Reading:
    by_name: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, labels, value in samples:
        if all(labels.get(label, only) == only for label, only in REPEATED.items()):
            by_name.setdefault(name, []).append((labels, value))
    values, names = {}, {}
    for quantity, spellings in PLAIN.items():
        for spelling in spellings:
            seen = [value for _, value in by_name.get(spelling, ()) if math.isfinite(value)]
            if seen:
                values[quantity], names[quantity] = together(quantity, seen), spelling
                break
    label, reason = ABORTED_LABEL
    aborted = [value for labels, value in by_name.get(ABORTED, ()) if labels.get(label) == reason]
    if aborted and all(map(math.isfinite, aborted)):
        values["aborted"], names["aborted"] = sum(aborted), ABORTED
    for labels, value in by_name.get(PER_POSITION, ()):
        if (position := labels.get("position", "")).isdecimal() and math.isfinite(value):
            quantity = f"{ACCEPTED_AT}{int(position)}"
            values[quantity], names[quantity] = values.get(quantity, 0.0) + value, PER_POSITION
    for name in TTFT:
        sums, counts = ([value for _, value in by_name.get(name + part, ())] for part in ("_sum", "_count"))
        upto: dict[float, float] = {}
        for bound, count in _bounds(by_name.get(f"{name}_bucket", ())):
            upto[bound] = upto.get(bound, 0.0) + count
        if sums and counts and all(map(math.isfinite, (*sums, *counts, *upto.values()))):
            return Reading(values, names | {"ttft": name}, PromHistogram(sum(counts), sum(sums), upto))
    return Reading(values, names)


def _bounds(samples: Iterable[tuple[dict[str, str], float]]) -> Iterator[tuple[float, float]]:
    for labels, count in samples:
        try:
            bound = float(labels["le"])
        except (KeyError, ValueError) as error:
            raise Unreadable("a bucket without a bound") from error
        if not math.isnan(bound):
            yield bound, count
