"""Trial: one fresh start of an arm, and what its workloads found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

INVALID = "invalid"  # a failure that is the client's: what was measured is not believed


@dataclass(frozen=True, slots=True)
class Wanted:
    """A start that a study wants next.

    Attributes:
        step: Name of the stage, or of what goes before and after them.
        block: From 0; each arm is started once in each block.
        arm: Name in the step.
        attempt: From 0; higher where one before failed for a reason that may pass.
    """

    step: str
    block: int
    arm: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trial has no value.

    Attributes:
        kind: Class of the failure, as `loadgen.engines.launch.crash` names it, or INVALID.
        cause: The line that says it.
        transient: Whether the same may go well another time.
    """

    kind: str
    cause: str
    transient: bool


@dataclass(frozen=True, slots=True)
class Ran:
    """What one workload found.

    Attributes:
        summary: The result's numbers, by `vllm bench serve`'s names, and under `loadgen` what was judged of it.
        path: The whole result, relative to the store.
    """

    summary: Mapping[str, Any]
    path: str

    @property
    def success_rate(self) -> float:
        """Share of the requests that were due and ended well."""
        wanted = self.summary.get("num_prompts") or 0
        return self.summary["completed"] / wanted if wanted else 0.0


@dataclass(frozen=True, slots=True)
class Answered:
    """What a server answered to questions with known answers.

    Attributes:
        questions: Their SHA-256, in hexadecimal.
        right: Of each, whether it was answered right; one that got no answer was not.
        wrong: A few answers that are wrong: `question`, an `answer` that is right, and what was `said`.
        trouble: Why all this says nothing of the model; empty if it does.
    """

    questions: str
    right: tuple[bool, ...]
    wrong: tuple[Mapping[str, str], ...] = ()
    trouble: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON form; `right` as a text of 0 and 1."""
        return {
            "questions": self.questions,
            "right": "".join("01"[right] for right in self.right),
            "wrong": list(self.wrong),
            "trouble": self.trouble,
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """That of which `to_dict` made `told`."""
        right = tuple(each == "1" for each in told["right"])
        return cls(told["questions"], right, tuple(told["wrong"]), told["trouble"])


@dataclass(frozen=True, slots=True)
class Trial:
    """A start that is over.

    Attributes:
        wanted: What it was for.
        config: Identity of what was served.
        build: Version of the engine.
        began: When, ISO 8601 in UTC.
        seconds: From the start until nothing was left of it.
        ready_s: Until it answered; None if it never did.
        failure: Why it has no value; None if it has.
        told: The configuration that the server told, by name; None if it told none.
        runs: What each workload found, in order.
        folder: Its files, relative to the store.
        answered: What it answered to questions; None if none were asked.
    """

    wanted: Wanted
    config: str
    build: str | None
    began: str
    seconds: float
    ready_s: float | None = None
    failure: Failure | None = None
    told: Mapping[str, Any] | None = None
    runs: Mapping[str, Ran] = field(default_factory=dict)
    folder: str = ""
    answered: Answered | None = None


def now() -> str:
    """The time as a trial has it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
