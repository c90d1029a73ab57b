"""SLO limits: lines in a chart of the latency that they limit."""

from collections.abc import Iterable

from loadgen.config import slo
from loadgen.report.html import Limit
from loadgen.report.result import RunResult

FAR = 3  # times the greatest value: a limit beyond would press all values to the bottom of a linear axis


def in_panel(metric: str, result: RunResult, values: Iterable[float | None]) -> tuple[list[Limit], str]:
    """Select the limits of a latency that its panel shows.

    Args:
        metric: The latency: ttft, tpot, ...
        result: The result, with its SLO.
        values: What else is in the panel, ms.

    Returns:
        The lines, and what the title of the panel says of limits far above all values; empty if there are none.
    """
    text = result.provenance.settings.slo
    own = [limit for limit in slo.parse(text) if limit.metric == metric] if text else []
    most = max((value for value in values if value is not None), default=0.0)
    near = [limit for limit in own if limit.threshold <= FAR * most]
    far = len(near) < len(own)
    lines = [Limit(f"SLO: {limit.text}", limit.threshold) for limit in near]
    return lines, " (limit off the scale)" if far else ""
