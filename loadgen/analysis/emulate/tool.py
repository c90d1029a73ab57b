"""Tool: another load generator, as a function from what was recorded to the rows of its console."""

from collections.abc import Callable
from dataclasses import dataclass

from loadgen.analysis.emulate.recorded_run import Run
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import Rule, Rules

Section = Callable[[Run, Rules], list[Row]]


@dataclass(frozen=True)
class Tool:
    """One version of a load generator.

    Attributes:
        title: Its name and version.
        rules: What it does otherwise than loadgen.
        sections: The parts of what its console shows, in its order: each makes rows of a run while some of these rules
            hold. With none of them they are loadgen's own numbers, but for the digits of a histogram.
        premises: How it is presumed to have been called, and what else a reader must know.
    """

    title: str
    rules: tuple[Rule, ...]
    sections: tuple[Section, ...]
    premises: tuple[str, ...] = ()

    def rows(self, run: Run, on: Rules) -> list[Row]:
        """All that its console shows of a run while these rules hold."""
        return [row for section in self.sections for row in section(run, on)]
