"""The judge's matrix: every tool that can be had here in every case; `make judge` runs this.

Cells are kept in build/judge and not run again. Exit code 1: a tool failed to be installed, or a
cell of loadgen is wrong.
"""

import argparse
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bench.engines.environments import CannotBeMade, Recipe, made
from bench.peers import recipes
from bench.peers.ours import COMMAND
from bench.peers.tools import KNOWN, TOOLS
from loadgen.lab.judge import judge
from loadgen.lab.judge.case import Case
from loadgen.lab.judge.cases import GROUPS, chosen
from loadgen.lab.judge.cell import Cell, Judgement, Score, is_wrong_in_time
from loadgen.lab.judge.tool import Tool
from loadgen.util import machine
from loadgen.util.number_format import plural
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

FOLDER = ROOT / "build" / "judge"
MATRIX, PAGE = ROOT / "bench/results/judge.md", ROOT / "docs/judge.md"
BEGIN, END = "<!-- matrix: written by make judge FLAGS=--write -->", "<!-- end of matrix -->"
NOT_RUN = "–"
CHEATS = GROUPS[-1]
FOLDERS = r"(?<![\w.:/])/(?:[^/\s,=]+/)+"  # of a path in a command, but not of a URL
BUSY = 0.75  # of the load average per core: times that are wrong then may be the machine's
COUNTED = (
    "Cases that are right / wrong, and said / wrong and silent, or without a report / busy: times "
    "alone are wrong, and other processes used the machine. –: nothing to judge."
)
OURS, PLAIN = "loadgen", "plain"
OTHERS = (
    *("vllm", "vllm-rs", "guidellm", "aiperf", "sglang", "inference-perf", "evalscope"),
    "genai-bench",
)
# Of what compare_peers does not have.
RECIPES = {"sglang": recipes.sglang, "genai-bench": recipes.genai_bench}
RED = (Judgement.WRONG_SILENT, Judgement.WRONG_SAID, Judgement.NO_REPORT)
Columns = Mapping[str, Mapping[str, Cell]]


def begins(name: str) -> list[str]:
    """The words that start a tool, whose environment is made if it is not there.

    Raises:
        CannotBeMade: The package index does not have what it needs.
    """
    if name == OURS:
        return [str(COMMAND), "run"]
    if name == PLAIN:
        return [sys.executable, "-m", *KNOWN[PLAIN].begins]
    programs = made(recipe(name), recipes.FOLDER)
    if name == "sglang":
        return [str(programs / "python"), "-m", *KNOWN[name].begins]
    program, *rest = KNOWN[name].begins
    return [str(programs / program), *rest]


def recipe(name: str) -> Recipe:
    """How a tool of others is installed."""
    by_tool = {each.tool.name: each.recipe for each in TOOLS if each.recipe}
    return RECIPES.get(name) or by_tool[KNOWN[name].name]


def version(name: str) -> str:
    """The version of a tool."""
    return "this one" if name in (OURS, PLAIN) else recipes.version(recipe(name))


def columns(names: Sequence[str]) -> dict[str, dict[str, Cell]]:
    """The cells of each tool that are there, by case."""
    return {name: judge.read(FOLDER / name) for name in names}


def matrix(found: Columns) -> str:
    """All cells; one that is not right leads to what was printed."""
    rows = []
    for case in in_groups():
        cells = [_cell(name, found[name].get(case.name)) for name in found]
        rows.append([f"`{case.name}`", case.does, case.source, *cells])
    heads = ["case", "the server", "source", *(KNOWN[name].name for name in found)]
    details = [
        detail
        for name, cells in found.items()
        for case in in_groups()
        if (cell := cells.get(case.name)) is not None and cell.judgement in RED
        for detail in _details(name, cell)
    ]
    return "\n".join([heading(found), "", table(heads, rows), "", *details])


def summary(found: Columns) -> str:
    """How many cells of each group are right, for the page; and what is red in loadgen's."""
    ran = {name: cells for name, cells in found.items() if cells}
    rows = [
        [KNOWN[name].name, str(len(cells)), *(_counts(cells, group) for group in GROUPS)]
        for name, cells in ran.items()
    ]
    heads = ["tool", "cases", *GROUPS]
    others = ", ".join(KNOWN[name].name for name in found if name not in ran)
    missing = f"Not run here: {others}." if others else ""
    red = [
        f"- `{case.name}`, {cell.judgement}: {', '.join(map(judge.figure_text, _wrong(cell)))}"
        for case in in_groups()
        if (cell := found[OURS].get(case.name)) is not None and cell.judgement in RED
        # Who says that a server cheats has noticed it.
        if case.group != CHEATS or cell.judgement is not Judgement.WRONG_SAID
    ]
    lead = "What loadgen gets wrong" if red else "loadgen got nothing wrong."
    parts = [
        heading(found),
        COUNTED,
        table(heads, rows),
        missing,
        lead + ":" * bool(red),
        "\n".join(red),
    ]
    return "\n\n".join(filter(None, parts))


def heading(found: Columns) -> str:
    """Where it was measured, with which versions."""
    about = machine.describe()
    versions = ", ".join(f"{KNOWN[name].name} {version(name)}" for name in found if found[name])
    return (
        f"{time.strftime('%Y-%m-%d')}; {about['cpu']}, {about['usable_cores']} cores shared with "
        f"the server and others. {versions}."
    )


def in_groups() -> list[Case]:
    """All cases in the order of their groups."""
    return sorted(chosen([]), key=lambda case: GROUPS.index(case.group))


def _cell(name: str, cell: Cell | None) -> str:
    if cell is None:
        return NOT_RUN
    if cell.judgement in RED:
        doubt = " (busy)" if is_doubtful(cell) else ""
        return f"[{cell.judgement}](#{name}-{cell.case}){doubt}"
    return str(cell.judgement)


def is_doubtful(cell: Cell) -> bool:
    """Whether what is wrong may be the machine's doing: times alone, while others used it."""
    return is_wrong_in_time(cell.scores) and cell.machine_load > BUSY


def _counts(cells: Mapping[str, Cell], group: str) -> str:
    """Right / wrong and said / wrong and silent, or without a report / in doubt."""
    ran = [cells[case.name] for case in in_groups() if case.group == group and case.name in cells]
    judged = Counter(cell.judgement for cell in ran if not is_doubtful(cell))
    worst = judged[Judgement.WRONG_SILENT] + judged[Judgement.NO_REPORT]
    doubtful = sum(map(is_doubtful, ran))
    counts = judged[Judgement.RIGHT], judged[Judgement.WRONG_SAID], worst, doubtful
    return "/".join(map(str, counts)) if any(counts) else NOT_RUN


def _wrong(cell: Cell) -> list[Score]:
    return [score for score in cell.scores if score.right is False]


def _details(name: str, cell: Cell) -> Iterator[str]:
    """Yield the section of a cell: the command, without folders, what was printed and said."""
    command = re.sub(FOLDERS, "", cell.command)
    yield f"### {name} {cell.case}\n\n```text\n{command}\n```\n"
    wrong = [f"- {judge.figure_text(score)}" for score in _wrong(cell)]
    ended = "it was stopped" if cell.exit_code is None else f"exit code {cell.exit_code}"
    says = [f"- says: {text}" for text in cell.says]
    about = f"{cell.judgement}; {ended}; load average {cell.machine_load:g} per core"
    yield "\n".join([about, "", *wrong, *says, ""])


def judged(name: str, tool: Tool, words: Sequence[str], cases: list[str]) -> None:
    """Run a tool in cases that are not kept."""
    for cell in judge.cells(chosen(cases), tool, words, FOLDER / name):
        print(f"{name}: {judge.cell_text(cell)}", flush=True)


def main() -> int:
    """Judge; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.judge", description=__doc__)
    names = [OURS, PLAIN, *OTHERS]
    parser.add_argument("--only", choices=names, action="append", help="a tool, instead of all")
    parser.add_argument("--case", action="append", default=[], help="a case or a group")
    parser.add_argument("--write", action="store_true", help=f"write {MATRIX.name}")
    options = parser.parse_args()
    # As Ctrl-C: tool and server are stopped. And no tool inherits that SIGINT is ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    missing = []
    for name in options.only or names:
        try:
            words = begins(name)
        except CannotBeMade as reason:
            missing.append(f"{name} cannot be installed: {reason}")
        else:
            judged(name, KNOWN[name], words, options.case)
    found = columns(names)
    if options.write:
        between(MATRIX, BEGIN, matrix(found), END)
        between(PAGE, BEGIN, summary(found), END)
    print("\n".join([f"{plural(len(found[OURS]), 'cell')} of loadgen", *missing]))
    red = any(cell.judgement in RED for cell in found[OURS].values())
    return int(bool(missing) or red)


if __name__ == "__main__":
    sys.exit(main())
