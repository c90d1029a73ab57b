"""The runs of `loadgen search`: each is shown and saved, and so is the search."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen.analysis.search.algorithm import End
from loadgen.analysis.search.early_stop import StopRule
from loadgen.analysis.search.load_search import LoadSearch
from loadgen.cli import exit_codes
from loadgen.cli.runs.journal import journal
from loadgen.cli.runs.run_series import SeriesRunner, with_numbered_files
from loadgen.config.load import AxisName
from loadgen.config.serialize import differences
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner.run_result import Result
from loadgen.runner.server import Server
from loadgen.util import files


class SearchSeries:
    """The series of runs of one search."""

    def __init__(
        self,
        requested: RunSettings,
        over: AxisName,
        chosen: dict[str, Any],  # the settings from flags and the config file, without the workload's
        plot: str | None,
    ) -> None:
        if requested.records and with_numbered_files(requested, 1).records == requested.records:  # a device
            raise BadInput(
                "--records", f"{requested.records} is a device, and a search reads its records again", "name a file"
            )
        self._search = LoadSearch(requested, over, chosen)
        self._requested = self._search.settings
        self._series = SeriesRunner(self._search.data, requested, plot)

    def execute(self) -> int:
        """Execute the search; returns the exit code."""
        return self._series.execute(self._measure, self._search.first_settings)

    async def _measure(self, server: Server) -> None:
        async def measure(settings: RunSettings, name: str, stop: StopRule) -> Result:
            own = settings.replace(
                **differences(self._requested, self._with_next_files()) | {"records": settings.records}
            )
            requested = self._requested.replace(**differences(server.settings, own))
            level = self._search.level_of(own)
            title = f"run {len(self._series.data.points) + 1}, {self._search.level_text(level)}"
            run_server = dataclasses.replace(server, settings=own)
            return await self._series.run(run_server, requested, level, title=title, stop=stop, reports=False)

        try:
            await self._search.execute(
                server.settings, measure, self._records, self._series.say, self._series.save_so_far
            )
        finally:
            self._set_exit_codes()

    def _with_next_files(self) -> RunSettings:
        return with_numbered_files(self._requested, len(self._series.data.points) + 1)

    @contextlib.contextmanager
    def _records(self, name: str) -> Iterator[Path]:
        """Yield the path of the next run's records: the user's file, or one that is removed once they are judged."""
        if self._requested.records:
            yield Path(str(self._with_next_files().records))
            return
        with journal(wanted=True) as crash_journal, files.scratch_folder() as folder:
            yield crash_journal.path or folder / name
            crash_journal.needed = False

    def _set_exit_codes(self) -> None:
        """Set the exit codes by the outcome of the search and by the runs at the level that it found."""
        found, level = self._search.outcome, self._search.found_level
        own = [exit_codes.SLO_MISSED] if found and found.end is End.NONE else []
        if found is None or found.end is End.CLIENT:
            own.append(exit_codes.ERRORS if exit_codes.ERRORS in self._series.codes else exit_codes.INVALID)
        rows = [row for row in self._series.data.points if level and row.level == level]
        if self._requested.strict and any(row.verdict == "SUSPECT" for row in rows):
            own.append(exit_codes.SUSPECT)
        # The codes of other runs do not count: at a level that is too high, requests may well fail.
        of_levels = (exit_codes.SUSPECT, exit_codes.ERRORS)
        self._series.codes[:] = [code for code in self._series.codes if code not in of_levels] + own
