"""Results and series read from files."""

from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.library.accepted import check_path
from loadgen.report import is_series, render_series, write_json
from loadgen.report.result.series import Series
from loadgen.runner import run_result
from loadgen.runner.run_result import SavedResult


class SavedSeries(Series, kw_only=True):
    """Several runs at one server as they are saved: a search, or a sweep of the command.

    `str` gives the report.
    """

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, which is complete or not written at all.

        Raises:
            BadInput: It cannot be written.
        """
        write_json(path, self.to_dict())

    def __str__(self) -> str:
        return render_series(self)

    def __repr__(self) -> str:
        level = "" if self.found is None else f", found {self.found.level}"
        return (
            f"<loadgen.SavedSeries: {self.kind} over {self.over}, {len(self.points)} runs{level}>"
        )


def load(path: str | Path) -> SavedResult:
    """Read the result of a run: a file of `save`, `save_result` or `--json`, or of records.

    Raises:
        BadInput: It cannot be read, is no result, or holds several; `load_all` reads these.
    """
    results = load_all(path)
    if len(results) != 1:
        raise BadInput((), f"{path} holds {len(results)} results", "read them with load_all")
    return results[0]


def load_all(path: str | Path) -> list[SavedResult]:
    """Read every result in a file: one, or the several that `append_result` has put into it.

    Raises:
        BadInput: It cannot be read, or holds something else than results of runs.
    """
    check_path("path", path)
    saved = run_result.read(path)
    if any(map(is_series, saved)):
        raise BadInput((), f"{path} holds a sweep or a search", "read it with load_series")
    with run_result.whole(str(path)):
        return [SavedResult.from_dict(result) for result in saved]


def load_series(path: str | Path) -> SavedSeries:
    """Read a search, as `save` or `loadgen search --save-result` wrote it, or a sweep of `loadgen
    run`.

    Raises:
        BadInput: It cannot be read, or is no series.
    """
    check_path("path", path)
    saved: list[dict[str, Any]] = run_result.read(path)
    if len(saved) != 1 or not is_series(saved[0]):
        raise BadInput((), f"{path} holds no sweep and no search", "read results of runs with load")
    with run_result.whole(str(path)):
        return SavedSeries.from_dict(saved[0])
