"""Row: one line of a tool's console, and which number of loadgen's answers it."""

from dataclasses import dataclass

from loadgen.analysis.emulate.rule import Rule


@dataclass(frozen=True)
class Row:
    """One line as the tool prints it.

    Attributes:
        label: The tool's own words.
        value: In the unit that the label names; None where it cannot be known.
        ours: The number of loadgen that answers the same question, as `own_numbers` finds it; None if there is none.
        digits: Shown after the point.
        unit_ms: The unit of `value` in ms, where it is a latency; else 1.
        notes: What else a reader must know of this value.
    """

    label: str
    value: float | None
    ours: str | None = None
    digits: int = 2
    unit_ms: float = 1.0
    notes: tuple[Rule, ...] = ()

    @property
    def is_latency(self) -> bool:
        """Whether loadgen's number is a statistic of a latency, which comes from a histogram."""
        return self.ours is not None and " " in self.ours

    def shown(self, value: float | None) -> str:
        """A value as this row shows it."""
        return "n/a" if value is None else f"{value:.{self.digits}f}"
