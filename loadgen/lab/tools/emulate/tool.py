"""Tool: another load generator, as functions from a recorded run to the rows of its console."""

from collections.abc import Callable
from dataclasses import dataclass

from loadgen.lab.tools.emulate.row import Row
from loadgen.lab.tools.emulate.rule import Rule
from loadgen.lab.tools.emulate.view import View

Section = Callable[[View], list[Row]]


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
