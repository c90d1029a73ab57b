"""Brief: the single numbers and the verdict of a result. It represents the run in series and studies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from msgspec import Struct

from loadgen.checks import Verdict
from loadgen.report.result.efficiency import Efficiency
from loadgen.report.result.fields import from_json_values, to_json_values
from loadgen.report.result.limit import LimitResult
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.result.outcomes import Outcomes
from loadgen.report.result.run_result import Counts, RunResult


class BriefFindings(Struct, frozen=True, kw_only=True):
    """Verdict and findings, as in the result of the run."""

    verdict: Annotated[Verdict, "Whether the numbers of the run can be trusted."]
    overloaded: Annotated[bool | None, "Whether requests came faster than they were answered; null: unknown."] = None
    simulated: Annotated[bool, "Whether loadgen's own simulator was measured."]
    error_rate: Annotated[float | None, "Requests that the server failed, as a share of those that ended."]
    client_error_rate: Annotated[
        float | None, "The share of the same requests that the client never sent, by a fault of its own."
    ] = None
    slo: Annotated[list[LimitResult], "Each limit of --slo."]
    closed_loop: Annotated[bool | None, "Whether each request was due when a slot was free for it."] = None
    answers_per_s: Annotated[float | None, "Ok answers per second, as in `rates`."] = None
    finish_reasons: Annotated[Counts, "Ok requests by the finish reason that the server gave."] = {}
    outcomes: Annotated[Outcomes, "Requests by how they ended."] = {}
    efficiency: Annotated[
        Efficiency | None, "Speed for a user and per GPU, energy and cost, as in the result of the run."
    ] = None
    reasons: Annotated[list[str], "Why the run is not VALID."]
    metadata: Annotated[list[str], "The keys of --metadata."] = []
    prompts_sha256: Annotated[str | None, "SHA-256 of all prompts; null: unknown."]


class RunBrief:
    """The single numbers of a run's result, and its verdict.

    Args:
        numbers: By the names of `vllm bench serve`.
        findings: What was judged.
    """

    __slots__ = ("findings", "numbers")

    def __init__(self, numbers: RunNumbers, findings: BriefFindings) -> None:
        self.numbers, self.findings = numbers, findings

    @classmethod
    def of(cls, result: RunResult) -> Self:
        """Shorten a result."""
        provenance = result.provenance
        findings = BriefFindings(
            **{name: getattr(result, name) for name in JUDGED if name != "answers_per_s"},
            answers_per_s=result.rates.answers_per_s,
            reasons=result.reasons(),
            metadata=[pair.partition("=")[0].strip() for pair in provenance.saved_settings["metadata"]],
            prompts_sha256=provenance.saved_prompts.get("sha256"),
        )
        return cls(result.numbers, findings)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON: vLLM's flat keys, and the findings under `loadgen`."""
        return self.numbers.to_dict() | {"loadgen": to_json_values(self.findings)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON that `to_dict` returns.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        numbers = RunNumbers.from_dict(data)
        # Files of earlier versions do not name the keys of --metadata: texts that are nothing else.
        keys = [key for key, value in numbers.metadata.items() if isinstance(value, str)]
        return cls(numbers, from_json_values({"metadata": keys} | data["loadgen"], BriefFindings))


# What a study keeps of a result that was measured elsewhere: all that was judged of the numbers themselves.
JUDGED = tuple(
    name for name in BriefFindings.__struct_fields__ if name not in ("reasons", "metadata", "prompts_sha256")
)
