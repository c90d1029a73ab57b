"""Server levels: what the server reported of itself over the time of a run, as curves."""

from collections.abc import Callable, Iterator, Mapping

from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.html import Curve
from loadgen.report.result import RunResult


def telemetry(result: RunResult) -> Telemetry:
    """Return the metrics of the server; empty where there are none."""
    return Telemetry() if result.server is None else result.server.telemetry()


def curves(
    found: Telemetry,
    end_s: float,
    names: Mapping[str, tuple[str, int]],
    in_unit: Callable[[float], float] = float,
) -> Iterator[Curve]:
    """Draw a curve for each of several levels that the server reported during the run.

    Args:
        found: The metrics.
        end_s: Where the run ends, s.
        names: The name and the colour of each level.
        in_unit: Converts a level to the unit of the axis.
    """
    for quantity, (name, colour) in names.items():
        points = [(at, in_unit(level)) for at, level in found.course(quantity) if 0 <= at <= end_s]
        if points:
            places, values = zip(*points, strict=True)
            yield Curve(name, places, values, colour)
