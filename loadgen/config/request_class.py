"""`RequestClass`: a part of the requests of a run with a share, a priority, prompts or limits of its own."""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from loadgen.config import class_text, lora, slo
from loadgen.config.class_text import CLASS
from loadgen.config.data import DataSettings
from loadgen.config.field_types import classes
from loadgen.config.load_profile import MAX_RATE
from loadgen.config.option import times
from loadgen.errors import BadInput
from loadgen.util.number_format import parse_number, parse_seconds, parse_share

MAX_CLASSES = 255
MAX_PRIORITY = 999_999_999
OWN_KEYS = ("share", "rate", "priority", "model", "header", "slo", "goodput")
_OF_RUN = {"workload", "random_batch_size", "no_reranker", "no_oversample"}  # fields that a class cannot have
DATA_KEYS = tuple(each.name for each in fields(DataSettings) if each.name not in _OF_RUN)
KEYS = (*OWN_KEYS, *DATA_KEYS)
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TOLERANCE = 1e-6  # of the sum of shares

Values = dict[str, list[str]]  # the values of each key of a class, at least one each


@dataclass(frozen=True)
class RequestClass:
    """A class of requests.

    Attributes:
        name: Its name in results and records.
        share: The part of all requests that it gets on average, 0 to 1.
        rate_rps: The rate that it was given instead of a share, requests/s; None: it was given none.
        model: The model or LoRA adapter that its requests ask; None: that of the run.
        priority: The field `priority` of its requests; None: they have none.
        header: Headers of its requests beside those of the run, each Name=value.
        changes: Fields of `RunSettings` that have another value for it.
    """

    name: str
    share: float
    rate_rps: float | None = None
    model: str | None = None
    priority: int | None = None
    header: tuple[str, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slo(self) -> str | None:
        """The limits of its SLO; None without any."""
        return self.changes.get("slo")

    @property
    def data(self) -> dict[str, Any]:
        """The fields of the data set that have another value for it; empty: it shares the data set of the run."""
        return {key: value for key, value in self.changes.items() if key in DATA_KEYS}

    @contextlib.contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the class in a `BadInput` of the block."""
        try:
            yield
        except BadInput as error:
            raise BadInput(CLASS, f"{self.name}: {error.field}: {error.problem}", error.remedy) from error

    @classmethod
    def each(cls, texts: tuple[str, ...]) -> tuple[Self, ...]:
        """Read the classes of a run.

        Raises:
            BadInput: One cannot be read, or they do not fit together.
        """
        if len(texts) > MAX_CLASSES:
            raise BadInput(CLASS, f"{len(texts)} classes are too many", f"give at most {MAX_CLASSES}")
        found = {class_text.name_of(text): _values(text) for text in texts}
        if len(found) < len(texts):
            raise BadInput(CLASS, "two classes have the same name", "give each a name of its own")
        made = [cls._of(name, share, found[name]) for name, share in _shares(found).items()]
        for one in made:
            with one.named_in_errors():
                slo.parse_goodput(one.changes.get("goodput", ()))
                if one.slo is not None:
                    slo.parse(one.slo)
        return tuple(made)

    @classmethod
    def _of(cls, name: str, share: float, values: Values) -> Self:
        changes = {key: _typed(name, key, values[key]) for key in DATA_KEYS if key in values}
        if "slo" in values:
            changes["slo"] = ",".join(values["slo"])
        if "goodput" in values:
            changes["goodput"] = tuple(values["goodput"])
        header = tuple(values.get("header", ()))
        if any(each.partition("=")[2].startswith("@") for each in header):
            problem = f"{name}: a header of a class is not read from a file"
            raise BadInput(CLASS, problem, "write its value, or give --header for all requests")
        return cls(
            name,
            share,
            _number(name, "rate", values) if "rate" in values else None,
            values["model"][0] if "model" in values else None,
            _priority(name, values["priority"][0]) if "priority" in values else None,
            header,
            changes,
        )


def classes_of(texts: tuple[str, ...], adapters: tuple[str, ...], assignment: str | None) -> tuple[RequestClass, ...]:
    """Return the classes of `--class`, or one for each LoRA adapter; empty without either.

    Args:
        texts: The values of `--class`.
        adapters: Those of `--lora-modules`.
        assignment: That of `--lora-assignment`.

    Raises:
        BadInput: A class or the assignment is invalid.
    """
    if texts:
        return RequestClass.each(texts)
    skew = lora.parse_skew(assignment) or 1.0
    weights = [skew**-place for place in range(len(adapters))]
    pairs = zip(adapters, weights, strict=True)
    return tuple(RequestClass(name, weight / sum(weights), model=name) for name, weight in pairs)


def total_rate(texts: tuple[str, ...]) -> float | None:
    """Return the sum of the rates of classes, requests/s; None where they have shares, or there are none.

    Raises:
        BadInput: A class is invalid.
    """
    rates = [one.rate_rps for one in RequestClass.each(texts) if one.rate_rps is not None]
    return sum(rates) if rates else None


@contextlib.contextmanager
def rates_named_in_errors(texts: tuple[str, ...], rate_rps: float) -> Iterator[None]:
    """Name the rates of classes in a `BadInput` of the block about a rate that they have set.

    Args:
        texts: The values of `--class`.
        rate_rps: The rate of the run, requests/s.
    """
    try:
        yield
    except BadInput as error:
        if error.field != "--request-rate" or total_rate(texts) != rate_rps:
            raise
        raise BadInput(CLASS, f"the rates of the classes together: {error.problem}", error.remedy) from error


def _values(text: str) -> Values:
    name, values = class_text.name_of(text), Values()
    for key, value in class_text.pairs(text):
        if key not in KEYS:
            raise BadInput(CLASS, f"{name}: unknown key {key!r}", _known_keys(key, after_header="header" in values))
        if not value:
            raise BadInput(CLASS, f"{name}: {key} is empty", "give a value, or leave it out")
        values.setdefault(key, []).append(value)
        takes_several = key in ("header", "slo", "goodput") or tuple in classes(DataSettings).get(key, ())
        if len(values[key]) > 1 and not takes_several:
            raise BadInput(CLASS, f"{name}: {key} is given twice", "give it once")
    return values


def _known_keys(key: str, *, after_header: bool) -> str:
    import difflib  # not before: it is slow to import

    if near := difflib.get_close_matches(key, (*KEYS, *class_text.ALIASES), 1):
        return f"did you mean {near[0]}?"
    if after_header:
        return "write header= before each header"
    return f"choose from {', '.join(OWN_KEYS)}, and flags of the data set such as random_input_len"


def _shares(found: dict[str, Values]) -> dict[str, float]:
    """Return the share of each class: as given, by their rates, or the same for all."""
    kinds = {kind for values in found.values() for kind in ("share", "rate") if kind in values}
    if not kinds:
        return dict.fromkeys(found, 1 / len(found)) if found else {}
    if both := next((name for name, values in found.items() if {"share", "rate"} <= values.keys()), None):
        raise BadInput(CLASS, f"{both}: has a share and a rate", "give one of the two")
    if len(kinds) > 1:
        raise BadInput(CLASS, "some classes have a share, and some a rate", "give each a share, or each a rate")
    (kind,) = kinds
    for name, values in found.items():
        if kind not in values:
            remedy = "add share=" if kind == "share" else "add rate=, or give each a share"
            raise BadInput(CLASS, f"{name}: has no {kind}, which the other classes have", remedy)
    numbers = {name: _number(name, kind, values) for name, values in found.items()}
    total = sum(numbers.values())
    if kind == "share" and abs(total - 1) > _TOLERANCE:
        raise BadInput(CLASS, f"the shares add up to {total:.10g}", "let them add up to 1")
    return {name: number / total for name, number in numbers.items()}


def _number(name: str, key: str, values: Values) -> float:
    text = values[key][0]
    parse, most = (parse_share, 1.0) if key == "share" else (parse_number, MAX_RATE)
    try:
        number = parse(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= most:
        wanted = "a share above 0 and up to 1" if key == "share" else f"requests/s, above 0 and up to {MAX_RATE:,.0f}"
        raise BadInput(CLASS, f"{name}: invalid {key} {text!r}", f"give {wanted}")
    return number


def _priority(name: str, text: str) -> int:
    if not re.fullmatch("[+-]?[0-9]{1,18}", text, re.ASCII) or abs(int(text)) > MAX_PRIORITY:
        remedy = f"give a whole number from -{MAX_PRIORITY:,} to {MAX_PRIORITY:,}; a lower one is served earlier"
        raise BadInput(CLASS, f"{name}: invalid priority {text!r}", remedy)
    return int(text)


def _typed(name: str, key: str, values: list[str]) -> Any:
    kinds, text = classes(DataSettings)[key], values[0]
    if tuple in kinds:
        return tuple(values)
    if int in kinds and re.fullmatch("[+-]?[0-9]{1,18}", text, re.ASCII):
        return int(text)
    try:
        if bool in kinds:
            return _SWITCHES[text.lower()]
        if float in kinds:
            return parse_seconds(text) if key in times(DataSettings) else parse_number(text)
    except (KeyError, ValueError):
        pass
    if {bool, float, int} & set(kinds) and str not in kinds:
        expected = "true or false" if bool in kinds else "a number"
        raise BadInput(CLASS, f"{name}: invalid {key} {text!r}", f"give {expected}")
    return text
