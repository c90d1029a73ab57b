"""`loadgen search`: the highest request rate, or concurrency, at which a server meets an SLO."""

import argparse
import contextlib
import dataclasses
import logging
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen import logs, scratch
from loadgen.cli import config, credentials, exits, flags
from loadgen.cli.importing import single_threaded
from loadgen.cli.journal import journal
from loadgen.cli.series import Series, differences, numbered
from loadgen.data_settings import TRACE
from loadgen.errors import BadInput
from loadgen.options import flag
from loadgen.settings import SWEPT, RunSettings

if TYPE_CHECKING:
    from loadgen.levels import Levels, Point, Stop
    from loadgen.results import Result
    from loadgen.search import Found, Run
    from loadgen.server import Server

TEXT = (
    "Look for the highest request rate, or concurrency, at which a server meets the SLO that --slo says, with one run "
    "after another. With no server named, loadgen's own simulator is measured."
)
FIRST_CONCURRENCY = 16
SAID = {True: "met", False: "missed", None: "neither met nor missed"}


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    given = flags.run_settings(argv, parser)
    over, plot = given.pop("over", "rate"), given.pop("plot", None)
    chosen = config.chosen(given)
    check(chosen, over)
    asked = config.settings(given)
    if asked.dataset_name == TRACE:
        problem = "a trace says when each request is due, and a search looks for that"
        raise BadInput("--dataset-name", problem, "name another data set")
    rate = asked.request_rate if math.isfinite(asked.request_rate) else 1.0  # --duration is that of runs at some rate
    asked.replace(request_rate=rate).checked()
    logs.to_stderr(asked.log_level)
    if credentials.on_the_command_line(given):
        logging.warning(credentials.VISIBLE)
    with single_threaded():
        search = Search(asked, over, chosen, plot)
    return search.carried_out()


def parser(tool: str | None) -> argparse.ArgumentParser:
    """The flags of `loadgen run`, those of a tool among them, and --over."""
    made = flags.run_parser(tool, "loadgen search", TEXT)
    made.add_argument("--over", choices=("rate", "concurrency"), help="what is looked for (rate)")
    return made


def check(chosen: dict[str, Any], over: str) -> None:
    """Refuse what a search decides for itself.

    Args:
        chosen: The settings that are given, other than by a workload.
        over: rate or concurrency.

    Raises:
        BadInput: The first that is given.
    """
    if not chosen.get("slo"):
        raise BadInput("--slo", "missing", 'say what is to be met, as "ttft_p99<500ms,tpot_p99<50ms,error_rate<1%"')
    for name in SWEPT:
        if isinstance(chosen.get(name), tuple):
            raise BadInput(flag(name), "is several, and a search finds them itself", "give the one to begin with")
    for name in ("ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps"):
        if chosen.get(name) is not None:
            raise BadInput(flag(name), "given for a search, whose runs are each at one level", "leave it out")
    if "max_error_rate" in chosen:
        raise BadInput("--max-error-rate", "given for a search, which its --slo judges", "write error_rate<1% there")
    if over == "concurrency" and math.isfinite(chosen.get("request_rate", math.inf)):
        raise BadInput("--request-rate", "given beside --over concurrency", "leave one of the two out")
    if chosen.get("duration") is not None and over == "concurrency":
        problem = "given beside --over concurrency, where a run has a number of requests"
        raise BadInput("--duration", problem, "leave it out, or give --num-prompts")
    if chosen.get("duration") is not None and chosen.get("num_prompts") is not None:
        raise BadInput("--duration", "given beside --num-prompts: a run has the one or the other", "leave one out")


class Search:
    """One search.

    Args:
        asked: The settings of the command, checked.
        over: rate or concurrency.
        chosen: Those that are given, other than by a workload: where it begins, and how long runs are.
        plot: Where a picture goes.
    """

    def __init__(self, asked: RunSettings, over: str, chosen: dict[str, Any], plot: str | None) -> None:
        from loadgen.demands import of_each
        from loadgen.levels import AXES
        from loadgen.search import AGAIN

        assert asked.slo is not None
        self._demands = of_each(asked.slo)
        self._enough = max(demand.enough for demand in self._demands)
        least = math.ceil(self._enough / 2 / AGAIN)  # half of what is enough shows it, if all of them are good
        if (count := chosen.get("num_prompts")) is not None and count < least:
            problem = f"{AGAIN} runs of {count} requests cannot show {asked.slo}"
            raise BadInput("--num-prompts", problem, f"give {least} or more, or leave it out")
        if asked.records and numbered(asked, 1).records == asked.records:  # a device
            raise BadInput("--records", f"{asked.records} keeps nothing, and a search reads its records", "name a file")
        self._asked, self._axis, self._chosen = asked.replace(slo=None, duration=None), AXES[over], chosen
        self._series = Series("search", over, asked, ",".join(demand.text for demand in self._demands), plot)
        self._told = 0

    def carried_out(self) -> int:
        """Carry it out; returns the exit code."""
        return self._series.carried_out(self._measure, self._asked.replace(num_prompts=self._enough))

    async def _measure(self, server: "Server") -> None:
        from loadgen.levels import RUN_S, Levels
        from loadgen.search import Goal, highest

        async def measure(settings: RunSettings, name: str, stop: "Stop") -> "Result":
            own = settings.replace(**differences(self._asked, self._numbered()) | {"records": settings.records})
            asked = self._asked.replace(**differences(server.settings, own))
            level = getattr(own, self._axis.setting)
            title = f"run {len(self._series.points) + 1}, {self._named(level)}"
            of_run = dataclasses.replace(server, settings=own)
            return await self._series.run(of_run, asked, level, title=title, stop=stop, show=_nothing)

        requests = self._chosen.get("num_prompts")
        levels = Levels(
            measure,
            server.settings,
            self._demands,
            self._records,
            name="search",
            axis=self._axis,
            length_s=self._chosen.get("duration") or (0.0 if requests else RUN_S),
            enough=requests,
        )

        async def at(level: float) -> "Run | None":
            try:
                return await levels.at(level)
            finally:
                self._tell(levels.points)

        found = None
        try:
            goal = Goal(least=levels.least, most=self._axis.most, nearest=self._axis.nearest)
            self._say(f"up to {levels.left} runs, each of {levels.enough} requests or more")
            found = await highest(at, await self._start(levels), goal)
        finally:
            self._conclude(levels, found)

    async def _start(self, levels: "Levels") -> float:
        """The level to begin with: what is given, or what shows itself."""
        given = self._chosen.get(self._axis.setting)
        if given is not None and math.isfinite(given):
            return float(given)
        if self._axis.name == "concurrency":
            return FIRST_CONCURRENCY
        try:
            return await levels.at_once()
        finally:
            self._tell(levels.points)

    def _numbered(self) -> RunSettings:
        """The settings with the files of the next run."""
        return numbered(self._asked, len(self._series.points) + 1)

    @contextlib.contextmanager
    def _records(self, name: str) -> Iterator[Path]:
        """Where the next run leaves its records: where the user wants them, or until they have been judged."""
        if self._asked.records:
            yield Path(str(self._numbered().records))
            return
        with journal(wanted=True) as kept, scratch.folder() as folder:
            yield kept.path or folder / name
            kept.needed = False

    def _tell(self, points: "list[Point]") -> None:
        """Say what has been found since the last time, and keep it with the series."""
        for row, point in list(zip(self._series.points, points, strict=False))[self._told :]:
            run = point.run
            row["met"] = run.met()
            each = [one.met(run.in_flight) for one in run.shown]
            for number, limit in enumerate(row["slo"]):
                limit["met"] = each[number] if each else None
            unclear = "too few requests to tell" if row["met"] is None else None
            row["why"] = point.why or unclear
            self._told += 1
            self._say(f"{self._named(point.level)}: {SAID[row['met']]}" + (f" ({row['why']})" if row["why"] else ""))
        self._series.save_so_far()

    def _conclude(self, levels: "Levels", found: "Found | None") -> None:
        """Say in the series what the search came to; None: it ended early."""
        from loadgen.search import End

        met = [point.level for point in levels.points if point.run.met()]
        level, fails = (found.level, found.fails) if found else (max(met, default=0.0), math.inf)
        self._series.data["found"] = {
            "level": level or None,
            "fails": fails if math.isfinite(fails) else None,
            "end": str(found.end) if found else "early",
            "last": found.tried[-1][0] if found else None,
        }
        self._series.data["notes"] += levels.notes
        own = [exits.SLO_MISSED] if found and found.end is End.NONE else []
        if found is None or found.end is End.CLIENT:
            own.append(exits.ERRORS if exits.ERRORS in self._series.codes else exits.INVALID)
        rows = [row for row in self._series.points if level and row["level"] == level]
        if self._asked.strict and any(row["verdict"] == "SUSPECT" for row in rows):
            own.append(exits.SUSPECT)
        # Of the others it is no matter what they deserve: a level that is too high may well be SUSPECT.
        self._series.codes[:] = [code for code in self._series.codes if code != exits.SUSPECT] + own

    def _say(self, text: str) -> None:
        if not self._asked.quiet:
            print(f"loadgen: {text}", file=sys.stderr, flush=True)

    def _named(self, level: float) -> str:
        return f"{level:g} {self._axis.unit}" if math.isfinite(level) else "all requests at once"


def _nothing(settings: RunSettings, data: dict[str, Any], saved: list[str]) -> None:
    """A run of a search has a line in its table, and no report."""
