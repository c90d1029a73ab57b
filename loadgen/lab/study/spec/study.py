"""The model of a study file: its objective with the limits that an arm must meet, its engines,
stages and decisions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, field

from loadgen.analysis.search.criteria import RequestShare, joint_criterion
from loadgen.config import slo
from loadgen.errors import BadInput
from loadgen.lab.study.spec.stages import (
    BASELINE,
    INCUMBENT,
    AnyStage,
    Change,
    Interactions,
    Name,
    RawFlag,
    Text,
)
from loadgen.lab.study.spec.strict_model import (
    AtFault,
    Hours,
    Seconds,
    Share,
    Strict,
    refused,
    suggestion,
)
from loadgen.util.packages import find

LatencyName = Literal["ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "e2el_p50", "e2el_p99"]
MetricName = Literal[
    "total_tps_per_box", "output_tps_per_gpu", "max_rate_under_slo", "cost_per_mtok", LatencyName
]
MAX_RATE: Literal["max_rate_under_slo"] = "max_rate_under_slo"
LATENCIES: tuple[LatencyName, ...] = get_args(LatencyName)
Limits = Annotated[str, Meta(extra={"check": slo.parse})]
MAX_STAGES = 100
Positive = Annotated[float, Meta(gt=0)]
PositiveHours = Annotated[Hours, Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that arms are compared by.

    Attributes:
        text: Description.
        unit: Unit of its values.
        more_is_better: Direction.
        of_devices: How it takes the number of devices of an arm into account.
        number: Number of a run's summary that it is; empty: it is computed.
    """

    text: str
    unit: str
    more_is_better: bool
    of_devices: str
    number: str = ""


WHOLE_MACHINE = "counts all servers that fit on the machine"
EACH_DEVICE = "is that of each device"
METRICS: dict[MetricName, Metric] = {
    "total_tps_per_box": Metric(
        "input and output tokens/s of all servers that fit on the machine",
        "tok/s",
        True,
        WHOLE_MACHINE,
    ),
    "output_tps_per_gpu": Metric(
        "output tokens/s of each accelerator", "tok/s per device", True, EACH_DEVICE
    ),
    MAX_RATE: Metric(
        "the highest rate at which the SLO is met, requests/s", "req/s", True, WHOLE_MACHINE
    ),
    "cost_per_mtok": Metric("price of a million tokens", "per million tokens", False, EACH_DEVICE),
    **{
        name: Metric(
            f"{name[-3:]} of {name[:-4].upper()}, ms",
            "ms",
            False,
            "does not count them, so more may win",
            f"{'median' if name.endswith('p50') else 'p99'}_{name[:-4]}_ms",
        )
        for name in LATENCIES
    },
}

assert METRICS.keys() == set(get_args(MetricName))


class Accuracy(Strict, frozen=True):
    """The accuracy gate: questions with known answers that a changed model must still answer."""

    file: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="questions and answers, one JSON line each (60 of loadgen's own)"),
    ] = None
    max_loss: Annotated[
        Share, Meta(ge=0, lt=1, description="most that may be lost against the baseline, a share")
    ] = 0.01


class Objective(Strict, frozen=True, kw_only=True):
    """The metric to optimize and the limits to meet."""

    metric: Annotated[
        MetricName,
        Meta(description="; ".join(f"{name}: {metric.text}" for name, metric in METRICS.items())),
    ] = "total_tps_per_box"
    workload: Annotated[str, Meta(description="name of the workload that decides")]
    slo: Annotated[
        Limits | None,
        Meta(description="limits that an arm must meet, as --slo: ttft_p99<500ms,error_rate<1%"),
    ] = None
    success_rate: Annotated[
        Share,
        Meta(gt=0, le=1, description="share of requests that must succeed, or the arm is out"),
    ] = 0.99
    accuracy: Annotated[
        Accuracy | None, Meta(description="questions that a changed model must still answer")
    ] = None

    def __post_init__(self) -> None:
        if self.metric == MAX_RATE:
            if self.slo is None:
                raise refused(
                    f"{MAX_RATE} without an slo", "give the limits of a request, as ttft_p99<500ms"
                )
            joint_criterion(self.slo)

    @property
    def limits(self) -> RequestShare:
        """The limits that make a request good.

        Raises:
            BadInput: The SLO does not apply to single requests, which is allowed for other metrics
                than `max_rate_under_slo`.
        """
        assert self.slo is not None
        return joint_criterion(self.slo)

    @property
    def more_is_better(self) -> bool:
        """Direction of the metric."""
        return METRICS[self.metric].more_is_better


def _version(value: Any) -> Any:
    if isinstance(value, float):
        raise refused(
            f"{value!r} is a number to YAML, and 0.10 would be 0.1", "put the version into quotes"
        )
    return str(value) if type(value) is int else value


Version = Annotated[
    str, Meta(extra={"before": _version}, extra_json_schema={"type": ["string", "integer"]})
]


class Hardware(Strict, frozen=True):
    """The hardware that the study expects; a run checks it."""

    name: Annotated[str, Meta(description="in reports")]
    devices: Annotated[
        int, Meta(ge=0, le=4096, description="accelerators in the box; 0: it has none")
    ] = 0
    gpu_hour_price: Annotated[
        Positive | None, Meta(description="price of one accelerator for one hour, in any currency")
    ] = None


class EngineBase(Strict, frozen=True):
    """An engine and the settings of all its arms."""

    version: Annotated[
        Version | None,
        Meta(
            description="the version that is expected, and for which commands are written (the "
            "installed one)"
        ),
    ] = None
    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    knobs: Annotated[dict[str, Any], Meta(description="engine-neutral knobs")] = field(
        default_factory=dict
    )
    raw: Annotated[list[RawFlag], Meta(description="flags of its own, each with its values")] = (
        field(default_factory=list)
    )
    env: Annotated[dict[str, Text], Meta(description="variables")] = field(default_factory=dict)


class Repeats(Strict, frozen=True):
    """Fresh starts of each arm."""

    least: Annotated[int, Meta(ge=2, le=100, description="before anything is decided")] = 2
    most: Annotated[int, Meta(ge=2, le=100, description="where it stays undecided")] = 7

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise refused(
                f"{self.least} to {self.most}", "give a maximum that is not below the minimum"
            )


class Decision(Strict, frozen=True):
    """When an arm counts as better."""

    min_effect: Annotated[
        Share, Meta(ge=0, lt=1, description="a gain below this share counts as no gain")
    ] = 0.01
    confidence: Annotated[
        Share, Meta(gt=0.5, lt=1, description="confidence with which a gain must be shown")
    ] = 0.95
    repeats: Repeats = Repeats()
    rounds: Annotated[
        int,
        Meta(
            ge=1,
            le=50,
            description="runs in each start; above 1 the servers of a block run side by side, and "
            "take turns",
        ),
    ] = 1
    seed: Annotated[
        int, Meta(ge=0, lt=1 << 63, description="seed of the order of starts, and of the sampler")
    ] = 0


class Budget(Strict, frozen=True):
    """Limits of the time."""

    hours: Annotated[PositiveHours | None, Meta(description="hours of time")] = None
    gpu_hours: Annotated[
        PositiveHours | None, Meta(description="hours times the devices of the box")
    ] = None
    start_timeout: Annotated[
        Seconds, Meta(gt=0, le=86400, description="seconds until a server answers")
    ] = 600.0
    quiet_wait: Annotated[
        Seconds,
        Meta(
            ge=0,
            le=3600,
            description="seconds that a start waits at most for a quiet machine; 0: it never waits",
        ),
    ] = 20.0


class Report(Strict, frozen=True):
    """Form of the report."""

    title: Annotated[str | None, Meta(description="(the study's name)")] = None
    formats: Annotated[list[Literal["markdown", "html"]], Meta(min_length=1)] = field(
        default_factory=lambda: ["markdown", "html"]
    )
    layout: Annotated[
        Literal["stages", "groups"],
        Meta(
            description="order of the page: stage after stage, or groups of options with their "
            "parameters"
        ),
    ] = "stages"


class Study(Strict, frozen=True):
    """A question about serving: which arm is best at the objective, found stage by stage."""

    name: Annotated[Name, Meta(description="of the study")]
    models: Annotated[
        dict[Name, Annotated[str, Meta(min_length=1)]],
        Meta(
            min_length=1,
            description="variants of the model: name to folder, hub name or .gguf file",
        ),
    ]
    hardware: Hardware
    engines: Annotated[
        dict[str, EngineBase],
        Meta(min_length=1, description="by the names that `loadgen engines` lists"),
    ]
    workloads: Annotated[
        dict[Name, Any],
        Meta(
            min_length=1,
            description="a preset, a profile file, the keys of a GPUStack profile, or flags of "
            "`loadgen run`",
        ),
    ]
    objective: Objective
    baseline: Annotated[
        Change,
        Meta(description="the arm that all others are compared with; it needs engine and model"),
    ]
    stages: Annotated[list[AnyStage], Meta(min_length=1, max_length=MAX_STAGES)]
    every_workload: Annotated[
        dict[str, Any],
        Meta(
            description="flags of all workloads, below their own: e.g. compat, dataset_rule, "
            "metric_percentiles; compat is the tool whose defaults they have"
        ),
    ] = field(default_factory=dict)
    keep: Annotated[int, Meta(ge=1, le=8, description="best arms that go on to the next stage")] = 1
    decision: Decision = Decision()
    budget: Budget = Budget()
    report: Report = Report()

    def check(self) -> None:
        """Check all names that the study refers to.

        Raises:
            AtFault: A name is unknown.
        """
        for name in self.engines:
            try:
                find("engines", name)
            except BadInput as error:
                raise AtFault(("engines", name), *error.texts) from error
        self._check_change(("baseline",), self.baseline)
        for key in ("engine", "model"):
            if getattr(self.baseline, key) is None:
                raise AtFault(
                    ("baseline",),
                    f"has no {key}",
                    f"name one of {', '.join(getattr(self, key + 's'))}",
                )
        self._check_name(("objective", "workload"), self.objective.workload, self.workloads)
        if self.objective.metric == "cost_per_mtok" and self.hardware.gpu_hour_price is None:
            raise AtFault(
                ("hardware",), "has no gpu_hour_price", "give it: cost_per_mtok is computed with it"
            )
        if self.decision.rounds > 1:
            at = ("decision", "rounds")
            if self.hardware.devices:
                raise AtFault(at, "servers on accelerators cannot run side by side", "leave it out")
            if self.objective.metric == MAX_RATE:
                raise AtFault(at, f"a search for {MAX_RATE} has no rounds", "leave it out")
        self._check_stages()

    def _check_stages(self) -> None:
        for number, stage in enumerate(self.stages):
            at = ("stages", number)
            before = [earlier.name for earlier in self.stages[:number]]
            if stage.name in before:
                raise AtFault(
                    (*at, "name"),
                    f"another stage has the name {stage.name!r}",
                    "give it another name",
                )
            for place, workload in enumerate(stage.workloads):
                self._check_name((*at, "workloads", place), workload, self.workloads)
            if stage.from_ not in (INCUMBENT, BASELINE):
                self._check_name((*at, "from"), stage.from_.partition("/")[0], before)
            if isinstance(stage, Interactions):
                for place, name in enumerate(stage.interactions):
                    self._check_name((*at, "interactions", place), name, before)
                for name, next_name in itertools.pairwise(sorted(stage.interactions)):
                    if name == next_name:
                        raise AtFault(
                            (*at, "interactions"), f"{name} is named twice", "name it once"
                        )
            if len(getattr(stage, "expect", ())) > self.keep and not isinstance(stage.expect, dict):
                raise AtFault(
                    (*at, "expect"),
                    f"{len(stage.expect)} arms, and {self.keep} are kept",
                    "raise keep",
                )
            for name, change in getattr(stage, "choice", {}).items():
                self._check_change((*at, "choice", name), change)

    def _check_change(self, at: tuple[str | int, ...], change: Change) -> None:
        for key, names in (("engine", self.engines), ("model", self.models)):
            if getattr(change, key) is not None:
                self._check_name((*at, key), getattr(change, key), names)

    @staticmethod
    def _check_name(at: tuple[str | int, ...], name: str, names: Any) -> None:
        if name not in names:
            among = list(names)
            remedy = suggestion(name, among) or (
                f"use {', '.join(among)}" if among else "there is no stage before it"
            )
            raise AtFault(at, f"unknown name {name!r}", remedy)
