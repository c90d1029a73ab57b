"""Sweep: `loadgen run` with several rates, or several concurrencies: a run each, at the same server."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadgen.cli.run_series import Series, differences, numbered
from loadgen.config.settings import RunSettings

if TYPE_CHECKING:
    from loadgen.report.result.series import Axis
    from loadgen.runner.server import Server

OVER: "dict[str, Axis]" = {"request_rate": "rate", "max_concurrency": "concurrency"}
UNITS = {"request_rate": "requests/s", "max_concurrency": "requests in flight at most"}


def sweep(runs: Sequence[RunSettings], name: str, plot: str | None) -> int:
    """Carry out the runs one after the other; returns the gravest exit code.

    Args:
        runs: Their settings, checked.
        name: The setting of which each has another value.
        plot: Where a picture goes.
    """
    series = Series("sweep", OVER[name], runs[0], runs[0].slo, plot)

    async def measure(server: "Server") -> None:
        for number, asked in enumerate(runs, 1):
            resolved = server.settings.replace(**differences(numbered(runs[0], 1), numbered(asked, number)))
            level = getattr(asked, name)
            title = f"run {number} of {len(runs)}: {level:g} {UNITS[name]}"
            own = dataclasses.replace(server, settings=resolved)
            await series.run(own, numbered(asked, number), level, title=title)
            if series.interrupts.heard:
                series.data.partial = "interrupted"
                break

    return series.carried_out(measure, numbered(runs[0], 1))
