"""OtherResult: a result file of another load generator, which a package can read."""

from collections.abc import Callable
from dataclasses import dataclass

from loadgen.analysis.compare.compared_run import ComparedRun
from loadgen.util import packages

GROUP = "loadgen.results"


@dataclass(frozen=True)
class OtherResult:
    """The result of one run of another tool.

    Attributes:
        tool: The name of the tool.
        text: Makes the console's report, with line ends.
        run: Makes the run that `loadgen compare` compares.
    """

    tool: str
    text: Callable[[], str]
    run: Callable[[], ComparedRun]


def read(path: str) -> list[OtherResult]:
    """Read the results of another tool in a file, by the readers that packages add to
    `loadgen.results`.

    A reader is a function of the path. It returns the results in the file; none if it does not know
    the format.

    Returns:
        Those of the first reader that knows the format; empty if none does.

    Raises:
        BadInput: The file cannot be read.
    """
    for entry in packages.installed(GROUP):
        results: list[OtherResult] = packages.load("FILE", entry)(path)
        if results:
            return results
    return []
