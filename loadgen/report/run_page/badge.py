"""Badge: how a run went, in one line of one colour."""

from collections.abc import Iterator

from loadgen.report.answer_badge import answer_badge
from loadgen.report.html import Badge
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import all_met
from loadgen.report.summary_line import (
    SLO_COLOURS,
    Colour,
    Part,
    caveats,
    has_failed,
    named_slo,
    users_who_left,
    verdict_and_outcomes,
)


def badge(result: RunResult) -> Badge:
    """Write verdict, outcomes, SLO and caveats. Red: failures, a missed SLO; amber: caveats; blue: the simulator."""
    parts = [*verdict_and_outcomes(result), *users_who_left(result), *_slo(result), *caveats(result)]
    failed = Colour.RED if has_failed(result) else Colour.NONE
    return answer_badge(parts, simulated=result.simulated, answer=failed)


def _slo(result: RunResult) -> Iterator[Part]:
    if result.slo:
        yield named_slo(result), SLO_COLOURS[all_met(result.slo)]
