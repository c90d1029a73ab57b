"""Gate: the demands that the exit code of a run depends on, and whether each is met."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadgen.metrics.failures import Failures
from loadgen.report.result import RunResult
from loadgen.report.summary_line import failures_by_outcome, has_failed
from loadgen.util.number_format import plural


@dataclass(frozen=True, slots=True)
class Demand:
    """One demand.

    Attributes:
        name: What is demanded, such as a limit of an SLO.
        met: Whether it is met; None: the run does not show it.
        finding: What was found, in words.
    """

    name: str
    met: bool | None
    finding: str


def demands(result: RunResult) -> list[Demand]:
    """Judge a run by all that its exit code depends on."""
    return list(_demands(result))


def passed(demands: Sequence[Demand]) -> bool:
    """Whether all demands are met."""
    return all(demand.met for demand in demands)


def _demands(result: RunResult) -> Iterator[Demand]:
    settings, verdict = result.provenance.settings, str(result.verdict)
    demanded = "verdict VALID" if settings.strict else "verdict not INVALID"
    is_good = verdict == "VALID" or (verdict == "SUSPECT" and not settings.strict)
    yield Demand(demanded, is_good, "; ".join([verdict, *result.reasons()]))
    if result.partial:
        yield Demand("run not ended early", False, result.partial)
    gone, failures = result.no_answer_since_s, Failures.among(result.outcomes, result.never_due)
    found = f"{failures.failed} of {plural(failures.of, 'request')} failed"
    found += f" ({failures_by_outcome(result)})" if failures.failed else ""
    found += "" if gone is None else f"; no answer from {gone:.1f} s on"
    most = f"{100 * settings.max_error_rate:.4g}%"
    yield Demand(f"failed requests <= {most}", not has_failed(result) and gone is None, found)
    for row, line in zip(result.slo, verdict.slo_lines(result), strict=True):
        yield Demand(row.limit, None if verdict == "INVALID" else row.met, line.partition(": ")[2])
