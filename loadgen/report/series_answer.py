"""The answer of a series of runs, its state first, and remarks on its runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from loadgen.checks import Verdict
from loadgen.config import slo
from loadgen.document import Answer, Colour, Part
from loadgen.report import load_line
from loadgen.report.result.series import Found, Point, Series
from loadgen.report.run_state import COLOURS, State, more_reasons
from loadgen.report.series import (
    MIN_FOR_KNEE,
    TOO_FEW,
    Row,
    deciding_points,
    failed_checks,
    few_mark,
    fewest_requests,
    has_tokens,
    heading,
    is_highest_level,
    is_short_of_knee,
    judgeable_points,
    knee_candidate,
    level_of,
    level_text,
    level_with_unit,
    rows,
    sweep_latencies,
)
from loadgen.report.series_next_step import after_series
from loadgen.report.summary_line import SIMULATED, VERDICT_COLOURS, worst_verdict
from loadgen.util.number_format import four_digits, plural, three_digits, value_range

AXIS_NAMES = {"rate": "request rate", "concurrency": "concurrency"}


def title(series: Series) -> str:
    """Name a series, the model and the servers in a few words."""
    what = f"{series.kind.capitalize()} over the {AXIS_NAMES[series.over]}"
    if series.load is not None:
        what = "Repeated runs of one load"
    if not series.points:
        return what
    first = series.points[0].result
    target = first.findings.target
    return f"{what}: model {first.numbers.model_id}{f' at {target}' if target else ''}"


def answer(series: Series) -> Answer:
    """Answer which level meets the SLO, or where the knee is, the state first."""
    return Answer(tuple(_parts(series)), after_series(series), simulated=is_simulated(series))


def state_of(series: Series) -> State | None:
    """Return the state of the runs from which the answer follows; None if no run ended."""
    if not series.points:
        return None
    if not any(point.result.numbers.completed for point in series.points):
        return State.FAILED
    usable = [
        point.verdict for point in deciding_points(series) if point.verdict != Verdict.INVALID
    ]
    if not usable:
        return State.INVALID
    met, missed = _levels(series, met=True), _levels(series, met=False)
    found = series.found
    if missed and (series.load is not None or not met) if found is None else found.end == "none":
        return State.SLO_MISSED
    if found is not None and found.end == "disturbed":
        return State.SUSPECT
    if not found.level if found else (min(missed) < max(met) if met and missed else False):
        return State.TOO_FEW
    if not (found or met or missed or series.load) and is_short_of_knee(series):
        return State.TOO_FEW
    return State.SUSPECT if Verdict.SUSPECT in usable else State.OK


def _levels(series: Series, *, met: bool) -> list[float]:
    """List the levels that meet the SLO, or those that miss it, each once, ascending."""
    shown = rows(series) if series.slo else []
    return list(dict.fromkeys(row.level for row in shown if row.judged.met is met))


def _parts(series: Series) -> Iterator[Part]:
    """List the parts of the line: the answer, the next level, and caveats."""
    state, deciding = state_of(series), deciding_points(series)
    verdict = worst_verdict(point.verdict for point in deciding) if deciding else ""
    (first, colour), *others = _answer_parts(series)
    if state is None:
        yield first, colour
    else:
        lead = _word(series) if state in (State.OK, State.SUSPECT) else state
        yield f"{lead}: {first}", COLOURS[state]
    yield from others
    failed = len([point for point in series.points if point.result.findings.error_rate])
    if failed and series.kind != "search":  # a search goes on until requests fail
        yield f"requests failed in {failed} of {plural(len(series.points), 'run')}", Colour.RED
    if deciding:
        checks = list(dict.fromkeys(chain.from_iterable(map(failed_checks, deciding))))
        why = f": {more_reasons(checks)}" if checks else ""
        yield f"measurement {verdict}{why}", VERDICT_COLOURS[verdict]
    if series.partial:
        yield f"ended early: {series.partial}", Colour.YELLOW
    if is_simulated(series):
        yield SIMULATED, Colour.NONE


def _word(series: Series) -> str:
    """Return what was found, in a word or a few, where runs measured the server."""
    if (found := series.found) is not None:
        return "NOT FOUND" if not found.level else "FOUND" if found.end == "edge" else "AT LEAST"
    if series.load is not None:
        return "MEASURED"
    if not _is_judged(series):
        knee = _knee(series)
        return knee[0] if knee is not None else "MEASURED"
    met = _levels(series, met=True)
    if not met:
        return "UNDECIDED"
    above = [row.judged.met for row in rows(series) if row.level > met[-1]]
    if not above:
        return _no_limit(met[-1], series.over)
    return "FOUND" if above[0] is False else "AT LEAST"


def _answer_parts(series: Series) -> Iterator[Part]:
    failed = sum(point.result.numbers.failed for point in series.points)
    if failed and not any(point.result.numbers.completed for point in series.points):
        yield f"{failed} of {plural(failed, 'request')} failed", Colour.RED
    elif series.found is not None:
        yield from _search_parts(series)
    elif series.load is not None:
        yield from _repeated_parts(series)
    elif _is_judged(series):
        yield from _slo_parts(series)
    else:
        levels = list(dict.fromkeys(row.level for row in rows(series)))
        runs = plural(len(series.points), "run")
        what = f"{runs} at {_levels_text(levels, series.over)}" if levels else "No run ended"
        knee = _knee(series)
        yield (what if knee is None else knee[1]), Colour.NONE
        if (best := knee_candidate(series.points)) is not None:
            figures = ", ".join(_figures(series, best))
            yield f"at {level_with_unit(best.level, series.over)}: {figures}", Colour.NONE


def _is_judged(series: Series) -> bool:
    """Whether an SLO was on a run, and one shows whether it was met."""
    return series.slo is not None and any(point.met is not None for point in series.points)


def runs(series: Series) -> str:
    """Write how many runs there were, and at which levels."""
    levels = [row.level for row in rows(series) if math.isfinite(row.level)]
    count = plural(len(series.points), "run")
    if series.load is not None or not levels:
        return count
    least, most = level_text(min(levels)), level_with_unit(max(levels), series.over)
    return f"{count} at {most}" if min(levels) == max(levels) else f"{count} at {least} to {most}"


def load(series: Series) -> str:
    """Describe the requests of the runs: how many, how long on average, how spaced; empty if
    none has ended.
    """
    numbers = [point.result.numbers for point in series.points if point.result.numbers.completed]
    if not numbers:
        return ""
    counts = [run.num_prompts for run in numbers]
    ok = sum(run.completed for run in numbers)
    answers = sum(run.total_output_tokens for run in numbers) / ok
    prompts = [run.total_input_tokens for run in numbers if run.total_input_tokens is not None]
    knows_prompts = len(prompts) == len(numbers)
    lengths = (
        f"{sum(prompts) / ok:.0f} tokens in and {answers:.0f}"
        if knows_prompts
        else f"{answers:.0f} tokens"
    )
    lengths += " out"
    if not has_tokens(series):
        lengths = (
            f"{sum(prompts) / ok:.0f} tokens" if knows_prompts else "prompts of unknown length"
        )
    arrivals = (
        f", {load_line.spacing(numbers[-1].burstiness)} arrivals" if series.over == "rate" else ""
    )
    if series.load is not None:
        arrivals = f", {series.load}"
    return (
        f"{value_range(min(counts), max(counts))} requests per run, {lengths} on average{arrivals}"
    )


def remarks(series: Series) -> Iterator[str]:
    """List what is to be known of the runs, each once with the levels that it is about."""
    yield from _run_remarks(series)
    for verdict in ("INVALID", "SUSPECT"):  # why runs are not VALID: each check once
        wrong = [point for point in sorted(series.points, key=level_of) if point.verdict == verdict]
        checks: dict[str, list[float]] = {}
        for point in wrong:
            for name in failed_checks(point):
                checks.setdefault(name, []).append(level_of(point))
        by_levels: dict[str, list[str]] = {}
        for check, levels in checks.items():
            where = "in all runs" if len(levels) == len(series.points) else _where(levels, series)
            by_levels.setdefault(where, []).append(check)
        for where, names in by_levels.items():
            yield f"{verdict} {where}: {', '.join(names)}"
    answer = series.found
    if answer is not None and answer.level:
        met = [row for row in rows(series) if row.judged.met and row.level <= answer.level]
        valid = [row.level for row in met if all(run.verdict == "VALID" for run in row.runs)]
        if valid and answer.level not in valid:
            highest = level_with_unit(max(valid), series.over)
            yield f"The highest level that met the SLO in VALID runs alone is {highest}"
    knee = _knee(series) if series.kind == "sweep" and series.slo else None
    if knee is not None:
        yield ": ".join(filter(None, knee))
    yield from (f"Note: {note}" for note in series.notes)


def is_simulated(series: Series) -> bool:
    """Tell whether loadgen's own simulator was measured."""
    return bool(series.points) and series.points[0].result.findings.simulated


def slo_text(limits: str) -> str:
    """Write an SLO with spaces and units: ttft_p99<500,error_rate<1% as "ttft_p99 < 500 ms,
    error_rate < 1%".
    """
    texts = []
    for limit in slo.parse(limits):
        number, unit = re.findall(r"<=?\s*([0-9.]+)\s*([a-z%]*)", limit.text)[0]
        unit = unit or ("" if limit.metric == "error" else "ms")
        sign = "<=" if limit.inclusive else "<"
        texts.append(f"{limit.name} {sign} {number}{unit if unit == '%' else f' {unit}'}".rstrip())
    return ", ".join(texts)


def _search_parts(series: Series) -> Iterator[Part]:
    answer = series.found
    over = series.over
    limits = slo_text(series.slo or "")
    assert answer is not None
    level = level_with_unit(answer.level, over) if answer.level else ""
    meets = f"{level} met {limits}" if level else ""
    match answer.end:
        case "edge":
            count = sum(len(row.runs) for row in rows(series) if row.level == answer.level)
            highest = f"{level} is the highest {over} that met {limits}"
            yield f"{highest} ({plural(count, 'run')})", Colour.GREEN
            yield _shown(series, answer.fails or 0.0), Colour.NONE
        case "floor":
            yield meets, Colour.GREEN
            yield _above_floor(series, answer), Colour.NONE
        case "none":
            yield f"no {AXIS_NAMES[over]} met {limits}", Colour.RED
            if answer.fails:
                lowest = f"the lowest that was tried, {level_with_unit(answer.fails, over)},"
                yield _shown(series, answer.fails, lowest), Colour.NONE
        case "client" if answer.last is not None:
            limit = (
                f"at {level_with_unit(answer.last, over)} the client, not the server, was the limit"
            )
            yield (
                (meets, Colour.GREEN)
                if meets
                else ("nothing is known of the server", Colour.YELLOW)
            )
            yield limit, Colour.YELLOW
        case "disturbed":
            if meets:
                yield meets, Colour.YELLOW
            yield _supported_text(series, answer), Colour.YELLOW
        case _:
            if meets:
                yield meets, Colour.GREEN
            yield "the search ended early", Colour.YELLOW
            if answer.fails:
                yield _shown(series, answer.fails), Colour.NONE


def _supported_text(series: Series, answer: Found) -> str:
    """Say which bracket undisturbed runs support, and what was not met in others alone."""
    meets = answer.level or 0.0
    doubted = min(row.level for row in rows(series) if row.judged.doubted and row.level > meets)
    above = f"{level_text(answer.fails)} at most" if answer.fails else "no upper bound"
    return f"{_shown(series, doubted)}: undisturbed ones show {above}"


def _above_floor(series: Series, answer: Found) -> str:
    """Say what the levels above the highest that met the SLO have shown, where a search ended
    without its edge.
    """
    if answer.fails:
        shown = _shown(series, answer.fails)
        return f"{shown}, and the search ended before it had found the limit"
    above = [row.level for row in rows(series) if row.level > (answer.level or 0.0)]
    if not above:
        return f"no higher {series.over} was tried"
    shown = ", ".join(_shown(series, level) for level in above)
    return f"no higher {series.over} is known to miss it: {shown}"


def _shown(series: Series, level: float, name: str = "") -> str:
    """Say what a level that did not meet the SLO has shown: "4 missed it"; a name replaces it."""
    judged = [row.judged for row in rows(series) if row.level == level]
    outcome = "missed it" if any(each.met is False for each in judged) else "is undecided"
    if any(each.doubted for each in judged):
        outcome += " in disturbed runs alone"
    if judged and not any(each.runs for each in judged):
        outcome = f"shows nothing ({judged[0].why or 'no run counts'})"
    return f"{name or level_text(level)} {outcome}"


def _slo_parts(series: Series) -> Iterator[Part]:
    over = series.over
    limits = slo_text(series.slo or "")
    shown = rows(series)
    met, missed = _levels(series, met=True), _levels(series, met=False)
    if not met:
        yield f"no level met {limits}", Colour.RED
        yield f"tried: {_levels_text([row.level for row in shown], over)}", Colour.NONE
    elif not missed or met[-1] < missed[0]:
        level = level_with_unit(met[-1], over)
        above = next((row.level for row in shown if row.level > met[-1]), None)
        if above is None:
            yield f"the highest {over} tested met {limits}", Colour.GREEN
            return
        is_limit = any(row.judged.met is False for row in shown if row.level == above)
        highest = f"is the highest {over} that " if is_limit else ""
        yield f"{level} {highest}met {limits}", Colour.GREEN
        yield _shown(series, above), Colour.NONE
    else:
        yield f"{_levels_text(met, over)} met {limits}", Colour.YELLOW
        yield f"{_levels_text(missed, over)} missed it", Colour.NONE


def _repeated_parts(series: Series) -> Iterator[Part]:
    judged = [point.met for point in series.points if point.met is not None]
    if judged:
        colour = Colour.GREEN if all(judged) else Colour.YELLOW if any(judged) else Colour.RED
        yield (
            f"{sum(judged)} of {plural(len(judged), 'run')} met {slo_text(series.slo or '')}",
            colour,
        )
    runs = plural(len(series.points), "run")
    yield (f"{runs} of one load, {series.load}" if series.points else "No run ended"), Colour.NONE


def _knee(series: Series) -> tuple[str, str] | None:
    """Say which level is the knee, or that none is, in a word or a few, and why."""
    best = knee_candidate(series.points)
    if best is None:
        if not is_short_of_knee(series):
            return None
        few = fewest_requests(judgeable_points(series.points))
        return "", f"{plural(few, 'request')} at a level, and a knee needs {MIN_FOR_KNEE}"
    if not is_highest_level(best, series.points):
        level = level_with_unit(best.level, series.over)
        return f"KNEE AT {level}", "the highest ratio of tokens/s to mean E2EL"
    what = "KNEE" if best.result.findings.overloaded else "LIMIT"
    return _no_limit(level_of(best), series.over, what), f"the highest {series.over} tested"


def _no_limit(level: float, over: str, what: str = "LIMIT") -> str:
    return f"NO {what} UP TO {level_with_unit(level, over)}"


def _figures(series: Series, point: Point) -> Iterator[str]:
    """Write the main figures of a run: its latencies, and its throughput."""
    for name in sweep_latencies(series):
        value = point.latency_ms.named(name)
        if value is not None and not few_mark(name, point.result.numbers.completed):
            yield f"{heading(name)} {three_digits(value, 'ms')}"
    if has_tokens(series):
        yield three_digits(point.result.numbers.output_throughput, "tok/s")


def _run_remarks(series: Series) -> Iterator[str]:
    """Say where a search began, why runs ended early or do not count, and what could not be
    confirmed.
    """
    over = series.over
    is_search = series.kind == "search"
    points = sorted(series.points, key=level_of)
    for point in points:
        if is_search and point.level == "inf":
            rate = four_digits(point.result.numbers.request_throughput)
            yield (
                f"A first run sent all its requests at once, to choose the first rate: {rate} req/s"
            )
    for row in rows(series):
        if row.confirms and row.judged.met is None and row.judged.runs:
            count = plural(row.judged.runs, "run")
            has = "has" if row.judged.runs == 1 else "have"
            level = level_with_unit(row.level, over)
            yield (
                f"{level} is undecided: {count} {has} too few requests; "
                f"{_longer(row, over)} would halve the intervals"
            )
    levels_by_reason: dict[str, list[float]] = {}
    for point in points:
        if point.why and not (is_search and (point.why == TOO_FEW or point.level == "inf")):
            levels_by_reason.setdefault(point.why, []).append(level_of(point))
    for why, levels in levels_by_reason.items():
        where = _where(levels, series)
        told = f"{'runs' if len(levels) > 1 else 'the run'} {where} {why}"
        is_sentence = why.startswith("was too short") and len(levels) == 1
        yield told if is_sentence else f"{where[0].upper()}{where[1:]}: {why}"


def _longer(row: Row, over: str) -> str:
    """Say how to send four times as many requests in each run at a level."""
    requests = 4 * max(run.result.numbers.num_prompts for run in row.runs)
    if over == "rate":
        return f"`--duration {math.ceil(requests / row.level)}`"
    return f"{requests:,} requests in a run"


def _where(levels: Sequence[float], series: Series) -> str:
    """Say in which runs something was, by the levels of these runs."""
    if series.load is not None:
        return f"in {len(levels)} of {plural(len(series.points), 'run')}"
    return f"at {_levels_text(levels, series.over)}"


def _levels_text(levels: Sequence[float], over: str) -> str:
    """List levels with their unit: "1, 2 req/s", "4 req/s, all at once"."""
    finite = [level for level in dict.fromkeys(levels) if math.isfinite(level)]
    texts = [
        *map(level_text, finite[:-1]),
        *(level_with_unit(level, over) for level in finite[-1:]),
    ]
    return ", ".join(texts if math.inf not in levels else [*texts, "all at once"])
