"""Check: one statement about a run; Bound: what a number of it may be; Verdict: what all checks say
together.
"""

import operator
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from loadgen.util.number_format import SHARE, quantity

UNKNOWN = "the measuring process left no report"
Comparison = Literal["<=", ">=", "<", ">"]
# How each compares two numbers, and how a text says it of a limit.
COMPARISONS = {
    "<=": (operator.le, ""),
    ">=": (operator.ge, "at least "),
    "<": (operator.lt, "below "),
    ">": (operator.gt, "above "),
}


class Verdict(StrEnum):
    """Whether to believe a run."""

    VALID = "VALID"
    SUSPECT = "SUSPECT"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about the run."""

    group: Annotated[str, Meta(description="The letter of its group (docs/checks.md).")] = field(
        default="", kw_only=True
    )
    name: Annotated[str, Meta(description="Short name of the check.")]
    ok: Annotated[
        bool | None,
        Meta(description="Whether the check passed; null: it does not apply to this run."),
    ]
    value: Annotated[str, Meta(description="Measured value, with its unit.")]
    limit: Annotated[
        str, Meta(description="Allowed value, with its unit, or why the check does not apply.")
    ]
    measured: Annotated[
        float | None,
        Meta(description="The number that was measured; null: the check is not about one number."),
    ] = field(default=None, kw_only=True)
    comparison: Annotated[
        Comparison, Meta(description="How `measured` compares with `allowed` if the check passed.")
    ] = field(default="<=", kw_only=True)
    allowed: Annotated[
        float | None, Meta(description="The bound of `measured`; null where it is.")
    ] = field(default=None, kw_only=True)
    unit: Annotated[
        str,
        Meta(
            description=f"Unit of `measured` and `allowed`: ms, ns, tok/s, or {SHARE}, a share of "
            "1, which texts show as a percentage; empty: a count, or a number without unit."
        ),
    ] = field(default="", kw_only=True)
    advice: Annotated[str, Meta(description="What to do when it fails, in one line.")]
    counts: Annotated[
        bool,
        Meta(description="Whether the check affects the verdict; a check that does not is a note."),
    ] = True
    explains: Annotated[
        bool,
        Meta(
            description="Whether a failure only explains others: it is shown with them, and "
            "alone it says nothing."
        ),
    ] = False

    @property
    def finding(self) -> str:
        """What was seen, and what was allowed; a value whose limit is 0 says by itself that it
        is too much.
        """
        return self.value if self.limit == "0" else f"{self.value}, limit {self.limit}"

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON."""
        return asdict(self)


class Bound(NamedTuple):
    """What a number of a run may be. A check of it is `ok` by it alone, and has its texts from it.

    Attributes:
        allowed: The bound.
        unit: Its unit, and that of the numbers that are compared with it, as in `Check`.
        comparison: How a number that is allowed compares with it.
        why: What its text says besides: how it came about, or where it applies.
    """

    allowed: float = 0
    unit: str = ""
    comparison: Comparison = "<="
    why: str = ""

    def check(
        self, name: str, measured: float, about: str, advice: str, counts: bool = True
    ) -> Check:
        """Make a check of a number.

        Args:
            name: The name of the check.
            measured: The number, in the unit of the bound.
            about: What the number is of; its text begins with the number.
            advice: What to do when it is not allowed.
            counts: Whether the check affects the verdict.
        """
        compare, words = COMPARISONS[self.comparison]
        return Check(
            name,
            bool(compare(measured, self.allowed)),
            f"{quantity(measured, self.unit)} {about}",
            f"{words}{quantity(self.allowed, self.unit)} {self.why}".rstrip(),
            advice,
            counts,
            measured=float(measured),
            comparison=self.comparison,
            allowed=float(self.allowed),
            unit=self.unit,
        )


NONE = Bound()  # of a count


def inapplicable(name: str, why: str) -> Check:
    """A check that says nothing about this run, because of `why`."""
    return Check(name, None, "n/a", why, "none needed")


def explanation(check: Check) -> Check:
    """Return a check that neither affects the verdict nor is a note, but explains why other
    checks fail.
    """
    return replace(check, counts=False, explains=True)


def reasons(checks: Iterable[Check], group: str = "") -> list[str]:
    """Say why a run is not VALID, a line for each check that failed and counts.

    Args:
        checks: The checks of the run.
        group: The letter of a group of checks; empty: all of them.
    """
    failed = (check for check in checks if check.ok is False and check.counts)
    return [f"{check.name}: {check.finding}" for check in failed if group in ("", check.group)]


def verdict(checks: Iterable[Check]) -> Verdict:
    """INVALID if accounting (group A) fails, SUSPECT if any other check that counts does, else
    VALID.
    """
    failed = {check.group for check in checks if check.ok is False and check.counts}
    if "A" in failed:
        return Verdict.INVALID
    return Verdict.SUSPECT if failed else Verdict.VALID
