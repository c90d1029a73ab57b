"""Answer: what changed from the baseline to a candidate, in one line that begins with a word.

The title of the page, its badge, the last line of the console, Markdown and JSON are all of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.confidence_interval import Basis
from loadgen.analysis.compare.finding import Finding, OtherSubject, findings, other_subjects
from loadgen.analysis.compare.metrics import ERROR_RATE, THROUGHPUT
from loadgen.analysis.compare.pair import Row
from loadgen.analysis.compare.side import MIN_STARTS, Side
from loadgen.analysis.compare.texts import (
    CONFIDENCE_TEXT,
    NO_VERDICT,
    SURE,
    UNKNOWN_NOISE,
    change,
    figure,
    figure_with_bounds,
    meanings_of_marks,
    no_success,
    start_word,
    values,
)
from loadgen.document import Answer, Colour, Part
from loadgen.report.run_state import MAX_NAMED
from loadgen.report.summary_line import VERDICT_COLOURS
from loadgen.util.number_format import first_of, percent

SEVERITY = ["", *VERDICT_COLOURS]  # another tool has no verdict
COUNTS = {2: "two"}  # of runs


class Word(StrEnum):
    """What an answer begins with."""

    MORE_ERRORS = "MORE ERRORS"
    FEWER_ERRORS = "FEWER ERRORS"
    SLOWER = "SLOWER"
    FASTER = "FASTER"
    MIXED = "MIXED"  # some subjects are better, some worse
    SAME = "THE SAME"  # each latency is, or each throughput where there is no latency
    UNDECIDED = "UNDECIDED"


COLOURS = {
    Word.MORE_ERRORS: Colour.RED,
    Word.SLOWER: Colour.RED,
    Word.MIXED: Colour.RED,
    Word.UNDECIDED: Colour.YELLOW,
}


@dataclass(frozen=True, slots=True)
class Change:
    """What changed, and how sure that is.

    Attributes:
        word: Its first word.
        answer: Its line, and what to do next.
        quoted: The rows whose figures it states.
    """

    word: Word
    answer: Answer
    quoted: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """What is sure about a candidate, or that nothing is; `text` continues its name."""

    word: Word
    text: str
    colour: Colour


def change_of(comparison: Comparison, candidate: CandidateRows) -> Change:
    """Return what changed from the baseline to a candidate.

    What is sure comes first, then what may be, what is the same and what is undecided, then what
    the figures are worth.
    """
    name = candidate.candidate.name
    errors = _error_change(candidate)
    changes, others = findings(candidate), other_subjects(candidate)
    statements = list(_statements(comparison, candidate, errors, changes))
    maybe = _listed("maybe", [finding for finding in changes if not finding.is_decided])
    same = [subject for subject in others if subject.is_same]
    open_rows = [subject.row for subject in others if not subject.is_same]
    unclear = ", ".join(map(figure_with_bounds, open_rows))
    details = [maybe, unclear and f"undecided: {unclear}"]
    if not statements:
        decisive = [subject for subject in others if subject.subject != THROUGHPUT] or others
        reason = _obstacle(comparison, candidate)
        if decisive and not reason and not changes and all(each.is_same for each in decisive):
            statements = [_same(comparison, candidate, decisive)]
            same = [subject for subject in same if subject not in decisive]
        else:
            statements = [_nothing_sure(reason or "; ".join(filter(None, (maybe, unclear))))]
            details = details if reason else []
    parts = [(f"{name} {statement.text}", statement.colour) for statement in statements]
    parts += [(detail, Colour.NONE) for detail in details if detail]
    if same:
        parts.append((_same_text("the same", same), Colour.NONE))
    quoted = [row for finding in changes for row in finding.shown]
    quoted += open_rows
    parts += [(meaning, Colour.YELLOW) for meaning in meanings_of_marks(quoted)]
    parts += _caveats(comparison, candidate)
    word = statements[0].word
    following = _next_step(comparison, candidate, word)
    simulated = bool(comparison.simulated_sides)
    return Change(word, Answer(tuple(parts), following, simulated), tuple(quoted))


def _next_step(comparison: Comparison, candidate: CandidateRows, word: Word) -> str:
    base, new = comparison.baseline, candidate.candidate
    unusable = [side.name for side in (base, new) if side.unusable_runs]
    if unusable:
        return f"measure {' and '.join(unusable)} again, to the end"
    if comparison.clashes:
        return "measure both with one load: other requests alone may explain a difference"
    if word in (Word.MORE_ERRORS, Word.FEWER_ERRORS) or candidate.unanswered:
        failed = base if base.has_unanswered_run or word is Word.FEWER_ERRORS else new
        file = failed.starts[0].where
        return f"see why requests of {failed.name} failed: `loadgen report {file}`"
    if not any(basis.is_of_starts for basis in candidate.bases):
        return (
            f"before you conclude, measure {MIN_STARTS} starts of each, in turn, and compare the "
            "folders of their results: a restart alone may change as much"
        )
    match word:
        case Word.FASTER:
            return f"adopt {new.name} for this load; compare your other loads as well"
        case Word.SLOWER:
            return f"keep {base.name}; look for the cause in what differs, since it is no chance"
        case Word.MIXED:
            return "decide which of them your users notice, and set limits on it: `--fail-if`"
        case Word.SAME:
            return f"take either: at this load {new.name} is neither slower nor faster"
    starts = 4 * min(len(base.starts), len(new.starts))
    return f"measure {starts} starts of each, which halves the intervals; conclude nothing before"


def _statements(
    comparison: Comparison,
    candidate: CandidateRows,
    errors: Row | None,
    changes: Sequence[Finding],
) -> Iterator[_Statement]:
    if errors is not None:
        word = Word.MORE_ERRORS if errors.is_worse else Word.FEWER_ERRORS
        text = f"has {word}: {change(errors)} (from {' to '.join(values(errors))})"
        yield _Statement(word, text, COLOURS.get(word, Colour.GREEN))
    if sure := [finding for finding in changes if finding.is_sure]:
        word = _direction(sure)
        yield _Statement(word, _listed(f"is {word}", sure), COLOURS.get(word, Colour.GREEN))
    if here := [finding for finding in changes if finding.is_here]:
        word = _direction(here)
        text = _listed(f"is {word.lower()} {_in_these_runs(comparison, candidate)}", here)
        yield _Statement(word, text, Colour.YELLOW)


def _error_change(candidate: CandidateRows) -> Row | None:
    """Return the row of the error rates if they differ; None for fewer errors beside a run in
    which no request succeeded, which is no improvement.
    """
    row = candidate.row(ERROR_RATE)
    if row is None or not (candidate.error_rates_differ or row.conclusion in SURE):
        return None
    return row if row.is_worse or not candidate.unanswered else None


def _direction(changes: Iterable[Finding]) -> Word:
    directions = {finding.is_worse for finding in changes}
    if len(directions) > 1:
        return Word.MIXED
    return Word.SLOWER if True in directions else Word.FASTER


def _listed(lead: str, changes: Sequence[Finding]) -> str:
    """Write a lead and some changes; those in both directions as worse and better; empty without
    any.
    """
    if not changes:
        return ""
    worse, better = (
        ", ".join(_finding(finding) for finding in changes if finding.is_worse is is_worse)
        for is_worse in (True, False)
    )
    figures = f"worse {worse}; better {better}" if worse and better else worse or better
    return f"{lead}: {figures}"


def _finding(finding: Finding) -> str:
    first, *others = finding.shown
    return ", ".join([figure_with_bounds(first), *map(figure, others)])


def _same_text(lead: str, subjects: Sequence[OtherSubject]) -> str:
    names = ", ".join(subject.name for subject in subjects)
    return f"{lead}: {names} within {percent(max(subject.reach for subject in subjects), 1)}"


def _same(
    comparison: Comparison, candidate: CandidateRows, subjects: Sequence[OtherSubject]
) -> _Statement:
    lead = f"is {Word.SAME}"
    if not any(basis.is_of_starts for basis in candidate.bases):
        lead = f"{lead.lower()} {_in_these_runs(comparison, candidate)}"
    return _Statement(Word.SAME, _same_text(lead, subjects), Colour.GREEN)


def _nothing_sure(why: str) -> _Statement:
    word = Word.UNDECIDED
    return _Statement(word, f"is {word}: {why or 'no number in common'}", COLOURS[word])


def _obstacle(comparison: Comparison, candidate: CandidateRows) -> str:
    """Say what prevents any word; empty if nothing does."""
    unusable = [
        f"{side.name} is {'partial' if any(run.partial for run in side.starts) else 'INVALID'}"
        for side in comparison.sides
        if side.unusable_runs
    ]
    if candidate.unanswered:
        unusable.append(no_success(candidate))
    return ", ".join(unusable)


def _in_these_runs(comparison: Comparison, candidate: CandidateRows) -> str:
    count = len(comparison.baseline.starts) + len(candidate.candidate.starts)
    return f"in these {COUNTS.get(count, count)} runs"


def _caveats(comparison: Comparison, candidate: CandidateRows) -> Iterator[Part]:
    """List what the figures are worth: the basis of the intervals, the verdicts, the workloads."""
    if candidate.bases or not candidate.error_rates_differ:
        yield _basis(comparison.baseline, candidate)
    overloaded = [
        side.name
        for side in (comparison.baseline, candidate.candidate)
        if any(run.overloaded for run in side.starts)
    ]
    if overloaded:
        yield f"{' and '.join(overloaded)} OVERLOADED: latencies grow with the run", Colour.YELLOW
    yield _verdicts(comparison.baseline, candidate.candidate)
    if candidate.error_rates_differ and not candidate.unanswered:
        yield "error rates differ, so the latencies cover different requests", Colour.RED
    if comparison.clashes:
        yield "different workloads", Colour.YELLOW
    if comparison.simulated_sides:
        yield "simulated engine", Colour.NONE


def _basis(baseline: Side, candidate: CandidateRows) -> Part:
    side, bases = candidate.candidate, candidate.bases
    counts = sorted({len(baseline.starts), len(side.starts)})
    if Basis.STARTS in bases:
        of_each = " of each" if len(counts) == 1 else ""
        starts = f"{' and '.join(map(str, counts))} {start_word(baseline, side)}{of_each}"
        return f"{CONFIDENCE_TEXT} intervals from {starts}", Colour.NONE
    if Basis.NOISE in bases:
        return f"{CONFIDENCE_TEXT} intervals from the noise of other starts", Colour.NONE
    if bases:
        return UNKNOWN_NOISE, Colour.YELLOW
    return "no intervals: this may be chance", Colour.YELLOW


def _verdicts(baseline: Side, candidate: Side) -> Part:
    """Write the verdicts of the runs, and why: "all VALID", "base SUSPECT, new VALID: loop
    stalls".
    """
    sides = (baseline, candidate)
    verdict, other = map(_verdict, sides)
    text = f"{baseline.name} {verdict}, {candidate.name} {other}"
    if verdict == other:
        text = f"both sides {verdict}" if "(" in verdict else f"all {verdict}"
    checks = dict.fromkeys(
        name for side in sides for run in side.starts for name in run.failed_checks
    )
    text += f": {first_of(list(checks), MAX_NAMED)}" if checks else ""
    worst = max((run.verdict for side in sides for run in side.starts), key=SEVERITY.index)
    is_partial = any(run.partial for side in sides for run in side.starts)
    return text, Colour.RED if is_partial else VERDICT_COLOURS.get(worst, Colour.NONE)


def _verdict(side: Side) -> str:
    worst = max((run.verdict for run in side.starts), key=SEVERITY.index)
    count, runs = sum(run.verdict == worst for run in side.starts), len(side.starts)
    text = worst or NO_VERDICT
    if count < runs:
        text += f" ({count} of {runs} runs)"
    if any(run.partial for run in side.starts):
        text += " and partial"
    return text
