"""The objective of a study: the metric to optimize, and the limits that an arm must meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from msgspec import Meta

from loadgen.analysis.search.criteria import RequestShare, joint_criterion
from loadgen.config import slo
from loadgen.lab.study.spec.strict_model import Share, Strict, refused

MetricName = Literal["total_tps_per_box", "output_tps_per_gpu", "goodput", "e2e_p50", "cost_per_mtok"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that arms are compared by.

    Attributes:
        text: Description.
        unit: Unit of its values.
        more_is_better: Direction.
    """

    text: str
    unit: str
    more_is_better: bool


METRICS: dict[MetricName, Metric] = {
    "total_tps_per_box": Metric("input and output tokens/s, of as many servers as the box holds", "tok/s", True),
    "output_tps_per_gpu": Metric("output tokens/s of each accelerator", "tok/s per device", True),
    "goodput": Metric("the highest rate at which the SLO is met, requests/s", "req/s", True),
    "e2e_p50": Metric("median time of a whole request, ms", "ms", False),
    "cost_per_mtok": Metric("price of a million tokens", "per million tokens", False),
}
assert METRICS.keys() == set(get_args(MetricName))


Limits = Annotated[str, Meta(extra={"check": slo.parse})]


class Accuracy(Strict, frozen=True):
    """The accuracy gate: questions with known answers that a changed model must still answer."""

    file: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="questions and answers, one JSON line each (60 of loadgen's own)"),
    ] = None
    max_loss: Annotated[Share, Meta(ge=0, lt=1, description="most that may be lost against the baseline, a share")] = (
        0.01
    )


class Objective(Strict, frozen=True, kw_only=True):
    """The metric to optimize and the limits to meet."""

    metric: Annotated[
        MetricName, Meta(description="; ".join(f"{name}: {metric.text}" for name, metric in METRICS.items()))
    ] = "total_tps_per_box"
    workload: Annotated[str, Meta(description="name of the workload that decides")]
    slo: Annotated[
        Limits | None, Meta(description="limits that an arm must meet, as --slo: ttft_p99<500ms,error_rate<1%")
    ] = None
    success_rate: Annotated[
        Share, Meta(gt=0, le=1, description="share of requests that must succeed, or the arm is out")
    ] = 0.99
    accuracy: Annotated[Accuracy | None, Meta(description="questions that a changed model must still answer")] = None

    def __post_init__(self) -> None:
        if self.metric == "goodput":
            if self.slo is None:
                raise refused("goodput without an slo", "give the limits of a request, as ttft_p99<500ms")
            joint_criterion(self.slo)

    @property
    def limits(self) -> RequestShare:
        """The limits that make a request good.

        Raises:
            BadInput: The SLO does not apply to single requests, which is allowed for other metrics than goodput.
        """
        assert self.slo is not None
        return joint_criterion(self.slo)

    @property
    def more_is_better(self) -> bool:
        """Direction of the metric."""
        return METRICS[self.metric].more_is_better
