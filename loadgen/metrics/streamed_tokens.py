"""Tokens in the text of a sample of answers, compared with those that usage counts."""

from collections.abc import Iterable
from typing import Self

from msgspec import Struct, structs

from loadgen.core.answer import BY_USAGE
from loadgen.core.histogram import Histogram
from loadgen.core.record import Record
from loadgen.metrics.snapshot import SampledAnswer, Snapshot

# A server counts marks and end tokens that it never streams, and text does not always become the
# same tokens again.
MAX_UNSEEN_SHARE, MAX_UNSEEN = 0.1, 8


def is_in_doubt(sample: Iterable[Record]) -> bool:
    """Return whether usage counts more than one token for each event, so that only the text tells
    what was streamed.
    """
    whole = [record for record in sample if record.counted_by != BY_USAGE]
    return differ((_to_stream(record), record.counted) for record in whole)


def sampled(record: Record, streamed: int) -> SampledAnswer:
    """Make the sampled answer of a record whose text has `streamed` tokens."""
    streamed += record.silent_events  # tokens without text
    after_first = max(0, streamed - record.first_tokens) if record.events > 1 else 0
    span_ns = record.last_token - record.first_token
    return SampledAnswer(_to_stream(record), streamed, after_first, span_ns, *record.span_bounds_ns)


class Comparison(Struct, frozen=True):
    """Tokens by usage beside tokens in the text.

    Attributes:
        answers: How many there are.
        counted: Their median of tokens by usage, without those that usage itself calls hidden.
        streamed: Their median of tokens in the text.
        difference: The median of what usage counts beyond the text.
        hides: Whether that is so much that TPOT is taken over the streamed tokens of these answers.
    """

    answers: int
    counted: float
    streamed: float
    difference: float
    hides: bool

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self | None:
        """Compare a run's sample; None where no text was tokenized."""
        pairs = [(answer.counted, answer.streamed) for answer in snapshot.sample]
        if not pairs:
            return None
        counted, streamed, difference = _medians((more, less, more - less) for more, less in pairs)
        return cls(len(pairs), counted, streamed, difference, differ(pairs))


def differ(pairs: Iterable[tuple[int, int]]) -> bool:
    """Return whether the first numbers exceed the second, in the median, by more than a server
    may leave unseen.
    """
    beyond = [(more - less, (more - less) / max(less, 1)) for more, less in pairs]
    if max((tokens for tokens, _ in beyond), default=0) <= MAX_UNSEEN:  # so is the median
        return False
    tokens, share = _medians(beyond)
    return tokens > MAX_UNSEEN and share > MAX_UNSEEN_SHARE


def _medians(rows: Iterable[tuple[float, ...]]) -> list[float]:
    from statistics import median  # not before: it is slow to import

    return [median(column) for column in zip(*rows, strict=True)]


def with_sampled_tpot(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with TPOT over the streamed tokens of the sample, where usage counts tokens
    never streamed.

    Whether it does is a matter of the whole sample, so that all targets and classes have the same
    TPOT.
    """
    comparison = Comparison.of(snapshot)
    return _over_sample(snapshot) if comparison is not None and comparison.hides else snapshot


def _over_sample(snapshot: Snapshot) -> Snapshot:
    shown = [answer for answer in snapshot.sample if answer.after_first]
    points = Histogram()
    lower = Histogram()
    upper = Histogram()
    for answer in shown:
        points.record(answer.span_ns // answer.after_first)
        lower.record(answer.least_span_ns // answer.after_first)
        upper.record(answer.greatest_span_ns // answer.after_first)
    decoding = {
        "decode_ns": sum(answer.span_ns for answer in shown),
        "decode_tokens": sum(answer.after_first for answer in shown),
    }
    return structs.replace(
        snapshot,
        histograms=snapshot.histograms | {"tpot": points},
        lower=snapshot.lower | {"tpot": lower},
        upper=snapshot.upper | {"tpot": upper},
        counters=snapshot.counters | decoding,
        targets=tuple(map(_over_sample, snapshot.targets)),
        classes=tuple(map(_over_sample, snapshot.classes)),
    )


def _to_stream(record: Record) -> int:
    return record.completion_tokens - record.hidden_tokens
