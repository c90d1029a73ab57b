"""Reads a study file; an error is one line with its place in the file."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from loadgen.errors import BadInput
from loadgen.tuning.spec.stages import KINDS
from loadgen.tuning.spec.strict_model import At, AtFault
from loadgen.tuning.spec.study import Study
from loadgen.util.yaml_loader import loader

MAX_BYTES = 1 << 20
MAX_PLACES = 100_000  # aliases may repeat a part of the file many times
MAX_DEPTH = 40
MERGE = "tag:yaml.org,2002:merge"  # <<, which may be given several times
MAX_SHOWN = 60  # characters of a refused value in its message
_KEYS = "write keys and values, `NAME: VALUE`; `loadgen tune schema` says which"
# What to write instead of a refused value, by the type of pydantic's error.
_REMEDIES = {
    "string_type": "write a string, in quotes if YAML reads it as another type",
    "string_too_short": "write something, or leave the key out",
    "int_type": "write a whole number",
    "float_type": "write a number",
    "greater_than": "write more than {gt:g}",
    "greater_than_equal": "write {ge:g} or more",
    "less_than": "write less than {lt:g}",
    "less_than_equal": "write {le:g} or less",
    "literal_error": "write {expected}",
    "list_type": "write a list, [A, B]",
    "dict_type": _KEYS,
    "model_type": _KEYS,
    "too_short": "give {min_length} or more",
    "too_long": "give {max_length} or fewer",
}


@dataclass(frozen=True)
class StudyFile:
    """A study with its file.

    Attributes:
        path: The file.
        study: The study.
        lines: Line of each place, from 1.
        text: Contents of the file.
    """

    path: Path
    study: Study
    lines: Mapping[At, int]
    text: str

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Add file and line to errors of the study."""
        try:
            yield
        except AtFault as error:
            raise _named(self.path, self.lines, error) from error


def read(path: Path) -> StudyFile:
    """Read a study file.

    Raises:
        BadInput: It cannot be read, is not YAML, or is not a valid study; the message names file, line and key.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror})", "name a YAML file") from error
    if len(content) > MAX_BYTES:
        raise BadInput(str(path), f"more than {MAX_BYTES:,} bytes", "name a study file")
    lines: dict[At, int] = {}
    try:
        given = _constructed(path, content, lines)
        study = Study.model_validate(given)
        study.check()
    except ValidationError as error:
        raise _named(path, lines, _first(error, lines)) from error
    except AtFault as error:
        raise _named(path, lines, error) from error
    return StudyFile(path, study, lines, content.decode())


def _constructed(path: Path, content: bytes, lines: dict[At, int]) -> Any:
    try:
        reader = loader(content, on_is_a_word=True)
        node = reader.get_single_node()
        _place(node, (), lines)
        return reader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise BadInput(where, f"is not YAML ({error.problem})", "correct it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(str(path), f"is not YAML ({' '.join(str(error).split())})", "correct it") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(str(path), f"cannot be used ({error})", "correct it") from error


def _place(node: yaml.Node | None, at: At, lines: dict[At, int]) -> None:
    """Record the line of everything below a node."""
    if len(at) > MAX_DEPTH or len(lines) > MAX_PLACES:
        raise ValueError("nested too deep, or too long")
    if node is None:
        return
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*at, str(key.value))
            first, lines[place] = lines.get(place), key.start_mark.line + 1
            if first is not None and key.tag != MERGE:
                raise AtFault(place, "is given twice", f"give it once; it is in line {first} too")
            _place(value, place, lines)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _place(value, (*at, number), lines)


def _named(path: Path, lines: Mapping[At, int], error: AtFault) -> BadInput:
    at = error.at
    while at and at not in lines:
        at = at[:-1]
    where = f"{path}:{lines.get(at, 1)}"
    return BadInput(f"{where}: {error.field}" if error.field else where, error.problem, error.remedy)


def _first(error: ValidationError, lines: Mapping[At, int]) -> AtFault:
    """Return the error to show: an unknown key, which explains others, or else the first in the file."""
    faults = [(each["type"] != "unknown_key", _fault(each)) for each in error.errors()]

    def place(fault: tuple[bool, AtFault]) -> tuple[bool, int]:
        at = fault[1].at
        while at and at not in lines:
            at = at[:-1]
        return fault[0], lines.get(at, 1)

    return min(faults, key=place)[1]


def _fault(error: ErrorDetails) -> AtFault:
    at, context = _at(error["loc"]), error.get("ctx", {})
    message = error["msg"][:1].lower() + error["msg"][1:]
    remedy = _REMEDIES[error["type"]].format(**context) if error["type"] in _REMEDIES else message
    match error["type"]:
        case "unknown_key":
            return AtFault((*at, context["key"]), "unknown key", context["remedy"])
        case "refused":
            return AtFault(at, context["problem"], context["remedy"])
        case "missing":
            return AtFault(at, "is missing", "give it; `loadgen tune schema` describes it")
        case "kind":
            return AtFault(at, message, "write one of them")
        case _ if not at:
            return AtFault(at, "is not a study", "write keys and values; docs/studies.md shows how")
        case _ if "env" in at:
            return AtFault(at, "invalid value", remedy)  # not shown: it may be a secret
    shown = repr(error["input"])
    shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}..."
    return AtFault(at, f"invalid value {shown}", remedy)


def _at(loc: tuple[str | int, ...]) -> At:
    """Return the place in the file of a place in the models, which also has the kinds of stages and ranges."""
    at = [part for part in loc if part != "[key]"]
    if len(at) > 2 and at[0] == "stages" and at[2] in KINDS:
        del at[2]
    if len(at) > 4 and at[2] == "joint":
        del at[4]
    return tuple(at)
