"""Group D: is it enough, and was the load steady?"""

from collections.abc import Iterable

from loadgen.checks.check import Check, inapplicable
from loadgen.checks.overload import SIGMAS, backlog, why_unknown
from loadgen.checks.targets import alike
from loadgen.config import slo
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import UNFINISHED
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import ms, percentile, plural, three_digits

PILE_UP = "requests pile up"
_PER_REQUEST = ("ttft_due", "tpot", "e2el_due")


def sufficiency(run: RunData) -> list[Check]:
    """Check whether the run can bear the statistics that are made of it."""
    limited = _slo_values(run)
    enough = (
        _floor("too few for the SLO", limited, counts_too=True)
        if limited
        else inapplicable("too few for the SLO", "no percentile has a limit")
    )
    return [_printed(run, limited), enough, _steady(run), _given_up(run), *alike(run)]


def unfinished_p99_ns(run: RunData) -> float | None:
    """The p99 E2EL from due with requests that were given up counted as if they had ended then; a lower bound."""
    histograms = run.snapshot.histograms
    return float(p99) if (p99 := (histograms["e2el_due"] + histograms[UNFINISHED]).percentile(99)) is not None else None


def _printed(run: RunData, limited: Iterable[float]) -> Check:
    """The percentiles of the report that no SLO is on."""
    name, histograms = "too few for percentiles", run.snapshot.histograms
    counts = [count for metric in _PER_REQUEST if (count := histograms[metric].count)]
    printed = [p for p in run.percentiles if p not in limited]
    if not counts or not printed:
        return inapplicable(name, "no percentile was measured, but for those of the SLO")
    return _floor(name, dict.fromkeys(printed, min(counts)), counts_too=run.settings.strict)


def _slo_values(run: RunData) -> dict[float, int]:
    """The percentiles that have a limit, and how many values each is taken from, at the least."""
    seen: dict[float, int] = {}
    settings = run.settings
    for limit in slo.parse(settings.slo) if settings.slo else ():
        if (p := limit.percentile) is not None:
            count = run.snapshot.requests_of(slo.distribution(limit.metric, settings.latency_from))
            seen[p] = min(count, seen.get(p, count))
    return seen


def _floor(name: str, seen: dict[float, int], *, counts_too: bool) -> Check:
    """Judge how many values there are for each percentile."""
    few = {p: count for p, count in sorted(seen.items()) if count < least_samples(p)}
    least = min((few or seen).values())
    value = plural(least, "value")
    if few:
        value += f", and {', '.join(f'{percentile(p)} needs {least_samples(p)}' for p in few)}"
    needed = max(map(least_samples, few or seen))
    advice = "send more requests, or read the intervals with the values"
    return Check(name, not few, value, f"at least {needed}", advice, counts_too)


def _steady(run: RunData) -> Check:
    if why := why_unknown(run):
        return inapplicable(PILE_UP, why)
    seen = backlog(run)
    if seen is None:
        return inapplicable(PILE_UP, "the run is too short for its latencies")
    what = "sessions" if run.schedule.has_sessions else "requests"
    change = f"from {max(seen.start, 0):.0f} to {max(seen.end, 0):.0f}"
    value = f"{what} due and not ended: {change} in {seen.window_s:.0f} s"
    limit = f"a rise of {SIGMAS * seen.noise:.0f}"
    mean = run.snapshot.ok / (throughput.wall_ns(run.snapshot) / NS_PER_S)
    answered = throughput.answer_rate(run.snapshot) or mean
    less = f"lower the rate below {three_digits(answered)} requests/s, which were answered"
    advice = f"{less}: latencies under overload grow with the length of the run"
    return Check(PILE_UP, not seen.rising, value, limit, advice, run.relied_on)


def _given_up(run: RunData) -> Check:
    name, histograms = "requests given up", run.snapshot.histograms
    given_up, bound = histograms[UNFINISHED].count, unfinished_p99_ns(run)
    if bound is None:
        return inapplicable(name, "nothing ended")
    value, without = f"{given_up} given up", histograms["e2el_due"].percentile(99)
    if given_up and (without is None or bound > without):  # a bound below what was measured tells nothing
        value += f", p99 E2EL from due at least {ms(bound)} with them"
        value += "" if without is None else f", {ms(without)} without"
    advice = "latencies are of the answers that ended"
    advice += "" if run.snapshot.partial else ": raise the timeouts"
    return Check(name, given_up == 0, value, "0", advice, run.relied_on)
