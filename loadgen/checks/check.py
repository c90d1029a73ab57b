"""Check: one statement about a run; Verdict: what all of them say together."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

UNKNOWN = "the measuring process left no report"


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
