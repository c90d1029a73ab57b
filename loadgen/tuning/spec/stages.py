"""The stages of a study file, and the changes that their arms make."""

import shlex
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from loadgen.tuning.spec.expression import Expression
from loadgen.tuning.spec.strict_model import Strict, refused

INCUMBENT, BASELINE = "incumbent", "baseline"
MAX_VALUES = 1000  # of one knob of a grid
KINDS = ("choice", "grid", "joint", "interactions")


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable() or "/" in text or text in (INCUMBENT, BASELINE) or len(text) > 80:
        raise refused(
            f"{text!r} is not a name",
            f"write up to 80 characters without a slash, and neither {INCUMBENT} nor {BASELINE}",
        )
    return text


def _as_text(value: Any) -> Any:
    return str(value) if type(value) in (int, float) else value


def _flag(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise refused(f"{text!r} cannot be split into words ({error})", "close its quotes") from error
    if not words or not words[0].startswith("-"):
        raise refused(f"{text!r} is not a flag", "write one flag of the engine's own, with its values behind it")
    return text


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _where(text: str) -> str:
    try:
        Expression(text)
    except ValueError as error:
        raise refused(f"{text!r}: {error}", "write e.g. tensor_parallel * replicas <= devices") from error
    return text


Name = Annotated[str, AfterValidator(_name)]
Text = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number"]})]
RawFlag = Annotated[str, AfterValidator(_flag)]
Names = Annotated[
    list[str],
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class Change(Strict):
    """Settings that an arm changes in the arm it starts from.

    A change of the engine begins with the settings of `engines`: settings of one engine do not apply to another.
    """

    engine: str | None = Field(default=None, description="name of an engine of the study")
    model: str | None = Field(default=None, description="name of a model of the study")
    knobs: dict[str, Any] = Field(default={}, description="engine-neutral knobs; null: the engine's own default again")
    raw: list[RawFlag] = Field(default=[], description="flags of the engine's own, each with its values")
    env: dict[str, Text | None] = Field(default={}, description="variables; null: not set by the study")
    replicas: int | None = Field(default=None, ge=1, description="servers that share the requests and the devices")
    devices: list[Text] | None = Field(
        default=None, min_length=1, description="ids of the accelerators, of all replicas"
    )


class Stage(Strict):
    """Keys that all kinds of stages share."""

    name: Name = Field(description="in reports, and for later stages")
    from_: str = Field(
        default=INCUMBENT,
        alias="from",
        description="the arm it starts from: incumbent, baseline, or STAGE/ARM of an earlier one",
    )
    workloads: list[str] = Field(default=[], description="loads to run beside the one that decides")


class Named(Stage):
    """A stage whose arms are known before it runs."""

    expect: Names = Field(default=[], description="the arms that plan takes for the winners; ignored by run")


class Choice(Named):
    """A stage of named arms."""

    choice: dict[Name, Change] = Field(min_length=1, description="arms by name")


class Grid(Named):
    """A stage with an arm for each combination of values."""

    grid: dict[str, Annotated[list[Any], Field(min_length=1, max_length=MAX_VALUES)]] = Field(
        min_length=1, description="knobs (also model and replicas) to the values they are tried with"
    )
    where: Annotated[str, AfterValidator(_where)] | None = Field(
        default=None, description="combinations that are tried: an expression over knobs, replicas and devices"
    )


class Log2Range(Strict):
    """A range of powers of two."""

    log2: list[int] = Field(min_length=2, max_length=2, description="minimum and maximum; both are powers of two")

    def ends(self) -> list[Any]:
        """Return minimum and maximum."""
        least, most = self.log2
        if not 0 < least < most or least & (least - 1) or most & (most - 1):
            raise refused(f"{self.log2} is not a range", "give two powers of two, the smaller first")
        return self.log2

    def has(self, value: Any) -> bool:
        """Return whether a value may be drawn."""
        return type(value) is int and self.log2[0] <= value <= self.log2[1] and not value & (value - 1)


class IntRange(Strict):
    """A range of integers."""

    int_: list[int] = Field(alias="int", min_length=2, max_length=2, description="minimum and maximum")
    step: int = Field(default=1, ge=1, description="step between two values that may be drawn")

    def ends(self) -> list[Any]:
        """Return the minimum and the maximum that may be drawn."""
        least, most = self.int_
        if not least < most:
            raise refused(f"{self.int_} is not a range", "give two numbers, the smaller first")
        return [least, most - (most - least) % self.step]

    def has(self, value: Any) -> bool:
        """Return whether a value may be drawn."""
        return type(value) is int and self.int_[0] <= value <= self.int_[1] and (value - self.int_[0]) % self.step == 0


class Categorical(Strict):
    """Values without order."""

    choice: list[Any] = Field(min_length=2, max_length=MAX_VALUES, description="the values")

    def ends(self) -> list[Any]:
        """Return all values."""
        return self.choice

    def has(self, value: Any) -> bool:
        """Return whether a value may be drawn."""
        return value in self.choice


def _tag(given: Any, kinds: tuple[str, ...]) -> str | None:
    """Return the only one of these keys that a mapping or a model has; None: none or several."""
    keys = given if isinstance(given, dict) else []
    if isinstance(given, Strict):
        keys = [field.alias or name for name, field in type(given).model_fields.items()]
    there = [kind for kind in kinds if kind in keys]
    return there[0] if len(there) == 1 else None


def _ordered(given: Log2Range | IntRange | Categorical) -> Log2Range | IntRange | Categorical:
    given.ends()
    return given


Range = Annotated[
    Annotated[Log2Range, Tag("log2")] | Annotated[IntRange, Tag("int")] | Annotated[Categorical, Tag("choice")],
    Discriminator(
        lambda given: _tag(given, ("log2", "int", "choice")),
        custom_error_type="kind",
        custom_error_message="needs exactly one of log2, int, choice",
    ),
    AfterValidator(_ordered),
]


class Joint(Stage):
    """Knobs tried together: a sampler draws each combination from the results of those before."""

    joint: dict[str, Range] = Field(min_length=1, description="knobs to ranges")
    trials: int = Field(default=16, ge=2, le=1000, description="most combinations that are drawn")
    sampler: Literal["tpe", "gp", "random"] = Field(default="tpe", description="sampler of Optuna that draws them")
    expect: dict[str, Any] = Field(
        default={}, description="the combination that plan takes for the winner; ignored by run"
    )


class Interactions(Named):
    """The winners of earlier stages combined: all of them, and all but one if there are three or more."""

    from_: str = Field(default=BASELINE, alias="from", description="the arm to which the winners' changes are made")
    interactions: list[str] = Field(min_length=2, description="names of earlier stages")


AnyStage = Annotated[
    Annotated[Choice, Tag("choice")]
    | Annotated[Grid, Tag("grid")]
    | Annotated[Joint, Tag("joint")]
    | Annotated[Interactions, Tag("interactions")],
    Discriminator(
        lambda given: _tag(given, KINDS),
        custom_error_type="kind",
        custom_error_message=f"needs exactly one of {', '.join(KINDS)}",
    ),
]
