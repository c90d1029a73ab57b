"""Comparison: what a tool would have printed of a recorded run, beside loadgen's numbers, and why they differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.analysis.emulate import aiperf, guidellm, sglang, vllm
from loadgen.analysis.emulate.own_numbers import ours
from loadgen.analysis.emulate.recorded_run import Run
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import DIGITS, UNKNOWN, Asked, Rule
from loadgen.analysis.emulate.tool import Section, Tool
from loadgen.errors import BadInput
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.run_result import Result, from_records

TOOLS: Mapping[str, Tool] = {
    "vllm-0.11": vllm.V11,
    "vllm-0.32": vllm.V32,
    "vllm-0.33": vllm.V33,
    "sglang": sglang.SGLANG,
    "benchmark-runner": guidellm.BENCHMARK_RUNNER,
    "aiperf": aiperf.AIPERF,
}


@dataclass(frozen=True)
class Line:
    """A row of the tool, loadgen's own value for it (None: n/a), and the rules that make the difference."""

    row: Row
    ours: float | None
    why: tuple[Rule, ...]


@dataclass(frozen=True)
class Comparison:
    """What a tool would have printed of a run.

    Attributes:
        tool: Which.
        path: The file of records.
        requests: How many it holds.
        lines: In the order of the tool's console.
    """

    tool: Tool
    path: str
    requests: int
    lines: list[Line]

    @property
    def reasons(self) -> list[Rule]:
        """The rules that changed anything here, each once, as they first occur."""
        return list(dict.fromkeys(rule for line in self.lines for rule in line.why))

    def to_dict(self) -> dict[str, Any]:
        """JSON form; `why` names `reasons`."""
        return {
            "tool": self.tool.title,
            "premises": list(self.tool.premises),
            "records": self.path,
            "requests": self.requests,
            "rows": [
                {
                    "row": line.row.label,
                    "theirs": line.row.value,
                    "ours": line.ours,
                    "our_metric": line.row.ours,
                    "why": [rule.name for rule in line.why],
                }
                for line in self.lines
            ],
            "reasons": {rule.name: rule.says for rule in self.reasons},
        }


def compare(path: str | Path, name: str) -> Comparison:
    """Read records as a tool would have seen their streams.

    Args:
        path: A file of --records.
        name: One of TOOLS.

    Raises:
        BadInput: It is no such file, or was written before records kept their streams.
    """
    if name not in TOOLS:
        raise BadInput("--as", f"{name!r} is no tool that is known", f"choose from {', '.join(TOOLS)}")
    if not RecordFile.is_one(path):
        raise BadInput("--as", f"{path} holds no records of requests", "name a file of --records")
    file = RecordFile(path)
    run = Run(file.header.settings, file.start_ns, file)
    return Comparison(TOOLS[name], str(path), len(run), explained(TOOLS[name], run, from_records(path)))


def explained(tool: Tool, run: Run, result: Result) -> list[Line]:
    """The rows of a tool, each with the rules that change it as they are left out one after the other.

    They lead from the tool's value to loadgen's: a difference without a reason is a rule that nobody has told.

    Args:
        tool: Which.
        run: What was recorded.
        result: Of the same records.
    """
    return [line for section in tool.sections for line in _explained(tool, section, run, result)]


def _explained(tool: Tool, section: Section, run: Run, result: Result) -> list[Line]:
    every = Asked(frozenset(tool.rules))
    rows = section(run, every)
    ours_of = {row.label: _ours(result, row) for row in rows}
    unlike = [row for row in rows if row.ours and row.shown(row.value) != row.shown(ours_of[row.label])]
    why: dict[str, list[Rule]] = {row.label: [] for row in rows}
    before, asked = _values(rows), every
    for count, rule in enumerate(tool.rules, 1):
        if not unlike or rule not in asked.answers:  # it did not ask about the rule, so nothing depends on it
            continue
        asked = Asked(frozenset(tool.rules[count:]))
        after = _values(section(run, asked))
        for row in unlike:
            if row.shown(before.get(row.label)) != row.shown(after.get(row.label)):
                why[row.label].append(rule)
        before = after
    for row in unlike:
        if not why[row.label] and not row.notes:
            why[row.label] += _by_loadgen(row, run)
    return [Line(row, ours_of[row.label], tuple(dict.fromkeys((*why[row.label], *row.notes)))) for row in rows]


def _by_loadgen(row: Row, run: Run) -> list[Rule]:
    """Why a row differs that no rule of the tool changes."""
    if row.is_latency:
        return [DIGITS]
    return [UNKNOWN] if run.unknown.any() else []


def _ours(result: Result, row: Row) -> float | None:
    """Loadgen's value for a row, in its unit."""
    value = ours(result, row.ours) if row.ours else None
    return None if value is None else value / row.unit_ms


def _values(rows: list[Row]) -> dict[str, float | None]:
    return {row.label: row.value for row in rows}
