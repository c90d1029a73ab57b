"""Check: one statement about a run; Verdict: what all of them say together."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """Whether to believe a run."""

    VALID = "VALID"
    SUSPECT = "SUSPECT"
    INVALID = "INVALID"


UNKNOWN = "what the measuring process met is not known"


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about a run.

    Attributes:
        group: The letter of its group in `loadgen.checks.GROUPS`, which `examine` gives it.
        name: What is checked, in a word or two.
        ok: True or False; None where the check does not apply to this run.
        value: What was seen, with its unit.
        limit: What was allowed, with its unit; or, where it does not apply, why.
        advice: What to do when it fails, in one line.
        counts: Whether the verdict follows from it; a check that does not count is a note.
    """

    group: str = field(default="", kw_only=True)
    name: str
    ok: bool | None
    value: str
    limit: str
    advice: str
    counts: bool = True

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)


def inapplicable(name: str, why: str) -> Check:
    """A check that says nothing about this run, because of `why`."""
    return Check(name, None, "n/a", why, "none needed")


def verdict(checks: Iterable[Check]) -> Verdict:
    """INVALID if accounting (group A) fails, SUSPECT if any other check that counts does, else VALID."""
    failed = {check.group for check in checks if check.ok is False and check.counts}
    if "A" in failed:
        return Verdict.INVALID
    return Verdict.SUSPECT if failed else Verdict.VALID
