"""Row: one line of a tool's console, and the number of loadgen that corresponds to it."""

from dataclasses import dataclass

from loadgen.lab.tools.emulate.rule import Rule


@dataclass(frozen=True)
class Row:
    """One line as the tool prints it.

    Attributes:
        label: In the tool's own words.
        value: In the unit of the label; None if it cannot be known.
        ours: Name of the corresponding number of loadgen, as for `loadgen_value`; None if there is none.
        digits: Number of decimals.
        unit_ms: Unit of a latency in ms; 1 for other values.
        notes: Remarks on the value.
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
        """Format a value as this row prints it."""
        return "n/a" if value is None else f"{value:.{self.digits}f}"
