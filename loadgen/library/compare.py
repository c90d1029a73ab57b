"""Comparison of runs, from results and from files."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from loadgen.analysis.compare import JudgedComparison, NoiseFile, Side
from loadgen.analysis.compare.side import names as names_of_paths
from loadgen.config.option import check_type
from loadgen.errors import BadInput
from loadgen.report import RunResult

RUNS, TEXTS = "give a result, a path, or a list of these", "give a list of texts"
Runs = RunResult | str | Path | Sequence[RunResult | str | Path]


def compare(
    baseline: Runs,
    *candidates: Runs,
    names: Sequence[str] | None = None,
    noise: str | Path | None = None,
    fail_if: str | Sequence[str] = (),
    anyway: bool = False,
) -> JudgedComparison:
    """Compare candidates with a baseline, metric by metric, with confidence intervals
    (docs/compare.md).

    A side is a result, a path (of a result, of records, or of a folder of such files), or several
    of these, a start of the server each. Records give intervals within a run; three starts of each
    side give "better" and "worse".

    Args:
        baseline: The first side.
        candidates: The others, one at least.
        names: Names of all sides, the baseline first; by default from their paths, else A, B, ...
        noise: The variation between starts, a file of `loadgen compare --save-noise`.
        fail_if: A condition, such as "ttft_p99>+5%" or "error_rate>+1pp", or several.
        anyway: Also compare runs of different workloads.

    Returns:
        The comparison: `candidates[0].row("ttft_p99")` has `change` (a share), `bounds` and
            `conclusion`;
        `judgements` has the outcome of each condition; `str` gives the report.

    Raises:
        BadInput: A file cannot be read, the workloads differ, a run is on two sides, or an argument
            cannot be used.
    """
    sides = [
        _runs("baseline", baseline),
        *(_runs("candidates", candidate) for candidate in candidates),
    ]
    check_type("names", names, Sequence | None, TEXTS)
    check_type("fail_if", fail_if, Sequence, TEXTS)
    check_type("noise", noise, str | Path | None, "give the path of a file")
    if not candidates:
        raise BadInput(
            "candidates", "there is none", "give another side to compare with the baseline"
        )
    named = [
        Side.of_sources(name, [run if isinstance(run, RunResult) else str(run) for run in runs])
        for name, runs in zip(_names(sides, names), sides, strict=True)
    ]
    conditions = [fail_if] if isinstance(fail_if, str) else fail_if
    variation = None if noise is None else NoiseFile.read(str(noise))
    return JudgedComparison.of(named, noise=variation, fail_if=conditions, anyway=anyway)


def _runs(argument: str, side: Runs) -> list[RunResult | str | Path]:
    """Return the runs of a side.

    Raises:
        BadInput: It is none.
    """
    check_type(argument, side, RunResult | str | Path | Sequence, RUNS)
    runs = [side] if isinstance(side, RunResult | str | Path) else list(side)
    for run in runs:
        check_type(argument, run, RunResult | str | Path, RUNS)
    return runs


def _names(
    sides: Sequence[Sequence[RunResult | str | Path]], names: Sequence[str] | None
) -> Sequence[str]:
    if names is None:
        one_path = all(len(side) == 1 and not isinstance(side[0], RunResult) for side in sides)
        paths = list(map(str, chain(*sides))) if one_path else [""] * len(sides)
        return names_of_paths(paths)
    if len(names) != len(sides) or len(set(names)) < len(sides) or not all(names):
        raise BadInput(
            "names",
            f"{list(names)} does not name {len(sides)} sides",
            "give each side a different name",
        )
    return names
