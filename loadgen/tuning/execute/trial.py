"""A trial: one fresh start of an arm, its request and its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

from loadgen.report.result.fields import from_json_values
from loadgen.tuning.execute.workload_findings import WorkloadFindings

INVALID = "invalid"  # kind of a failure that the client caused: its measurement is not usable


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A start that a study needs next."""

    step: str
    block: int  # index of the block, from 0; each block starts each arm once
    arm: str
    attempt: int = 0  # from 0; higher after a transient failure of the attempt before


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a trial has no value."""

    kind: str  # class of the failure, of `loadgen.engines.launch.crash_cause`, or INVALID
    cause: str  # the log line or message that explains it
    transient: bool  # whether a second attempt may succeed

    def __str__(self) -> str:
        return f"{self.kind}: {self.cause}"


@dataclass(frozen=True)
class WorkloadRun:
    """The result of one workload in a trial."""

    # numbers of the result by the names of `vllm bench serve`; under `loadgen` what was judged
    summary: Mapping[str, Any]
    path: str  # file of the whole result, relative to the store

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
    """A server's answers to questions with known answers."""

    questions: str  # SHA-256 of the questions, in hexadecimal
    right: tuple[bool, ...]  # whether each question was answered right; False if it got no answer
    # a few wrong answers: `question`, a right `answer`, and what the server `said`
    wrong: tuple[Mapping[str, str], ...] = ()
    trouble: str = ""  # why the answers cannot be used; empty if they can

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
    """A start that has ended."""

    request: TrialRequest
    config: str  # identity of what was served
    build: str | None
    began: str  # start time, ISO 8601 in UTC
    seconds: float  # time from the start until the engine was gone
    ready_s: float | None = None  # time until the server answered; None if it never did
    failure: Failure | None = None  # why the trial has no value; None if it has one
    # configuration that the server reported, by name; None if it reported none
    server_config: Mapping[str, Any] | None = None
    runs: Mapping[str, WorkloadRun] = field(default_factory=dict)  # result of each workload, in order
    folder: str = ""  # folder of its files, relative to the store
    answers: Answers | None = None  # answers to the questions of the accuracy gate; None if none were asked


def first_answers(trials: Iterable[Trial]) -> Answers | None:
    """Return the answers of the first trial that has some; None if none has."""
    return next((trial.answers for trial in trials if trial.answers is not None), None)


def now() -> str:
    """Return the current time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
