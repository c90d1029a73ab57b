"""Check: one statement about a run; Verdict: what all of them say together."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """Whether to believe a run."""

    VALID = "VALID"
    SUSPECT = "SUSPECT"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about a run.

    Attributes:
        group: A accounting, B did we send it (see the documentation for the others).
        name: What is checked, in a word or two.
        ok: True or False; None where the check does not apply to this run.
        value: What was seen, with its unit.
        limit: What was allowed, with its unit; or, where it does not apply, why.
        advice: What to do when it fails, in one line.
    """

    group: str
    name: str
    ok: bool | None
    value: str
    limit: str
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)


def verdict(checks: Iterable[Check]) -> Verdict:
    """INVALID if accounting (group A) fails, SUSPECT if any other check does, else VALID."""
    failed = {check.group for check in checks if check.ok is False}
    if "A" in failed:
        return Verdict.INVALID
    return Verdict.SUSPECT if failed else Verdict.VALID
