"""Reports of small studies that no server was started for."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from loadgen.core.histogram import Histogram
from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.execute.trial import TrialRequest, WorkloadRun
from loadgen.lab.study.report import write
from tests.helpers.study_files import study
from tests.helpers.study_walks import Came, walked

WOBBLE = (0.0, 0.004, -0.003, 0.002, -0.004, 0.003, -0.001)  # of starts, block by block
STAGES: list[dict[str, Any]] = [
    {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}},
    {"name": "seqs", "grid": {"max_seqs": [64, 128]}},
]
GAINS = {
    "fp8": 1.25,
    "quantization/fp8": 1.25,
    "max_seqs=64": 1.25 * 0.9,
    "max_seqs=128": 1.25 * 1.001,
}


def truth(
    gains: Mapping[str, float] = GAINS, base: float = 10000.0
) -> Callable[[TrialRequest], Came]:
    """Starts that achieve so much more than the baseline, a little more in some blocks and less
    in others.
    """

    def came(request: TrialRequest) -> Came:
        place = (request.block + sum(map(ord, request.arm))) % len(WOBBLE)
        return base * gains.get(request.arm, 1.0) * (1 + WOBBLE[place])

    return came


def found(
    came: Callable[[TrialRequest], Came] | None = None, starts: int = 10_000, **parts: Any
) -> Findings:
    """What the small study finds."""
    stages = parts.pop("stages", STAGES)
    return walked(study(*stages, **parts), came or truth(), starts)


def written(
    findings: Findings, into: Path, facts: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The texts of a report by the names of their files."""
    paths = write(findings, facts or {"source": "run", "loadgen": "0.1.0"}, into, into / "report")
    return {path.name: path.read_text() for path in paths if path.suffix != ".svg"}


def keep(findings: Findings, folder: Path) -> None:
    """Put whole results where a store keeps them."""
    for trial in findings.trials:
        for ran in trial.runs.values():
            path = folder / ran.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(_whole(ran)))


def _whole(ran: WorkloadRun) -> dict[str, Any]:
    histograms = {}
    for name, scale in (("ttft_due", 250e6), ("tpot", 30e6), ("e2el_due", 5e9)):
        histogram = Histogram()
        for place in range(1, 200):
            histogram.record(
                int(scale * place / 100 * 1000 / ran.summary["total_token_throughput"] * 10)
            )
        histograms[name] = histogram.to_dict()
    return {"loadgen": {"histograms": histograms}}
