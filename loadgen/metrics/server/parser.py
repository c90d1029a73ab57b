"""Parses server metrics into quantities that have the same name for every engine."""

import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain

import orjson
from msgspec import Struct, field

from loadgen.metrics.server.names import (
    ACCEPTED_AT,
    PER_POSITION,
    PLAIN,
    REPEATED,
    SAMPLES,
    TTFT,
    UNTYPED,
    together,
)
from loadgen.metrics.server.series import PromHistogram
from loadgen.workload.prefix_cache.cache_block import CacheBlock

Sample = tuple[str, dict[str, str], float]  # name, labels, value
OPENMETRICS = "application/openmetrics-text"
_NAMES = frozenset(name.encode() for name in SAMPLES)
# Metrics as OpenMetrics names them where it states their types: without the suffixes of samples.
# The types of those of whose samples some are left out would make the others wrong.
_FAMILIES = _NAMES | {
    re.sub("_(total|bucket|count|sum)$", "", name).encode() for name in SAMPLES - UNTYPED
}
_SAMPLE_LINE = re.compile(rb"^[ \t]*([\w:]+).*", re.MULTILINE)  # with the name of its metric
_TYPED_LINE = re.compile(rb"^(?:# TYPE )?([\w:]+).*|^# EOF$", re.MULTILINE)
_OF_ITERATIONS = ("numActiveRequests", "numQueuedRequests")


class Reading(Struct, frozen=True):
    """The quantities in one answer.

    Attributes:
        values: By the neutral names of `names`; without those that are missing, or no finite
            number.
        names: How the server spells each of them, and "ttft".
        ttft: The server's own times to first token since it started, in seconds, where it keeps
            them.
    """

    values: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    ttft: PromHistogram | None = None


class Unreadable(ValueError):
    """An answer that is neither a text of Prometheus nor TensorRT-LLM's iteration statistics."""


def read(body: bytes, content_type: str = "") -> Reading:
    """Parse the answer of any engine.

    Only lines with known names are parsed: a server may have thousands of others.

    Args:
        body: The answer.
        content_type: Its Content-Type header, which tells OpenMetrics from Prometheus' text format.

    Returns:
        The quantities; none where the answer has no known name.

    Raises:
        Unreadable: A line with a known name cannot be parsed, or the JSON is none of iteration
            statistics.
    """
    if is_json(body):
        return _reading(_samples_of_iterations(body))
    if content_type.startswith(OPENMETRICS):
        lines = (
            line[0]
            for line in _TYPED_LINE.finditer(body)
            if line[1] is None or line[1] in _FAMILIES
        )
    else:  # without types: the parser would add _total to names of counters that lack it
        lines = (line[0] for line in _SAMPLE_LINE.finditer(body) if line[1] in _NAMES)
    return _reading(_samples(b"\n".join(lines), content_type))


def is_text(body: bytes, content_type: str = "") -> bool:
    """Return whether an answer is a text of Prometheus with at least one value, of any name.

    Args:
        body: The answer.
        content_type: As in `read`.
    """
    try:
        return bool(_samples(body, content_type))
    except Unreadable:
        return False


def is_json(body: bytes) -> bool:
    """Return whether an answer is TensorRT-LLM's iteration statistics, by its first byte."""
    return body.lstrip()[:1] == b"["


def _samples(text: bytes, content_type: str) -> list[Sample]:
    """Return the samples of a text, without timestamps and exemplars."""
    if content_type.startswith(OPENMETRICS):
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    else:
        from prometheus_client.parser import text_string_to_metric_families
    try:
        families = text_string_to_metric_families(text.decode())  # type: ignore[no-untyped-call]  # of OpenMetrics
        samples = chain.from_iterable(family.samples for family in families)
        return [(sample.name, sample.labels, float(sample.value)) for sample in samples]
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:  # as the parser raises them
        raise Unreadable(f"no text of Prometheus: {error}") from error


def _samples_of_iterations(body: bytes) -> list[Sample]:
    """Return the samples of the engine's last iteration since the answer before; none where
    there was no iteration.
    """
    try:
        iterations = orjson.loads(body)
        if not iterations:
            return []
        last = iterations[-1]
        samples: list[Sample] = [(name, {}, float(last[name])) for name in _OF_ITERATIONS]
        if blocks := last.get("kvCacheStats", {}).get("maxNumBlocks"):
            used = last["kvCacheStats"]["usedNumBlocks"]
            samples.append(("kvCacheStats.usedNumBlocks / maxNumBlocks", {}, used / blocks))
        return samples
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unreadable("no iteration statistics") from error


def _reading(samples: Iterable[Sample]) -> Reading:
    by_name: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, labels, value in samples:
        if all(labels.get(label, counted) == counted for label, counted in REPEATED.items()):
            by_name.setdefault(name, []).append((labels, value))
    values: dict[str, float] = {}
    names: dict[str, str] = {}
    for quantity, spellings in PLAIN.items():
        for spelling in spellings:
            name, _, label = spelling.partition("{")
            finite = [
                value
                for labels, value in by_name.get(name, ())
                if math.isfinite(value) and _has(labels, label)
            ]
            if finite:
                values[quantity] = together(quantity, finite)
                names[quantity] = spelling
                break
    for labels, value in by_name.get(PER_POSITION, ()):
        if (position := labels.get("position", "")).isdecimal() and math.isfinite(value):
            quantity = f"{ACCEPTED_AT}{int(position)}"
            values[quantity] = values.get(quantity, 0.0) + value
            names[quantity] = PER_POSITION
    for name in TTFT:
        sums, counts = (
            [value for _, value in by_name.get(name + part, ())] for part in ("_sum", "_count")
        )
        upto: dict[float, float] = {}
        for bound, count in _bounds(by_name.get(f"{name}_bucket", ())):
            upto[bound] = upto.get(bound, 0.0) + count
        if sums and counts and all(map(math.isfinite, (*sums, *counts, *upto.values()))):
            return Reading(
                values, names | {"ttft": name}, PromHistogram(sum(counts), sum(sums), upto)
            )
    return Reading(values, names)


def _has(labels: dict[str, str], wanted: str) -> bool:
    """Return whether a series has the label that a name asks for, `LABEL=VALUE}`; empty: none."""
    name, _, value = wanted.removesuffix("}").partition("=")
    return not name or labels.get(name) == value


def _bounds(samples: Iterable[tuple[dict[str, str], float]]) -> Iterator[tuple[float, float]]:
    for labels, count in samples:
        try:
            bound = float(labels["le"])
        except (KeyError, ValueError) as error:
            raise Unreadable("a bucket without a bound") from error
        if not math.isnan(bound):
            yield bound, count


# -- the unit of a prefix cache

CACHE_CONFIG_OF_VLLM = "vllm:cache_config_info"
# A label or value of a metric, as in vLLM 0.32, SGLang 0.5 and TensorRT-LLM 1.2.
_BLOCK_SIZES = {
    CACHE_CONFIG_OF_VLLM: rb'\{[^}\n]*\bblock_size="(\d+)"',
    "sglang:cache_config_info": rb'\{[^}\n]*\bpage_size="(\d+)"',
    "trtllm_kv_cache_tokens_per_block": rb"(?:\{[^}\n]*\})? (\d+)(?:\.0)?\s",
}
_BLOCK_LINES = {
    name: re.compile(b"^" + name.encode() + rest, re.MULTILINE)
    for name, rest in _BLOCK_SIZES.items()
}
# Of a server whose cache has no blocks, but single tokens.
_LLAMA_CPP_LINE = re.compile(rb"^llamacpp:", re.MULTILINE)


def cache_block(body: bytes) -> CacheBlock | None:
    """Return the block size of the server's prefix cache; None if the answer does not have it.

    Args:
        body: An answer with metrics, of any engine.
    """
    for name, pattern in _BLOCK_LINES.items():
        if (size := pattern.search(body)) and int(size[1]) > 0:
            return CacheBlock(int(size[1]), name)
    return CacheBlock(1, "llama.cpp, which has no blocks") if _LLAMA_CPP_LINE.search(body) else None
