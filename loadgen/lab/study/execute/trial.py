"""A trial: one fresh start of an arm, its request and its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

from loadgen.lab.study.execute.workload_findings import WorkloadFindings
from loadgen.report.result.fields import from_json_values

INVALID = "invalid"  # kind of a failure that the client caused: its measurement is not usable


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A start that a study needs next.

    Attributes:
        step: Name of the step.
        block: Index of the block, from 0; each block starts each arm once.
        arm: Name of the arm in the step.
        attempt: From 0; higher after a transient failure of the attempt before.
    """

    step: str
    block: int
    arm: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a trial has no value.

    Attributes:
        kind: Class of the failure, of `loadgen.engines.launch.crash_cause`, or INVALID.
        cause: The log line or message that explains it.
        transient: Whether a second attempt may succeed.
    """

    kind: str
    cause: str
    transient: bool

    def __str__(self) -> str:
        return f"{self.kind}: {self.cause}"


@dataclass(frozen=True)
class WorkloadRun:
    """The result of one workload in a trial.

    Attributes:
        summary: Numbers of the result by the names of `vllm bench serve`; under `loadgen` what was judged.
        path: File of the whole result, relative to the store.
    """

    summary: Mapping[str, Any]
    path: str

    @cached_property
    def findings(self) -> WorkloadFindings:
        """What was judged of it."""
        return from_json_values(self.summary["loadgen"], WorkloadFindings)

    @cached_property
    def rounds(self) -> tuple[WorkloadRun, ...]:
        """The runs of a start that has several, of which this is the middle one; else this one."""
        found = self.summary.get("loadgen", {}).get("rounds", ())
        return tuple(WorkloadRun(each["summary"], each["path"]) for each in found) or (self,)

    @property
    def success_rate(self) -> float:
        """Share of the due requests that succeeded."""
        requests = self.summary.get("num_prompts") or 0
        return self.summary["completed"] / requests if requests else 0.0


@dataclass(frozen=True, slots=True)
class Answers:
    """A server's answers to questions with known answers.

    Attributes:
        questions: SHA-256 of the questions, in hexadecimal.
        right: Whether each question was answered right; False if it got no answer.
        wrong: A few wrong answers: `question`, a right `answer`, and what the server `said`.
        trouble: Why the answers cannot be used; empty if they can.
    """

    questions: str
    right: tuple[bool, ...]
    wrong: tuple[Mapping[str, str], ...] = ()
    trouble: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with `right` as a string of 0 and 1."""
        return {
            "questions": self.questions,
            "right": "".join("01"[right] for right in self.right),
            "wrong": list(self.wrong),
            "trouble": self.trouble,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form that `to_dict` returns."""
        right = tuple(each == "1" for each in data["right"])
        return cls(data["questions"], right, tuple(data["wrong"]), data["trouble"])


@dataclass(frozen=True, slots=True)
class Trial:
    """A start that has ended.

    Attributes:
        request: Step, block and arm of the start.
        config: Identity of what was served.
        build: Version of the engine.
        began: Start time, ISO 8601 in UTC.
        seconds: Time from the start until the engine was gone.
        ready_s: Time until the server answered; None if it never did.
        failure: Why the trial has no value; None if it has one.
        server_config: Configuration that the server reported, by name; None if it reported none.
        runs: Result of each workload, in order.
        folder: Folder of its files, relative to the store.
        answers: Answers to the questions of the accuracy gate; None if none were asked.
    """

    request: TrialRequest
    config: str
    build: str | None
    began: str
    seconds: float
    ready_s: float | None = None
    failure: Failure | None = None
    server_config: Mapping[str, Any] | None = None
    runs: Mapping[str, WorkloadRun] = field(default_factory=dict)
    folder: str = ""
    answers: Answers | None = None


def first_answers(trials: Iterable[Trial]) -> Answers | None:
    """Return the answers of the first trial that has some; None if none has."""
    return next((trial.answers for trial in trials if trial.answers is not None), None)


def now() -> str:
    """Return the current time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
