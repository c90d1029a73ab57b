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
from loadgen.report.run_state import more_reasons
from loadgen.report.sections import next_step
from loadgen.report.summary_line import SIMULATED, VERDICT_COLOURS
from loadgen.util.number_format import percent

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
    """What is sure about a candidate, or that nothing is."""

    word: Word
    text: str
    colour: Colour


def change_of(comparison: Comparison, candidate: CandidateRows) -> Change:
    """Return what changed from the baseline to a candidate.

    What is sure comes first, then what may be, what is the same and what is undecided, then what
    the figures are worth.
    """
    errors = _error_change(candidate)
    changes, others = findings(candidate), other_subjects(candidate)
    statements = list(_statements(comparison, candidate, errors, changes))
    unproven = [finding for finding in changes if not finding.is_decided]
    perhaps = _listed(f"perhaps {_direction(unproven).lower()}", unproven)
    same = [subject for subject in others if subject.is_same or subject.same_row]
    unsure = [subject for subject in others if not subject.is_same]
    open_rows = [row for subject in unsure if (row := subject.row) is not None]
    unclear = ", ".join(map(figure_with_bounds, open_rows))
    details = [perhaps, unclear and f"undecided: {unclear}", _too_few(unsure)]
    if not statements:
        decisive = [subject for subject in others if subject.subject != THROUGHPUT] or others
        reason = _obstacle(comparison, candidate)
        if decisive and not reason and not changes and all(each.is_same for each in decisive):
            statements = [_same(comparison, candidate, decisive)]
            same = [subject for subject in same if subject not in decisive]
        else:
            statements = [_nothing_sure(comparison, candidate, reason)]
    parts = [(statement.text, statement.colour) for statement in statements]
    if same:
        details.insert(0 if statements[0].word is Word.UNDECIDED else 2, _same_text(same))
    parts += [(detail, Colour.NONE) for detail in details if detail]
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
    unusable = [side.quoted for side in (base, new) if side.unusable_runs]
    if unusable:
        return f"measure {' and '.join(unusable)} again, to the end"
    if comparison.clashes:
        return "measure both with one load: other requests alone may explain a difference"
    if word in (Word.MORE_ERRORS, Word.FEWER_ERRORS) or candidate.unanswered:
        failed = base if base.has_unanswered_run or word is Word.FEWER_ERRORS else new
        file = failed.starts[0].where
        return f"see why requests of {failed.quoted} failed: `loadgen report {file}`"
    step = _of_valid_runs(base, candidate, word)
    return next_step.once_valid(step, _failed_checks((base, new)), _worst((base, new)))


def _of_valid_runs(base: Side, candidate: CandidateRows, word: Word) -> str:
    new = candidate.candidate
    if not any(basis.is_of_starts for basis in candidate.bases):
        return (
            f"before you draw a conclusion, measure {MIN_STARTS} server starts of each, in turn, "
            "and compare the folders of their results: a restart alone may change as much"
        )
    match word:
        case Word.FASTER:
            return f"switch to {new.quoted} for this load; compare your other loads as well"
        case Word.SLOWER:
            what = "the setting that differs" if candidate.differences else "what is not recorded"
            return f"stay with {base.quoted}; look for the cause in {what}"
        case Word.MIXED:
            return "decide which of them your users notice, and set limits on it: `--fail-if`"
        case Word.SAME:
            return f"take either: at this load {new.quoted} is neither slower nor faster"
    starts = 4 * min(len(base.starts), len(new.starts))
    more = ", with more requests in each run" if _too_few(other_subjects(candidate)) else ""
    return (
        f"measure {starts} server starts of each{more}, which halves the intervals; until then, "
        "do not draw a conclusion"
    )


def _statements(
    comparison: Comparison,
    candidate: CandidateRows,
    errors: Row | None,
    changes: Sequence[Finding],
) -> Iterator[_Statement]:
    name = candidate.candidate.quoted
    if errors is not None:
        word = Word.MORE_ERRORS if errors.is_worse else Word.FEWER_ERRORS
        text = f"{name} has {word}: {change(errors)} (from {' to '.join(values(errors))})"
        yield _Statement(word, text, COLOURS.get(word, Colour.GREEN))
    if sure := [finding for finding in changes if finding.is_sure]:
        word = _direction(sure)
        yield from _ranked(word, f"{name} is {word}", sure, COLOURS.get(word, Colour.GREEN))
    if here := [finding for finding in changes if finding.is_here]:
        word = _direction(here)
        where = _in_these_runs(comparison, candidate)
        yield from _ranked(word, f"{name} is {word.lower()} {where}", here, Colour.YELLOW)


def _ranked(
    word: Word, lead: str, changes: Sequence[Finding], colour: Colour
) -> Iterator[_Statement]:
    """State the largest change of each direction, then the others; what the server reports comes
    after what was measured.
    """
    ranked = sorted(
        changes,
        key=lambda each: (each.row.metric.from_server, -round(abs(each.row.change or 0.0), 2)),
    )
    main = [
        next(finding for finding in ranked if finding.is_worse is is_worse)
        for is_worse in {finding.is_worse for finding in ranked}
    ]
    yield _Statement(word, _listed(lead, main), colour)
    if others := [finding for finding in ranked if finding not in main]:
        text = _listed(f"also {_direction(others).lower()}", others)
        yield _Statement(word, text, Colour.NONE)


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


def _same_text(subjects: Sequence[OtherSubject], lead: str = "the same") -> str:
    names = ", ".join(subject.same_name for subject in subjects)
    return f"{lead}: {names} within {percent(max(each.same_reach for each in subjects), 1)}"


def _too_few(subjects: Sequence[OtherSubject]) -> str:
    """Name the figures that have too few requests to be decided; empty if none has."""
    names = dict[str, list[str]]()
    for subject in subjects:
        if subject.too_few:
            names.setdefault(subject.too_few, []).append(subject.name)
    few = "; ".join(f"{statistics} of {', '.join(of)}" for statistics, of in names.items())
    return f"too few requests for {few}" if few else ""


def _same(
    comparison: Comparison, candidate: CandidateRows, subjects: Sequence[OtherSubject]
) -> _Statement:
    name = candidate.candidate.quoted
    lead = f"{name} is {Word.SAME}"
    if not any(basis.is_of_starts for basis in candidate.bases):
        lead = f"{name} is {Word.SAME.lower()} {_in_these_runs(comparison, candidate)}"
    return _Statement(Word.SAME, _same_text(subjects, lead), Colour.GREEN)


def _nothing_sure(comparison: Comparison, candidate: CandidateRows, obstacle: str) -> _Statement:
    sides = f"{comparison.baseline.quoted} and {candidate.candidate.quoted}"
    why = f"no significant difference between {sides}"
    if not any(_changes(candidate)):
        why = f"{sides} have no number in common"
    word = Word.UNDECIDED
    return _Statement(word, f"{word}: {obstacle or why}", COLOURS[word])


def _changes(candidate: CandidateRows) -> Iterator[Row]:
    return (row for row in candidate.rows if row.change is not None)


def _obstacle(comparison: Comparison, candidate: CandidateRows) -> str:
    """Say what prevents any word; empty if nothing does."""
    unusable = [
        f"{side.quoted} is {'partial' if any(run.partial for run in side.starts) else 'INVALID'}"
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
        side.quoted
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
        yield SIMULATED, Colour.NONE


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
    text = f"{baseline.quoted} {verdict}, {candidate.quoted} {other}"
    if verdict == other:
        text = f"both sides {verdict}" if "(" in verdict else f"all {verdict}"
    checks = _failed_checks(sides)
    text += f": {more_reasons(checks)}" if checks else ""
    worst = _worst(sides)
    is_partial = any(run.partial for side in sides for run in side.starts)
    return text, Colour.RED if is_partial else VERDICT_COLOURS.get(worst, Colour.NONE)


def _failed_checks(sides: Iterable[Side]) -> list[str]:
    names = (name for side in sides for run in side.starts for name in run.failed_checks)
    return list(dict.fromkeys(names))


def _worst(sides: Iterable[Side]) -> str:
    return max((run.verdict for side in sides for run in side.starts), key=SEVERITY.index)


def _verdict(side: Side) -> str:
    worst = _worst([side])
    count, runs = sum(run.verdict == worst for run in side.starts), len(side.starts)
    text = worst or NO_VERDICT
    if count < runs:
        text += f" ({count} of {runs} runs)"
    if any(run.partial for run in side.starts):
        text += " and partial"
    return text
