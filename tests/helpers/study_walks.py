"""Studies walked without a server: what each start would achieve is said by the test."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from loadgen.lab.study.execute.findings import ArmResult, Findings
from loadgen.lab.study.execute.trial import Failure, Trial, TrialRequest, WorkloadRun
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.study import Study

# Total tokens/s, why it failed, or parts of a trial's summary.
Came = float | Failure | Mapping[str, Any]
Truth = Callable[[TrialRequest], Came]
TOKENS = 1_000_000  # of a run


def summary(total: float = 1000.0, **parts: Any) -> dict[str, Any]:
    """The numbers of a run of 1,000 requests that achieved so many tokens/s in all, half of them
    output.
    """
    own = {"verdict": "VALID", "reasons": [], "slo": [], "simulated": False} | parts.pop(
        "loadgen", {}
    )
    return {
        "num_prompts": 1000,
        "completed": 1000,
        "failed": 0,
        "duration": TOKENS / total,
        "total_input_tokens": TOKENS // 2,
        "total_output_tokens": TOKENS // 2,
        "request_throughput": 1000 * total / TOKENS,
        "output_throughput": total / 2,
        "total_token_throughput": total,
        "max_concurrent_requests": 512,
        **{f"{kind}_ttft_ms": 250.0 for kind in ("mean", "median", "p99")},
        **{f"{kind}_tpot_ms": 30.0 for kind in ("mean", "median", "p99")},
        **{f"{kind}_itl_ms": 29.0 for kind in ("mean", "median", "p99")},
        **{f"{kind}_e2el_ms": 5000.0 for kind in ("mean", "median", "p99")},
        **parts,
        "loadgen": own,
    }


def trial(
    request: TrialRequest, came: Came, workloads: tuple[str, ...] = ("short",), **parts: Any
) -> Trial:
    """A start that took a minute, of which this came."""
    runs: dict[str, WorkloadRun] = {}
    if not isinstance(came, Failure):
        found = summary(came) if isinstance(came, int | float) else summary(**came)
        runs = {
            name: WorkloadRun(
                found, f"starts/{request.step}-{request.block}-{request.arm}/{name}.json"
            )
            for name in workloads
        }
    failure = came if isinstance(came, Failure) else None
    basis: dict[str, Any] = {
        "config": "",
        "build": "1.0",
        "began": "2026-01-02T03:04:05Z",
        "seconds": 60.0,
    }
    return Trial(request, failure=failure, runs=runs, **basis | parts)


def walked(study: Study, truth: Truth, starts: int = 10_000) -> Findings:
    """What a study finds.

    Args:
        study: Which.
        truth: What each start achieves.
        starts: The most there may be, as if it were interrupted then.
    """
    walk = Walk(study, Planner(study))
    while walk.request is not None and starts:
        walk.add(
            trial(
                walk.request,
                truth(walk.request),
                walk.planned.workloads,
                config=walk.planned.identity,
            )
        )
        starts -= 1
    return walk.found("not run yet")


def noise(request: TrialRequest) -> float:
    """A factor near 1, another one for each start; their standard deviation is 0.3 %."""
    return random.Random(f"{request.step} {request.arm} {request.block}").lognormvariate(0, 0.003)


def levels(**each: float) -> Any:
    """A truth: every arm's level, by what its name holds; 1,000 where nothing is said of it."""

    def truth(request: TrialRequest) -> Came:
        level = next((level for name, level in each.items() if name in request.arm), 1000.0)
        return level * noise(request)

    return truth


def arm(findings: Findings, step: str, name: str) -> ArmResult:
    """An arm of a step."""
    return next(found for found in findings.steps if found.step.name == step).arm(name)


def verdicts(findings: Findings, step: str) -> dict[str, str]:
    """The verdicts of a step by arm."""
    found = next(found for found in findings.steps if found.step.name == step)
    return {arm.name: str(arm.verdict) for arm in found.arms}
