"""JudgedComparison: a comparison, and the conditions on it that hold or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.analysis.compare import console, json_report
from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.condition import Judgement, judge, parse
from loadgen.analysis.compare.noise_file import NoiseFile
from loadgen.analysis.compare.side import Side


@dataclass(frozen=True, repr=False)
class JudgedComparison(Comparison):
    """Candidates compared with a baseline, and what follows for each condition. `str` gives the report.

    Attributes:
        judgements: One for each condition and candidate: `failed` is True, False, or None if the runs cannot tell.
    """

    judgements: tuple[Judgement, ...] = ()

    @classmethod
    def of(
        cls, sides: Sequence[Side], *, noise: NoiseFile | None, fail_if: Iterable[str], anyway: bool
    ) -> "JudgedComparison":
        """Compare sides with the first one, and test conditions on the changes.

        Args:
            sides: Two or more.
            noise: The variation between starts, from a file.
            fail_if: Conditions, such as "ttft_p99>+5%".
            anyway: Also compare runs of different workloads.

        Raises:
            BadInput: A condition is malformed, the workloads differ, or a run is on two sides.
        """
        conditions = parse(fail_if)
        found = compare(sides, noise=noise, extra_metrics=[each.metric for each in conditions], anyway=anyway)
        judgements = tuple(judge(found, conditions))
        return cls(found.baseline, found.candidates, found.notes, found.clashes, judgements)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON; docs/compare.md describes its keys."""
        return json_report.as_json(self) | {"conditions": [each.to_dict() for each in self.judgements]}

    def __str__(self) -> str:
        return console.render(self) + "".join(f"{each}\n" for each in self.judgements)

    def __repr__(self) -> str:
        names = ", ".join(side.name for side in self.sides[1:])
        return f"<JudgedComparison of {names} with {self.baseline.name}>"
