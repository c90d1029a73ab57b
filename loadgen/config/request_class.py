"""`RequestClass`: a part of the requests of a run with a share, a priority, prompts or limits of
its own.

It is written as NAME:KEY=VALUE,KEY=VALUE, such as `chat:share=0.8,priority=0,random_input_len=200`.
A part without `KEY=` belongs to the value before it, or is another header. A key with several
values is repeated.

LoRA adapters are classes, too: `--lora-assignment` says how requests are shared among them.
"""

import re
from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct, field

from loadgen.config.data import DataSettings
from loadgen.config.load import LoadSettings
from loadgen.config.load_profile import MAX_RATE
from loadgen.config.option import (
    ABOVE_0,
    LOAD,
    SHARES,
    Option,
    Range,
    options,
    options_about,
    settings_class,
)
from loadgen.errors import BadInput, Place, setting, within, written_as
from loadgen.util.redaction import HEADER_NAME, MARK, header_name, split_header

CLASS = setting.classes
FORM = "write NAME:KEY=VALUE,KEY=VALUE, such as chat:share=0.8,priority=0,random_input_len=200"
ALIASES = {"headers": "header", "dataset": "dataset_name"}
LORA_ASSIGNMENT, LORA_MODULES = setting.lora_assignment, setting.lora_modules
RANDOM, IN_TURN, SKEWED = "random", "round-robin", "skewed"
LORA_REMEDY = f"write {RANDOM}, {IN_TURN}, or {SKEWED}:ALPHA with ALPHA above 1"
MAX_CLASSES = 255
MAX_PRIORITY = 999_999_999
# Fields that a class cannot have.
_OF_RUN = {"workload", "random_batch_size", "no_reranker", "no_oversample"}
class_option = options_about(LOAD)


@settings_class
class ClassKeys:
    """Keys of a class that no data set has."""

    share: float | None = class_option(
        None,
        "part of all requests",
        unit=SHARES,
        range=Range("a share above 0 and up to 1", ABOVE_0, 1.0),
    )
    rate: float | None = class_option(
        None,
        "requests per second",
        range=Range(f"requests/s, above 0 and up to {MAX_RATE:,.0f}", ABOVE_0, MAX_RATE),
    )
    priority: int | None = class_option(
        None,
        "the field `priority` of its requests",
        range=Range(
            f"a whole number from -{MAX_PRIORITY:,} to {MAX_PRIORITY:,}; a lower one is served "
            "earlier",
            -MAX_PRIORITY,
            MAX_PRIORITY,
        ),
    )
    model: str | None = class_option(None, "the model or LoRA adapter of its requests")
    header: tuple[str, ...] = class_option((), "headers of its requests")


OF_LOAD = {key: options(LoadSettings)[key] for key in ("slo", "goodput")}
OF_DATA = {key: option for key, option in options(DataSettings).items() if key not in _OF_RUN}
CHANGES = OF_DATA | OF_LOAD  # what a class has instead of the run
OWN_KEYS = (*options(ClassKeys), *OF_LOAD)
KEYS = options(ClassKeys) | CHANGES
_TOLERANCE = 1e-6  # of the sum of shares
_NAME = r"[\w.@/+-]{1,64}"
_HEADER = rf"\s*{HEADER_NAME.pattern}="  # with a capital letter: else it is a key
_PAIR = r"\s*([a-z][a-z_-]*)\s*=(.*)"
Values = dict[str, Any]  # the value of each key of a class


class RequestClass(Struct, frozen=True):
    """A class of requests.

    Attributes:
        name: Its name in results and records.
        share: The part of all requests that it gets on average, 0 to 1.
        rate_rps: The rate that it was given instead of a share, requests/s; None: it was given
            none.
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
        """The fields of the data set that have another value for it; empty: it shares the data
        set of the run.
        """
        return {key: value for key, value in self.changes.items() if key in OF_DATA}

    @classmethod
    def parse(cls, texts: tuple[str, ...]) -> tuple[Self, ...]:
        """Read the classes of a run.

        Raises:
            BadInput: A class cannot be read, or the classes do not fit together.
        """
        if len(texts) > MAX_CLASSES:
            raise BadInput(
                CLASS, f"{len(texts)} classes are too many", f"give at most {MAX_CLASSES}"
            )
        values = {class_name(text): _values(text) for text in texts}
        if len(values) < len(texts):
            raise BadInput(CLASS, "two classes have the same name", "give each a name of its own")
        return tuple(
            cls(
                name,
                share,
                values[name].get("rate"),
                values[name].get("model"),
                values[name].get("priority"),
                values[name].get("header", ()),
                {key: value for key, value in values[name].items() if key in CHANGES},
            )
            for name, share in _shares(values).items()
        )


def classes_of(
    texts: tuple[str, ...], adapters: tuple[str, ...], assignment: str | None
) -> tuple[RequestClass, ...]:
    """Return the classes of `--class`, or one for each LoRA adapter; empty without either.

    Args:
        texts: The values of `--class`.
        adapters: Those of `--lora-modules`.
        assignment: That of `--lora-assignment`.

    Raises:
        BadInput: A class or the assignment is invalid.
    """
    if texts:
        return RequestClass.parse(texts)
    skew = parse_skew(assignment) or 1.0
    weights = [skew**-place for place in range(len(adapters))]
    pairs = zip(adapters, weights, strict=True)
    return tuple(RequestClass(name, weight / sum(weights), model=name) for name, weight in pairs)


def parse_skew(assignment: str | None) -> float | None:
    """Return how many times as many requests an adapter gets on average as the next one; None: each
    in turn.

    Args:
        assignment: The text; None: random.

    Raises:
        BadInput: The text is not an assignment.
    """
    if assignment == IN_TURN:
        return None
    if assignment in (None, RANDOM):
        return 1.0
    name, _, alpha = assignment.partition(":")
    if (
        name != SKEWED
        or not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", alpha, re.ASCII)
        or float(alpha) <= 1
    ):
        raise BadInput(LORA_ASSIGNMENT, f"invalid assignment {assignment!r}", LORA_REMEDY)
    return float(alpha)


def total_rate(texts: tuple[str, ...]) -> float | None:
    """Return the sum of the rates of classes, requests/s; None where they have shares, or there are
    none.

    Raises:
        BadInput: A class is invalid.
    """
    rates = [item.rate_rps for item in RequestClass.parse(texts) if item.rate_rps is not None]
    return sum(rates) if rates else None


def rate_place(texts: tuple[str, ...], rate_rps: float) -> dict[str, Place]:
    """Return where the rate of a run was written, for `written_as`, if its classes have set it.

    Args:
        texts: The values of `--class`.
        rate_rps: The rate of the run, requests/s.
    """
    if total_rate(texts) != rate_rps:
        return {}
    return {setting.request_rate: (CLASS, "the rates of the classes together")}


def class_name(text: str) -> str:
    """Return the name of a class.

    Raises:
        BadInput: It has none, or one with other characters.
    """
    name, colon, _ = text.partition(":")
    if not colon or not re.fullmatch(_NAME, name.strip()):
        shown = re.split("[:=]", text)[0]  # the rest may be a secret
        raise BadInput(CLASS, f"{shown!r} is not a name of letters and digits before a colon", FORM)
    return name.strip()


def class_pairs(text: str) -> list[tuple[str, str]]:
    """Return the keys and values of a class, in their order.

    Raises:
        BadInput: The first part has no key.
    """
    name, _, rest = text.partition(":")
    pairs: list[tuple[str, str]] = []
    for part in rest.split(",") if rest.strip() else ():
        if pair := re.fullmatch(_PAIR, part, re.DOTALL):
            pairs.append((_key(pair[1]), pair[2].strip()))
        elif pairs and pairs[-1][0] == "header" and re.match(_HEADER, part):
            pairs.append(("header", part.strip()))
        elif pairs:
            key, value = pairs.pop()
            pairs.append((key, f"{value},{part}"))
        else:
            raise BadInput(
                (CLASS, name), f"{part.partition('=')[0].strip()!r} does not begin with KEY=", FORM
            )
    return pairs


def class_texts(classes: Mapping[Any, Any]) -> tuple[str, ...]:
    """Write classes that a file or a program gives as mappings of keys by name.

    Raises:
        BadInput: A class is no mapping, or a value of one cannot be written.
    """
    return tuple(_text(str(name), keys) for name, keys in classes.items())


def redacted_class(text: str) -> str:
    """Return a class without the values of its headers."""
    return _written(
        text.partition(":")[0],
        [
            (key, f"{header_name(value)}={MARK}" if key == "header" else value)
            for key, value in class_pairs(text)
        ],
    )


def _values(text: str) -> Values:
    name = class_name(text)
    texts: dict[str, list[str]] = {}
    for key, value in class_pairs(text):
        if key not in KEYS:
            remedy = _known_keys(key, after_header="header" in texts)
            raise BadInput((CLASS, name), f"unknown key {key!r}", remedy)
        if not value:
            raise BadInput((CLASS, name), f"{key} is empty", "give a value, or leave it out")
        texts.setdefault(key, []).append(value)
        if len(texts[key]) > 1 and not (KEYS[key].listed or tuple in KEYS[key].classes):
            raise BadInput((CLASS, name), f"{key} is given twice", "give it once")
    if any(pair[1].startswith("@") for pair in map(split_header, texts.get("header", ())) if pair):
        remedy = f"write its value, or give {setting.header} for all requests"
        raise BadInput((CLASS, name), "a header is not read from a file", remedy)
    with within(CLASS, name), written_as({setting(key): (key,) for key in options(ClassKeys)}):
        return {key: _read(KEYS[key], given) for key, given in texts.items()}


def _read(option: Option, texts: list[str]) -> Any:
    joined = ",".join(texts)
    value = tuple(texts) if tuple in option.classes else option.read(joined)
    option.check(value)
    return value


def _known_keys(key: str, *, after_header: bool) -> str:
    import difflib  # not before: it is slow to import

    if near := difflib.get_close_matches(key, (*KEYS, *ALIASES), 1):
        return f"did you mean {near[0]}?"
    if after_header:
        return "write header= before each header"
    return f"choose from {', '.join(OWN_KEYS)}, and flags of the data set such as random_input_len"


def _shares(classes: dict[str, Values]) -> dict[str, float]:
    """Return the share of each class: as given, by their rates, or the same for all."""
    kinds = {
        kind for kind in ("share", "rate") if any(kind in values for values in classes.values())
    }
    if not kinds:
        return dict.fromkeys(classes, 1 / len(classes)) if classes else {}
    if both := next(
        (name for name, values in classes.items() if {"share", "rate"} <= values.keys()), None
    ):
        raise BadInput((CLASS, both), "has a share and a rate", "give one of the two")
    if len(kinds) > 1:
        raise BadInput(
            CLASS, "some classes have a share, and some a rate", "give each a share, or each a rate"
        )
    (kind,) = kinds
    for name, values in classes.items():
        if kind not in values:
            remedy = "add share=" if kind == "share" else "add rate=, or give each a share"
            raise BadInput((CLASS, name), f"has no {kind}, which the other classes have", remedy)
    numbers = {name: values[kind] for name, values in classes.items()}
    total = sum(numbers.values())
    if kind == "share" and abs(total - 1) > _TOLERANCE:
        raise BadInput(CLASS, f"the shares add up to {total:.10g}", "let them add up to 1")
    return {name: number / total for name, number in numbers.items()}


def _text(name: str, keys: Any) -> str:
    if not isinstance(keys, Mapping):
        raise BadInput(
            (CLASS, name),
            "expected keys with values, such as share: 0.8",
            "write them below the name",
        )
    several = {
        key: value if isinstance(value, list | tuple) else (value,) for key, value in keys.items()
    }
    pairs = []
    for key, values in several.items():
        pairs += [
            (_key(key), str(value).lower() if isinstance(value, bool) else str(value).strip())
            for value in values
        ]
    text = _written(name, pairs)
    if class_pairs(text) != pairs:
        raise BadInput(
            (CLASS, name), "a value has a comma before a word and =", "write it without the comma"
        )
    return text


def _key(key: Any) -> str:
    name = str(key).replace("-", "_")
    return ALIASES.get(name, name)


def _written(name: str, pairs: list[tuple[str, str]]) -> str:
    return f"{name}:" + ",".join(f"{key}={value}" for key, value in pairs)
