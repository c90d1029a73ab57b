"""Finding: a subject of a comparison that changed in one direction, with the row that represents
it.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from loadgen.analysis.compare.comparison import CandidateRows
from loadgen.analysis.compare.metrics import ERROR_RATE
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.analysis.compare.texts import HERE, SAME_WITHIN, SIGNIFICANT, SURE
from loadgen.report.sections.latencies import FEW

# Of rows that are equally sure the first represents its subject. The median is what most requests
# see, and has the least noise; the mean contains all requests; the tails come from the fewest
# values. A tail that moved by more is named as well (`Finding.shown`).
PREFERENCE = (
    *("goodput", "output_throughput", "request_throughput", "total_throughput"),
    *("p50", "median", "mean", "p90", "p99", "max"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A subject that changed in one direction.

    Attributes:
        rows: Its surest rows of this direction, the preferred one first.
    """

    rows: tuple[Row, ...]

    @property
    def row(self) -> Row:
        """The row that represents it."""
        return self.rows[0]

    @property
    def is_worse(self) -> bool:
        """Its direction."""
        return bool(self.row.is_worse)

    @property
    def is_sure(self) -> bool:
        """Whether the variation between starts, and all tests, are allowed for."""
        return self.row.conclusion in SURE

    @property
    def is_here(self) -> bool:
        """Whether it is sure of these runs only."""
        return self.row.conclusion in HERE

    @property
    def is_decided(self) -> bool:
        """Whether it is one of both."""
        return self.is_sure or self.is_here

    @property
    def shown(self) -> list[Row]:
        """`row`, and the row that changed most if its whole interval is beyond that of `row`."""
        most = max(self.rows, key=lambda row: abs(row.change or 0.0))
        is_beyond = min(_reaches(most)) > max(_reaches(self.row))
        return [self.row, most] if is_beyond else [self.row]


@dataclass(frozen=True, slots=True)
class OtherSubject:
    """A subject without a finding.

    Attributes:
        rows: Its rows, the preferred one first.
    """

    rows: tuple[Row, ...]

    @property
    def subject(self) -> str:
        """What its rows are numbers of."""
        return self.rows[0].metric.subject

    @property
    def name(self) -> str:
        """The name of the subject, for people."""
        return self.subject.upper() if self.rows[0].metric.latency else self.subject

    @property
    def reach(self) -> float:
        """How far the intervals of all rows are from 0 at most; infinite if a row has none."""
        return max(max(_reaches(row)) for row in self.rows)

    @property
    def is_same(self) -> bool:
        """Whether all rows are known to be the same."""
        return self.reach <= SAME_WITHIN

    @property
    def same_row(self) -> Row | None:
        """The preferred row, if it is known to be the same."""
        return self.rows[0] if max(_reaches(self.rows[0])) <= SAME_WITHIN else None

    @property
    def same_name(self) -> str:
        """The name of what is known to be the same: the subject, or its preferred row."""
        return self.name if self.is_same else self.rows[0].metric.title

    @property
    def same_reach(self) -> float:
        """How far the intervals of what is known to be the same are from 0 at most."""
        return self.reach if self.is_same else max(_reaches(self.rows[0]))

    @property
    def row(self) -> Row | None:
        """The preferred row that is not known to be the same and has enough requests; one with an
        interval first. None if there is none.
        """
        usable = [row for row in self._unsure if FEW not in row.marks]
        return next((row for row in usable if row.bounds), usable[0] if usable else None)

    @property
    def too_few(self) -> str:
        """Its statistics that have too few requests to be known to be the same: "p90 and p99"."""
        return " and ".join(row.metric.statistic for row in self._unsure if FEW in row.marks)

    @property
    def _unsure(self) -> list[Row]:
        return [row for row in self.rows if max(_reaches(row)) > SAME_WITHIN]


def findings(candidate: CandidateRows) -> list[Finding]:
    """List what changed, each subject once for each direction in which rows of it are significant.

    If some run answered nothing, nothing is an improvement.
    """
    groups: dict[tuple[str, bool], list[Row]] = {}
    for row in _changed_rows(candidate):
        if row.conclusion in SIGNIFICANT and row.is_worse is not None:
            groups.setdefault((row.metric.subject, row.is_worse), []).append(row)
    found = [Finding(tuple(_surest(rows))) for rows in groups.values()]
    return [finding for finding in found if finding.is_worse or not candidate.unanswered]


def other_subjects(candidate: CandidateRows) -> list[OtherSubject]:
    """List the rates and latencies of which no row is significant; without latencies if these are
    of different requests, and none if some run answered nothing.
    """
    if candidate.unanswered:
        return []
    subjects: dict[str, list[Row]] = {}
    for row in _changed_rows(candidate):
        is_comparable = not (candidate.error_rates_differ and row.metric.of_successes)
        if is_comparable and not row.metric.from_server:
            subjects.setdefault(row.metric.subject, []).append(row)
    return [
        OtherSubject(tuple(sorted(rows, key=_preference)))
        for rows in subjects.values()
        if not any(row.conclusion in SIGNIFICANT for row in rows)
    ]


def _changed_rows(candidate: CandidateRows) -> Iterator[Row]:
    rows = (row for row in candidate.rows if row.change is not None)
    return (row for row in rows if row.metric.name != ERROR_RATE)


def _surest(rows: Iterable[Row]) -> list[Row]:
    ordered = sorted(rows, key=lambda row: (_doubt(row), _preference(row)))
    return [row for row in ordered if _doubt(row) == _doubt(ordered[0])]


def _doubt(row: Row) -> int:
    return next(
        doubt
        for doubt, words in enumerate((SURE, HERE, (Conclusion.MAYBE,)))
        if row.conclusion in words
    )


def _preference(row: Row) -> int:
    name = row.metric.statistic or row.metric.name
    return PREFERENCE.index(name) if name in PREFERENCE else len(PREFERENCE)


def _reaches(row: Row) -> tuple[float, float]:
    """Return how far both bounds of the change are from 0; infinite without an interval."""
    low, high = row.bounds or (math.inf, math.inf)
    return abs(low), abs(high)
