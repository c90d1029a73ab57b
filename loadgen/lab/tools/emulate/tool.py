"""Tool: another load generator, as functions from a recorded run to the rows of its console.

A `Rule` is one way in which the arithmetic of the tool differs from loadgen's, which can be
switched off. A `View` is a recorded run as a tool with some active rules sees it. A `Row` is one
line of the tool's console, and the number of loadgen that corresponds to it.
"""

from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.recorded_run import Bools, RecordedRun
from loadgen.report.tool_block import VLLM_TOTALS
from loadgen.util.arrays import Int64s
from loadgen.util.files import table_rows
from loadgen.util.number_format import percentile


@dataclass(frozen=True)
class Rule:
    """A difference between a tool and loadgen.

    Attributes:
        name: For JSON.
        text: What the tool does, and what loadgen does instead.
    """

    name: str
    text: str


Rules = Container[Rule]
_TEXTS = dict(table_rows(Path(__file__).with_name("rules.txt")))


def rule(key: str) -> Rule:
    """Return a rule of rules.txt: NAME, or TOOL.NAME where tools of one name differ."""
    return Rule(key.rpartition(".")[2], _TEXTS[key])


class RuleProbe:
    """Active rules that record which rules were asked about: a result cannot depend on the others.

    Args:
        active: The active rules.

    Attributes:
        answers: The rules that were asked about, and whether they are active.
    """

    def __init__(self, active: Collection[Rule]) -> None:
        self._active = active
        self.answers: dict[Rule, bool] = {}

    def __contains__(self, rule: object) -> bool:
        assert isinstance(rule, Rule)
        return self.answers.setdefault(rule, rule in self._active)


FROM_SENT = rule("from_sent")
CONNECTING = rule("connecting")
MEAN_ITL = rule("mean_itl")
N_MINUS_1 = rule("n_minus_1")
EVENT_IS_TOKEN = rule("event_is_token")
SPREAD = rule("spread")
WHOLE_SECONDS = rule("whole_seconds")
TOUCHED_SECONDS = rule("touched_seconds")
FORGIVING = rule("forgiving")
PLANNED_INPUT = rule("planned_input")
ZERO = rule("zero")

# Notes on values that cannot be computed, or that are incomplete.
RETOKENIZED = rule("retokenized")
UNPLANNED = rule("unplanned")
DIGITS = rule("digits")
ERRED = rule("erred")
UNKNOWN = rule("unknown")


@dataclass(frozen=True)
class Row:
    """One line as the tool prints it.

    Attributes:
        label: In the tool's own words.
        value: In the unit of the label; None if it cannot be known.
        ours: Name of the corresponding number of loadgen, as for `loadgen_value`; None if there is
            none.
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


MS = 1_000_000


@dataclass(frozen=True)
class View:
    """A recorded run as a tool sees it; times are ns, arrays have the shape (requests,).

    Attributes:
        run: The run.
        active: The active rules.
    """

    run: RecordedRun
    active: Rules

    @property
    def began(self) -> Int64s:
        """When the tool begins to send each request."""
        return self.run.sent - self.run.connect_ns if CONNECTING in self.active else self.run.sent

    @property
    def starts(self) -> Int64s:
        """When the tool's clock starts for each request."""
        from_due = FROM_SENT not in self.active and self.run.settings.latency_from == "due"
        return self.run.due if from_due else self.began

    @property
    def first_start(self) -> int:
        """When the tool begins to send the first request."""
        sent = self.began[self.run.sent > 0]
        return int(sent.min()) if len(sent) else self.run.start_ns

    def notes_on_counts(self, included: Bools) -> tuple[Rule, ...]:
        """Return the notes on every count of requests, if `included` are the successful ones."""
        notes = {UNKNOWN: self.run.abandoned.any(), ERRED: (self.run.has_error & included).any()}
        return tuple(rule for rule, holds in notes.items() if holds)

    def latency_row(
        self,
        label: str,
        name: str,
        value: float | None,
        unit_ms: float = 1.0,
        notes: tuple[Rule, ...] = (),
    ) -> Row:
        """Return the row of one statistic of a latency.

        Args:
            name: The corresponding latency and statistic of loadgen, as "ttft mean".
            value: ns; None if there are no values: with `ZERO`, it is 0.
            notes: If there are any, the value cannot be known.
        """
        if notes:
            value = None
        elif value is None and ZERO in self.active:
            value = 0.0
        return Row(
            label,
            None if value is None else value / MS / unit_ms,
            name,
            unit_ms=unit_ms,
            notes=notes,
        )

    def percentile_rows(
        self,
        title: str,
        metric: str,
        values: Distribution,
        ps: Iterable[float],
        unit_ms: float = 1.0,
        notes: tuple[Rule, ...] = (),
    ) -> list[Row]:
        """Return the rows of mean, median and percentiles in the format of vLLM's console.

        Args:
            values: ns.
            ps: The percentiles after the median, 0 to 100.
        """
        statistics = [("Mean", "mean", values.mean), ("Median", "p50", values.percentile(50))]
        statistics += [(percentile(p).upper(), percentile(p), values.percentile(p)) for p in ps]
        return [
            self.latency_row(f"{label} {title}:", f"{metric} {statistic}", value, unit_ms, notes)
            for label, statistic, value in statistics
        ]


def vllm_row(key: str, value: float | None, notes: tuple[Rule, ...] = (), label: str = "") -> Row:
    """Return a row of vLLM's block.

    Args:
        key: Its key there, which is loadgen's name of the number, too.
        value: The value.
        notes: Its notes.
        label: What the tool calls it, if that is another name than vLLM's.
    """
    usual, form = VLLM_TOTALS[key]
    return Row(label or usual, value, key, 2 if form else 0, notes=notes)


Section = Callable[[View], list[Row]]


@dataclass(frozen=True)
class Tool:
    """One version of a load generator.

    Attributes:
        title: Its name and version.
        rules: How it differs from loadgen.
        sections: Parts of its console, in order: each computes rows of a run with the active rules.
            Without any rule they are loadgen's own numbers, except for the precision of a
            histogram.
        premises: How the tool is assumed to have been called, and other remarks.
        native: Whether it can ask SGLang's own /generate.
    """

    title: str
    rules: tuple[Rule, ...]
    sections: tuple[Section, ...]
    premises: tuple[str, ...] = ()
    native: bool = False
