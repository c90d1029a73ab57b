"""Exposition: what a server says of itself, read into quantities that have the same name for every engine."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson

from loadgen.metrics.server.names import PLAIN, REPEATED, SAMPLES, TTFT, together
from loadgen.metrics.server.prom_histogram import Buckets

Sample = tuple[str, dict[str, str], float]  # name, labels, value
_NAMES = tuple(sorted(name.encode() for name in SAMPLES))
_OF_ITERATIONS = ("numActiveRequests", "numQueuedRequests")


@dataclass(frozen=True)
class Reading:
    """What one answer says.

    Attributes:
        values: By the neutral names of `metric_names`; what was not told, or is no finite number, is missing.
        names: How the server spells each of them, and "ttft".
        ttft: Its own times to first token since it started, in seconds, where it keeps them.
    """

    values: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    ttft: Buckets | None = None


class Unreadable(ValueError):
    """An answer that is neither Prometheus' text format nor TensorRT-LLM's iteration statistics."""


def read(body: bytes) -> Reading:
    """What an answer says, whichever engine gave it; nothing where it has none of the known names.

    Only lines with known names are parsed: a server may have thousands of others.

    Raises:
        Unreadable: A line with a known name cannot be parsed, or the JSON is none of iteration statistics.
    """
    if is_json(body):
        return _reading(_of_iterations(body))
    return _reading(_of_text(b"\n".join(line for line in body.splitlines() if line.startswith(_NAMES))))


def is_text(body: bytes) -> bool:
    """Whether all of an answer is Prometheus' text format, with a value at least, of whatever name."""
    try:
        return bool(_of_text(body))
    except Unreadable:
        return False


def is_json(body: bytes) -> bool:
    """Whether an answer is TensorRT-LLM's iteration statistics, judging by its first byte."""
    return body.lstrip()[:1] == b"["


def _of_text(text: bytes) -> list[Sample]:
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = text_string_to_metric_families(text.decode())
        return [(sample.name, sample.labels, float(sample.value)) for family in families for sample in family.samples]
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise Unreadable("no Prometheus text") from error


def _of_iterations(body: bytes) -> list[Sample]:
    """The last of the iterations that the engine made since somebody asked before; nothing where it made none."""
    try:
        told = orjson.loads(body)
        if not told:
            return []
        last = told[-1]
        samples: list[Sample] = [(name, {}, float(last[name])) for name in _OF_ITERATIONS]
        if blocks := last.get("kvCacheStats", {}).get("maxNumBlocks"):
            used = last["kvCacheStats"]["usedNumBlocks"]
            samples.append(("kvCacheStats.usedNumBlocks / maxNumBlocks", {}, used / blocks))
        return samples
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unreadable("no iteration statistics") from error


def _reading(samples: Iterable[Sample]) -> Reading:
    told: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, labels, value in samples:
        if all(labels.get(label, only) == only for label, only in REPEATED.items()):
            told.setdefault(name, []).append((labels, value))
    values, names = {}, {}
    for quantity, spellings in PLAIN.items():
        for spelling in spellings:
            seen = [value for _, value in told.get(spelling, ()) if math.isfinite(value)]
            if seen:
                values[quantity], names[quantity] = together(quantity, seen), spelling
                break
    for name in TTFT:
        sums, counts = ([value for _, value in told.get(name + part, ())] for part in ("_sum", "_count"))
        upto: dict[float, float] = {}
        for bound, count in _bounds(told.get(f"{name}_bucket", ())):
            upto[bound] = upto.get(bound, 0.0) + count
        if sums and counts and all(map(math.isfinite, (*sums, *counts, *upto.values()))):
            return Reading(values, names | {"ttft": name}, Buckets(sum(counts), sum(sums), upto))
    return Reading(values, names)


def _bounds(samples: Iterable[tuple[dict[str, str], float]]) -> Iterator[tuple[float, float]]:
    for labels, count in samples:
        try:
            bound = float(labels["le"])
        except (KeyError, ValueError) as error:
            raise Unreadable("a bucket without a bound") from error
        if not math.isnan(bound):
            yield bound, count
