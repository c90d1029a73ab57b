"""A trial: one fresh start of an arm, its request and its outcome.

`WorkloadFindings` is what was judged of a workload's run beside its numbers: verdict, limits,
the highest rate, what disturbed it, and where it was published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

import msgspec
from msgspec import Struct

from loadgen.checks.distortion import MAX_SHARE
from loadgen.report.result.fields import from_json_values
from loadgen.report.result.outcomes import LimitResult
from loadgen.util.machine import MAX_STOLEN_SHARE, max_others_cores, taken_text
from loadgen.util.number_format import percent

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
        summary: Numbers of the result by the names of `vllm bench serve`; under `loadgen` what was
            judged.
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
        rounds = self.summary.get("loadgen", {}).get("rounds", ())
        return tuple(WorkloadRun(part["summary"], part["path"]) for part in rounds) or (self,)

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
        late: Indices of the questions that got no answer in time, which says nothing of the answer.
    """

    questions: str
    right: tuple[bool, ...]
    wrong: tuple[Mapping[str, str], ...] = ()
    trouble: str = ""
    late: tuple[int, ...] = ()

    @property
    def unjudged(self) -> bool:
        """Whether too many answers did not come in time to judge the server by them."""
        return bool(self.trouble and self.late)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with `right` as a string of 0 and 1."""
        return {
            "questions": self.questions,
            "right": "".join("01"[right] for right in self.right),
            "wrong": list(self.wrong),
            "trouble": self.trouble,
            "late": list(self.late),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form that `to_dict` returns."""
        right = tuple(digit == "1" for digit in data["right"])
        late = tuple(data.get("late", ()))  # stores of before have none
        return cls(data["questions"], right, tuple(data["wrong"]), data["trouble"], late)


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


def usable_answers(trials: Iterable[Trial]) -> Answers | None:
    """Return the first answers that can be judged, else the last that cannot; None if there are
    none.
    """
    answers = [trial.answers for trial in trials if trial.answers is not None]
    judged = (part for part in answers if not part.unjudged)
    return next(judged, answers[-1] if answers else None)


def now() -> str:
    """Return the current time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class MaxRate(Struct, frozen=True, kw_only=True):
    """The highest request rate that meets the limits.

    Attributes:
        rate: The highest tried rate that met them, requests/s; 0: none.
        fails: The lowest tried rate that did not, requests/s; None: none.
        end: How the search ended: edge, floor or none.
        tried: Pairs of a rate and whether it met the limits.
        attainment: The share of requests that must meet them.
        limits: The limits as written.
        resolution: How close `rate` and `fails` had to be, as a ratio.
        runs: Runs that the search took.
        notes: Remarks of the search.
    """

    rate: float
    fails: float | None = None
    end: str = "edge"
    tried: list[tuple[float, bool | None]] = msgspec.field(default_factory=list)
    attainment: float = 0.0
    limits: str = ""
    resolution: float = 0.0
    runs: int = 0
    notes: list[str] = msgspec.field(default_factory=list)


class Origin(Struct, frozen=True, kw_only=True):
    """Where a published result was imported from.

    Attributes:
        file: The path of the file.
        sha256: Of the file.
        result: Its number in the file.
        place: File and line, as printed.
        command: The server's command line; None: the page has none.
        hardware: The hardware as the file names it; empty: it does not.
        notes: What was assumed to place it in the study.
    """

    file: str = ""
    sha256: str = ""
    result: int = 0
    place: str = ""
    command: str | None = None
    hardware: str = ""
    notes: list[str] = msgspec.field(default_factory=list)


class Disturbance(Struct, frozen=True, kw_only=True):
    """What disturbed a run. Its result plays no part, so that a disturbed run can be repeated
    without a bias.

    Attributes:
        others_cores: Cores that other processes used.
        stolen_share: Share of all cores' time that the hypervisor took.
        client_error: Share of the mean E2EL that the client may have added; None: unknown.
        cores: Cores of the machine.
        quiet: Whether the machine was quiet when the start began.
    """

    others_cores: float = 0.0
    stolen_share: float = 0.0
    client_error: float | None = None
    cores: int = 1
    quiet: bool = True

    @property
    def excess(self) -> float:
        """The most disturbing part as a multiple of its limit."""
        others = self.others_cores / max_others_cores(self.cores)
        stolen = self.stolen_share / MAX_STOLEN_SHARE
        return max(others, stolen, (self.client_error or 0.0) / MAX_SHARE)

    @property
    def disturbed(self) -> bool:
        """Whether a part is above its limit."""
        return self.excess > 1

    @property
    def lost_cores(self) -> float:
        """Cores that the run could not use, on average."""
        return self.others_cores + self.stolen_share * self.cores

    def __str__(self) -> str:
        taken = taken_text(self.others_cores, self.stolen_share, self.cores)
        parts = [taken] if taken else []
        if (self.client_error or 0.0) > MAX_SHARE:
            parts.append(f"the client may have added {percent(self.client_error, 1)} to E2EL")
        return ", ".join(parts)


class WorkloadFindings(Struct, frozen=True, kw_only=True):
    """What was judged of a run; fields that a result lacks have their defaults.

    Attributes:
        verdict: VALID, SUSPECT or INVALID; None: a published result that nothing judges.
        reasons: Why the run is not VALID.
        slo: What it shows of each limit.
        simulated: Whether the simulator was measured.
        limited_by: What the time of the requests was, by the largest cause; empty: unknown.
        phases: Shares of the mean E2EL by phase (`Explanation.phases`); empty: unknown.
        max_rate: The highest rate within the limits, of a study whose objective it is.
        disturbance: What disturbed the run; None: unknown.
        servers: How many servers were measured together.
        published: The numbers as published, by vLLM's names; empty if the study measured the run
            itself.
        provenance: Where a published result is from.
    """

    verdict: str | None = None
    reasons: list[str] = msgspec.field(default_factory=list)
    slo: list[LimitResult] = msgspec.field(default_factory=list)
    simulated: bool | None = None
    limited_by: str = ""
    phases: dict[str, float] = msgspec.field(default_factory=dict)
    max_rate: MaxRate | None = None
    disturbance: Disturbance | None = None
    servers: int = 1
    published: dict[str, float] = msgspec.field(default_factory=dict)
    provenance: Origin | None = None
