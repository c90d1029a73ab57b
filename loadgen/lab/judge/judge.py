"""Judge: one tool in many cases, each kept and not run again; and what is said of all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from loadgen.lab.judge.case import Case
from loadgen.lab.judge.cases import CONTROL
from loadgen.lab.judge.cell import CELL, Cell, Judgement, Score, judged, kept, key
from loadgen.lab.judge.tokenizer import write_tokenizer
from loadgen.lab.judge.tool import Tool
from loadgen.util.number_format import plural

TOKENIZER = "tokenizer"
WRONG = (Judgement.WRONG_SILENT, Judgement.WRONG_SAID, Judgement.NO_REPORT)


def cells(cases: Iterable[Case], tool: Tool, begins: Sequence[str], folder: Path) -> Iterator[Cell]:
    """Yield the cells of a tool, the control first; those that are in the folder are not run.

    Args:
        cases: The cases, the control first.
        tool: The tool.
        begins: The words that start it.
        folder: Where cells are kept: `CASE/cell.json`, what was printed and the server's log.

    Raises:
        LoadgenError: A server did not start.
    """
    tokenizer = write_tokenizer(folder / TOKENIZER)
    always: tuple[str, ...] = ()
    for case in cases:
        place = folder / case.name
        cell = kept(place, key(case, tool, begins), begins)
        if cell is None or (case.name == CONTROL and cell.judgement is Judgement.NO_REPORT):
            cell = judged(case, tool, begins, place, tokenizer, always)
        if case.name == CONTROL:
            always = cell.says
        yield cell


def read(folder: Path) -> dict[str, Cell]:
    """Return the cells of a folder, by case."""
    found = [msgspec.json.decode(path.read_bytes(), type=Cell) for path in folder.glob(f"*/{CELL}")]
    return {cell.case: cell for cell in found}


def figure_text(score: Score) -> str:
    """Return a figure in words: what was printed, what is true."""
    if score.low is None:
        return f"{score.figure} {score.printed:g}, there is none"
    true = f"{score.low:.4g}" if score.low == score.high else f"{score.low:.4g}-{score.high:.4g}"
    shown = "not printed" if score.printed is None else f"{score.printed:.4g}"
    percent = "" if score.error is None else f" ({score.error:+.0%})"
    return f"{score.figure} {shown}, true {true}{percent}"


def cell_text(cell: Cell) -> str:
    """Return a cell in words: its judgement, its wrong figures, what was said."""
    wrong = [figure_text(score) for score in cell.scores if score.right is False]
    lines = [f"{cell.case:<26} {cell.judgement}", *(f"    {text}" for text in wrong)]
    lines += [f"    {cell.why}"] * bool(cell.why)
    if cell.case == CONTROL and cell.missing and not cell.why:
        lines.append(f"    not found: {', '.join(cell.missing)}")
    said = wrong or cell.judgement is Judgement.NO_REPORT
    lines += [f"    says: {text}" for text in cell.says if said]
    return "\n".join(lines)


def summary(found: Mapping[str, Cell]) -> str:
    """Return how many cells have which judgement."""
    counts = Counter(cell.judgement for cell in found.values())
    parts = [f"{counts[each]} {each}" for each in Judgement if counts[each]]
    return f"{plural(len(found), 'case')}: {', '.join(parts)}"
