"""ToolComparison: what a tool would have printed for a recorded run, and why loadgen's numbers
differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from loadgen.config import slo
from loadgen.document import Block, Items, Note, Paragraph, Table, line, terminal_writer
from loadgen.document.terminal_writer import width
from loadgen.errors import BadInput
from loadgen.lab.tools.emulate import aiperf, guidellm, sglang, vllm
from loadgen.lab.tools.emulate.recorded_run import RecordedRun
from loadgen.lab.tools.emulate.tool import (
    DIGITS,
    UNKNOWN,
    Row,
    Rule,
    RuleProbe,
    Section,
    Tool,
    View,
)
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.run_result import Result, from_records
from loadgen.util.number_format import to_ms
from loadgen.util.terminal_text import PLAIN, Screen

TOOLS: Mapping[str, Tool] = {
    "vllm-0.11": vllm.V11,
    "vllm-0.32": vllm.V32,
    "vllm-0.33": vllm.V33,
    "vllm-rs": vllm.RUST,
    "sglang": sglang.SGLANG,
    "benchmark-runner": guidellm.BENCHMARK_RUNNER,
    "aiperf": aiperf.AIPERF,
}


@dataclass(frozen=True)
class ExplainedRow:
    """A row of a tool, explained.

    Attributes:
        row: The row of the tool.
        ours: The corresponding number of loadgen; None: n/a.
        why: The rules that cause the difference, and the row's notes.
    """

    row: Row
    ours: float | None
    why: tuple[Rule, ...]


@dataclass(frozen=True)
class ToolComparison:
    """What a tool would have printed for a run.

    Attributes:
        tool: The tool.
        path: The path of the file of records.
        requests: Number of requests in it.
        rows: In the order of the tool's console.
    """

    tool: Tool
    path: str
    requests: int
    rows: list[ExplainedRow]

    @property
    def reasons(self) -> list[Rule]:
        """The rules that changed a row, without duplicates, in the order of their first
        occurrence.
        """
        return list(dict.fromkeys(chain.from_iterable(row.why for row in self.rows)))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; `why` holds names of `reasons`."""
        return {
            "tool": self.tool.title,
            "premises": list(self.tool.premises),
            "records": self.path,
            "requests": self.requests,
            "rows": [
                {
                    "row": row.row.label,
                    "theirs": row.row.value,
                    "ours": row.ours,
                    "our_metric": row.row.ours,
                    "why": [rule.name for rule in row.why],
                }
                for row in self.rows
            ],
            "reasons": {rule.name: rule.text for rule in self.reasons},
        }


def compare(path: str | Path, name: str) -> ToolComparison:
    """Compute what a tool would have printed for a file of records.

    Args:
        path: A file of --records.
        name: One of TOOLS.

    Raises:
        BadInput: The tool is unknown, or the file holds no records with their streams.
    """
    if name not in TOOLS:
        raise BadInput("--as", f"unknown tool {name!r}", f"choose from {', '.join(TOOLS)}")
    if not RecordFile.is_one(path):
        raise BadInput("--as", f"{path} has no records", "name a file that --records wrote")
    file = RecordFile(path)
    if not file.header.settings.streams:
        raise BadInput(
            "--as",
            f"the answers in {path} came in one piece, and these rules are about the times of "
            "tokens",
            "leave it out",
        )
    run = RecordedRun(file.header.settings, file.start_ns, file)
    if run.native and not TOOLS[name].native:
        raise BadInput(
            "--as", f"{name} cannot ask /generate, which {path} is of", "use --as sglang"
        )
    return ToolComparison(
        TOOLS[name], str(path), len(run), explain(TOOLS[name], run, from_records(path))
    )


def explain(tool: Tool, run: RecordedRun, result: Result) -> list[ExplainedRow]:
    """Return the rows of a tool, each with the rules that change it when they are switched off one
    after another.

    The steps lead from the tool's value to loadgen's, so a difference without a reason is a rule
    that is missing.

    Args:
        tool: The tool.
        run: The recorded run.
        result: The result of the same records.
    """
    return list(
        chain.from_iterable(
            _explain_section(tool, section, run, result) for section in tool.sections
        )
    )


def loadgen_value(result: Result, name: str) -> float | None:
    """Return a number of loadgen's result.

    Args:
        result: The result of the run.
        name: A number of `RunNumbers`, or a latency and its statistic: "ttft mean", "itl p99",
            "e2el max"; these are in ms, on the clock of --latency-from.
    """
    metric, _, statistic = name.partition(" ")
    if not statistic:
        value: float | None = getattr(result.numbers, name)
        return value
    histogram = result.snapshot.histograms[slo.distribution(metric, result.latency_from)]
    if statistic == "mean":
        return to_ms(histogram.mean)
    if statistic == "max":
        return to_ms(histogram.max)
    return to_ms(histogram.percentile(float(statistic.removeprefix("p"))))


def _explain_section(
    tool: Tool, section: Section, run: RecordedRun, result: Result
) -> list[ExplainedRow]:
    probe = RuleProbe(frozenset(tool.rules))
    rows = section(View(run, probe))
    values = {
        row.label: (loadgen_value(result, row.ours) if row.ours else None, row.unit_ms)
        for row in rows
    }
    ours = {
        label: None if value is None else value / unit for label, (value, unit) in values.items()
    }
    differing = [
        row for row in rows if row.ours and row.shown(row.value) != row.shown(ours[row.label])
    ]
    why: dict[str, list[Rule]] = {row.label: [] for row in rows}
    before = _values(rows)
    for count, rule in enumerate(tool.rules, 1):
        if (
            not differing or rule not in probe.answers
        ):  # nothing depends on a rule that was not asked about
            continue
        probe = RuleProbe(frozenset(tool.rules[count:]))
        after = _values(section(View(run, probe)))
        for row in differing:
            if row.shown(before.get(row.label)) != row.shown(after.get(row.label)):
                why[row.label].append(rule)
        before = after
    for row in differing:
        if not why[row.label] and not row.notes:  # the reason is loadgen's own
            if row.is_latency:
                why[row.label].append(DIGITS)
            elif run.abandoned.any():
                why[row.label].append(UNKNOWN)
    return [
        ExplainedRow(row, ours[row.label], tuple(dict.fromkeys((*why[row.label], *row.notes))))
        for row in rows
    ]


def _values(rows: list[Row]) -> dict[str, float | None]:
    return {row.label: row.value for row in rows}


def render(comparison: ToolComparison, screen: Screen = PLAIN) -> str:
    """Return the whole text, without control characters.

    Args:
        comparison: The comparison.
        screen: Where it is shown.
    """
    return terminal_writer.text(tuple(_blocks(comparison)), width(screen))


def _blocks(comparison: ToolComparison) -> Iterator[Block]:
    tool = comparison.tool
    requests = f"{comparison.path} ({comparison.requests} requests)"
    title = f"What {tool.title} would have printed for {requests}, and loadgen's numbers"
    yield Note("note", title, tuple(map(Paragraph.of, tool.premises)))
    reasons = comparison.reasons
    rows = (
        (
            row.row.label,
            row.row.shown(row.row.value),
            row.row.shown(row.ours) if row.row.ours else "-",
            " ".join(str(reasons.index(rule) + 1) for rule in row.why),
        )
        for row in comparison.rows
    )
    yield Table.of(("Their row", "theirs", "ours", "why"), rows, text_columns=1, remarks=True)
    if reasons:
        texts = tuple(line(rule.text) for rule in reasons)
        yield Note("note", "Why", (Items(texts, numbered=True),))
