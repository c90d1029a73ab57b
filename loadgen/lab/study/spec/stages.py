"""The stages of a study file, and the changes that their arms make."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from loadgen.lab.study.spec.expression import Expression
from loadgen.lab.study.spec.strict_model import Strict, refused

INCUMBENT = "incumbent"
BASELINE = "baseline"
MAX_VALUES = 1000  # of one knob of a grid


def _check_name(text: str) -> None:
    if (
        not text.strip()
        or not text.isprintable()
        or "/" in text
        or text in (INCUMBENT, BASELINE)
        or len(text) > 80
    ):
        raise refused(
            f"{text!r} is not a name",
            f"write up to 80 characters without a slash, and neither {INCUMBENT} nor {BASELINE}",
        )


def _check_flag(text: str) -> None:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise refused(
            f"{text!r} cannot be split into words ({error})", "close its quotes"
        ) from error
    if not words or not words[0].startswith("-"):
        raise refused(
            f"{text!r} is not a flag",
            "write one flag of the engine's own, with its values behind it",
        )


def _listed_combinations(value: Any) -> Any:
    listed = [value] if isinstance(value, str | dict) else value
    if isinstance(listed, list) and not all(isinstance(part, str | dict) for part in listed):
        raise refused(
            f"{value!r} names no arm", "write combinations of the grid, as {max_seqs: 512}"
        )
    return listed


def _check_where(text: str) -> None:
    try:
        Expression(text)
    except ValueError as error:
        raise refused(
            f"{text!r}: {error}", "write e.g. tensor_parallel * replicas <= devices"
        ) from error


Name = Annotated[str, Meta(extra={"check": _check_name})]
Text = Annotated[
    str,
    Meta(
        extra={"before": lambda value: str(value) if type(value) in (int, float) else value},
        extra_json_schema={"type": ["string", "number"]},
    ),
]
RawFlag = Annotated[str, Meta(extra={"check": _check_flag})]
Condition = Annotated[str, Meta(extra={"check": _check_where})]
Names = Annotated[
    list[str],
    Meta(
        extra={"before": lambda value: [value] if isinstance(value, str) else value},
        extra_json_schema={"type": ["string", "array"]},
    ),
]
Combinations = Annotated[
    list[Any],
    Meta(
        extra={"before": _listed_combinations},
        extra_json_schema={"type": ["string", "object", "array"]},
    ),
]


class Change(Strict, frozen=True):
    """Settings that an arm changes in the arm it starts from.

    A change of the engine begins with the settings of `engines`: settings of one engine do not
    apply to another, except tensor_parallel and pipeline_parallel, without which the model may not
    fit.
    """

    engine: Annotated[str | None, Meta(description="name of an engine of the study")] = None
    model: Annotated[str | None, Meta(description="name of a model of the study")] = None
    knobs: Annotated[
        dict[str, Any],
        Meta(description="engine-neutral knobs; null: the engine's own default again"),
    ] = field(default_factory=dict)
    raw: Annotated[
        list[RawFlag], Meta(description="flags of the engine's own, each with its values")
    ] = field(default_factory=list)
    env: Annotated[
        dict[str, Text | None], Meta(description="variables; null: not set by the study")
    ] = field(default_factory=dict)
    replicas: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="servers that share the requests and the devices"),
    ] = None
    devices: Annotated[
        Annotated[list[Text], Meta(min_length=1)] | None,
        Meta(description="ids of the accelerators, of all replicas"),
    ] = None


class Stage(Strict, frozen=True, kw_only=True):
    """Keys that all kinds of stages share."""

    name: Annotated[Name, Meta(description="in reports, and for later stages")]
    from_: Annotated[
        str,
        Meta(
            description="the arm it starts from: incumbent (the winner so far), baseline, or "
            "STAGE/ARM of an earlier stage"
        ),
    ] = field(name="from", default=INCUMBENT)
    workloads: Annotated[
        list[str], Meta(description="loads to run beside the one that decides")
    ] = field(default_factory=list)


class Named(Stage, frozen=True, kw_only=True):
    """A stage whose arms are known before it runs."""

    expect: Annotated[
        Names, Meta(description="the arms that plan takes for the winners; ignored by run")
    ] = field(default_factory=list)


class Choice(Named, frozen=True, kw_only=True):
    """A stage of named arms."""

    choice: Annotated[dict[Name, Change], Meta(min_length=1, description="arms by name")]


class Grid(Named, frozen=True, kw_only=True):
    """A stage with an arm for each combination of values."""

    grid: Annotated[
        dict[str, Annotated[list[Any], Meta(min_length=1, max_length=MAX_VALUES)]],
        Meta(
            min_length=1,
            description="knobs (also model, replicas and flags of the engine's own) to the "
            "values they are tried with; a flag: true stands alone, false or null leaves it out",
        ),
    ]
    expect: Annotated[
        Combinations,
        Meta(description="the combinations that plan takes for the winners; ignored by run"),
    ] = field(default_factory=list)
    where: Annotated[
        Condition | None,
        Meta(
            description="combinations that are tried: an expression over knobs, replicas and "
            "devices"
        ),
    ] = None


class Log2Range(Strict, frozen=True):
    """A range of powers of two."""

    log2: Annotated[
        list[int],
        Meta(min_length=2, max_length=2, description="minimum and maximum; both are powers of two"),
    ]

    def __post_init__(self) -> None:
        least, most = self.log2
        if not 0 < least < most or least & (least - 1) or most & (most - 1):
            raise refused(
                f"{self.log2} is not a range", "give two powers of two, the smaller first"
            )

    def ends(self) -> list[Any]:
        """Return minimum and maximum."""
        return self.log2

    def has(self, value: Any) -> bool:
        """Return whether a value may be drawn."""
        return (
            type(value) is int and self.log2[0] <= value <= self.log2[1] and not value & (value - 1)
        )


class IntRange(Strict, frozen=True):
    """A range of integers."""

    int_: Annotated[
        list[int], Meta(min_length=2, max_length=2, description="minimum and maximum")
    ] = field(name="int")
    step: Annotated[int, Meta(ge=1, description="step between two values that may be drawn")] = 1

    def __post_init__(self) -> None:
        if not self.int_[0] < self.int_[1]:
            raise refused(f"{self.int_} is not a range", "give two numbers, the smaller first")

    def ends(self) -> list[Any]:
        """Return the minimum and the maximum that may be drawn."""
        least, most = self.int_
        return [least, most - (most - least) % self.step]

    def has(self, value: Any) -> bool:
        """Return whether a value may be drawn."""
        least, most = self.int_
        return type(value) is int and value in range(least, most + 1, self.step)


class Categorical(Strict, frozen=True):
    """Values without order."""

    choice: Annotated[
        list[Any], Meta(min_length=2, max_length=MAX_VALUES, description="the values")
    ]

    def ends(self) -> list[Any]:
        """Return all values."""
        return self.choice

    def has(self, value: Any) -> bool:
        """Return whether a value may be drawn."""
        return value in self.choice


Range = Log2Range | IntRange | Categorical


class Joint(Stage, frozen=True, kw_only=True):
    """Knobs tried together: a sampler draws each combination from the results of those before."""

    joint: Annotated[
        dict[str, Range],
        Meta(min_length=1, description="knobs, and flags of the engine's own, to ranges"),
    ]
    trials: Annotated[int, Meta(ge=2, le=1000, description="most combinations that are drawn")] = 16
    sampler: Annotated[
        Literal["tpe", "gp", "random"], Meta(description="sampler of Optuna that draws them")
    ] = "tpe"
    expect: Annotated[
        dict[str, Any],
        Meta(description="the combination that plan takes for the winner; ignored by run"),
    ] = field(default_factory=dict)


class Interactions(Named, frozen=True, kw_only=True):
    """The winners of earlier stages combined: all of them, and all but one if there are three or
    more.
    """

    from_: Annotated[str, Meta(description="the arm to which the winners' changes are made")] = (
        field(name="from", default=BASELINE)
    )
    interactions: Annotated[list[str], Meta(min_length=2, description="names of earlier stages")]


AnyStage = Choice | Grid | Joint | Interactions
