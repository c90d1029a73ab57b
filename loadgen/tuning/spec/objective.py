"""The objective of a study: the metric to optimize, and the limits that an arm must meet."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from loadgen.analysis.search.criteria import RequestShare, joint_criterion
from loadgen.config import slo
from loadgen.errors import BadInput
from loadgen.tuning.spec.strict_model import Strict, refused

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


def _limits(text: str) -> str:
    try:
        slo.parse(text)
    except BadInput as error:
        raise refused(error.problem, error.remedy) from error
    return text


class Accuracy(Strict):
    """The accuracy gate: questions with known answers that a changed model must still answer."""

    file: str | None = Field(
        default=None, min_length=1, description="questions and answers, one JSON line each (60 of loadgen's own)"
    )
    max_loss: float = Field(default=0.01, ge=0, lt=1, description="most that may be lost against the baseline, a share")


class Objective(Strict):
    """The metric to optimize and the limits to meet."""

    metric: MetricName = Field(
        default="total_tps_per_box", description="; ".join(f"{m}: {METRICS[m].text}" for m in METRICS)
    )
    workload: str = Field(description="name of the workload that decides")
    slo: Annotated[str, AfterValidator(_limits)] | None = Field(
        default=None, description="limits that an arm must meet, as --slo: ttft_p99<500ms,error_rate<1%"
    )
    success_rate: float = Field(
        default=0.99, gt=0, le=1, description="share of requests that must succeed, or the arm is out"
    )
    accuracy: Accuracy | None = Field(default=None, description="questions that a changed model must still answer")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "Objective":
        if self.metric == "goodput" and self.slo is None:
            raise refused("goodput without an slo", "give the limits of a request, as ttft_p99<500ms")
        if self.metric == "goodput":
            try:
                _ = self.limits
            except BadInput as error:
                raise refused(error.problem, error.remedy) from error
        return self

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
