"""What to do after a series of runs, in one sentence."""

import math
from collections import Counter

from loadgen.config.option import flag
from loadgen.report.result.series import Found, Series
from loadgen.report.sections import next_step
from loadgen.report.series import (
    MIN_FOR_KNEE,
    deciding_points,
    failed_checks,
    has_tokens,
    is_highest_level,
    is_short_of_knee,
    knee_candidate,
    level_of,
    level_text,
    level_with_unit,
    rows,
)
from loadgen.report.summary_line import worst_verdict


def after_series(series: Series) -> str:
    """Say what to do after a series, in one sentence; empty if no run has ended."""
    if not series.points:
        return ""
    if not any(point.result.numbers.completed for point in series.points):
        ways = Counter[str]()
        for point in series.points:
            ways.update(point.result.findings.outcomes)
        return next_step.on_failures(ways)
    if series.found is not None and series.found.end == "disturbed":
        return "search again when nothing else runs on this machine"
    points = deciding_points(series)
    failed = {name for point in points for name in failed_checks(point)}
    verdict = worst_verdict(point.verdict for point in points)
    return next_step.once_valid(_of_valid_runs(series), failed, verdict)


def _of_valid_runs(series: Series) -> str:
    if series.found is not None:
        return _after_search(series, series.found)
    if series.load is not None:
        return "compare these runs with as many of another version: `loadgen compare BASE NEW`"
    if series.slo and any(point.met is not None for point in series.points):
        return _after_slo_sweep(series, series.slo)
    return _after_sweep(series)


def _after_search(series: Series, found: Found) -> str:
    if found.end == "client":
        return "search again on a faster machine: `loadgen doctor` shows what limits this one"
    if found.end == "early":
        return "search again, to the end: a search does not resume"
    if not found.level:
        lowest = rows(series)[0].judged.slo if rows(series) else []
        missed = [limit.limit for limit in lowest if limit.met is False]
        return f"loosen {', '.join(missed) or 'the limits'}, or make the server faster"
    level = level_with_unit(found.level, series.over)
    if found.end == "floor":
        return f"search on: {next_step.search_command(series.slo or '', series.over, found.level)}"
    again = f'`loadgen run {_flag(series, found.level)} --num-runs 3 --slo "{series.slo}"`'
    return (
        f"confirm {level}: {again}, with {next_step.FLAGS}; if all three runs meet the SLO, keep "
        f"the load at or below {level}"
    )


def _after_slo_sweep(series: Series, limits: str) -> str:
    over = series.over
    shown = rows(series)
    met = [row.level for row in shown if row.judged.met]
    missed = [row.level for row in shown if row.judged.met is False]
    begin = met[-1] if met else shown[0].level / 2
    search = next_step.search_command(limits, over, begin if math.isfinite(begin) else None)
    if met and missed and missed[0] < met[-1]:
        most = max(point.result.numbers.num_prompts for point in series.points)
        return f"repeat it with more requests, `--num-prompts {4 * most}`: the levels contradict"
    if not met:
        return f"find the highest {over} that meets it: {search}"
    level = level_with_unit(met[-1], over)
    return f"keep the load at or below {level}, or find the highest {over} that meets it: {search}"


def _after_sweep(series: Series) -> str:
    best = knee_candidate(series.points)
    if is_short_of_knee(series):
        return f"send more requests at each level: `--num-prompts {MIN_FOR_KNEE}`"
    if best is None:
        return "give three levels or more for a knee, or limits with `--slo`"
    metric = "ttft" if has_tokens(series) else "e2el"
    search = next_step.search_command(f"{metric}_p99<500ms", series.over, level_of(best))
    limits = f"set an SLO and search for the highest {series.over} that meets it: {search}"
    if is_highest_level(best, series.points) and not _has_slowed(series):
        higher = [factor * level_of(best) for factor in (2, 4)]
        levels = "rates" if series.over == "rate" else "concurrencies"
        return f"sweep higher {levels}: `{_flag(series, *higher)}`"
    return limits


def _has_slowed(series: Series) -> bool:
    """Whether the median TTFT at the highest level is twice that at the lowest, or more."""
    runs = sorted(series.points, key=level_of)
    least, most = (runs[at].latency_ms.ttft_p50 for at in (0, -1))
    return least is not None and most is not None and most >= 2 * least


def _flag(series: Series, *levels: float) -> str:
    return f"{flag(next_step.LEVELS[series.over])} {','.join(map(level_text, levels))}"
