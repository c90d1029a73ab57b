"""Badge: how a run went, in one line of one colour."""

from collections.abc import Iterator

from loadgen.report.answer_badge import answer_badge
from loadgen.report.html import Badge
from loadgen.report.result import RunResult
from loadgen.report.result.limit import all_met
from loadgen.report.summary_line import OF_SLO, SLO, Colour, Part, doubts, has_failed, state


def badge(result: RunResult) -> Badge:
    """Write verdict, outcomes, SLO and doubts. Red: failures, a missed SLO; amber: doubts; blue: the simulator."""
    parts = [*state(result), *_slo(result), *doubts(result)]
    failed = Colour.RED if has_failed(result) else Colour.NONE
    return answer_badge(parts, simulated=result.simulated, answer=failed)


def _slo(result: RunResult) -> Iterator[Part]:
    if result.slo:
        met = all_met(result.slo)
        named = "" if met else ": " + ", ".join(row.limit for row in result.slo if row.met is met)
        yield f"{SLO[met]}{named}", OF_SLO[met]
