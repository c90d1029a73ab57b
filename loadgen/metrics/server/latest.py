"""Heard: what servers have said of themselves last, read from the scraper's file while a run goes on."""

from pathlib import Path

import orjson

from loadgen.metrics.server.names import HIGHEST, SUMMED, together
from loadgen.metrics.server.telemetry import FILE_NAME
from loadgen.util.tail import TailReader


class Heard:
    """Follows what the scraper writes; not for the loop that measures, which has no time to read.

    Args:
        folder: Of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._file = TailReader(folder / FILE_NAME)
        self._last: dict[tuple[str, str], dict[str, float]] = {}

    def latest(self) -> dict[str, float]:
        """Each level that all sources told when they were last asked, of several as if they were one server."""
        for told in map(orjson.loads, self._file.lines()):
            if "gpus" not in told:
                self._last[told["url"], told["target"]] = told["values"]
        found = {}
        for quantity in (*SUMMED, *HIGHEST):
            values = [said[quantity] for said in self._last.values() if quantity in said]
            if values and len(values) == len(self._last):
                found[quantity] = together(quantity, values)
        return found
