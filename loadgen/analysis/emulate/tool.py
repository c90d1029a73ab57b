"""Tool: another load generator, as functions from a recorded run to the rows of its console."""

from collections.abc import Callable
from dataclasses import dataclass

from loadgen.analysis.emulate.recorded_run import RecordedRun
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import Rule, Rules

Section = Callable[[RecordedRun, Rules], list[Row]]


@dataclass(frozen=True)
class Tool:
    """One version of a load generator.

    Attributes:
        title: Its name and version.
        rules: How it differs from loadgen.
        sections: Parts of its console, in order: each computes rows of a run with the active rules. Without any rule
            they are loadgen's own numbers, except for the precision of a histogram.
        premises: How the tool is assumed to have been called, and other remarks.
        native: Whether it can ask SGLang's own /generate.
    """

    title: str
    rules: tuple[Rule, ...]
    sections: tuple[Section, ...]
    premises: tuple[str, ...] = ()
    native: bool = False

    def rows(self, run: RecordedRun, active: Rules) -> list[Row]:
        """Return all rows of its console for a run with these rules."""
        return [row for section in self.sections for row in section(run, active)]
