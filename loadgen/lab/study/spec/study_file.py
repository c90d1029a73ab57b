"""Reads a study file; an error is one line with its place in the file.

`schema` describes such files.
"""

import contextlib
import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union

import msgspec
import yaml

from loadgen.errors import BadInput, Place, Spelling
from loadgen.lab.study.spec.strict_model import AtFault, Strict, bare, convert, fields, line_of
from loadgen.lab.study.spec.study import Study
from loadgen.util.yaml_loader import loader

Node = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    types.NoneType: "null",
}
_RANGES = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
_COUNTED = {str: "Length", list: "Items", dict: "Properties"}
MAX_BYTES = 1 << 20
MAX_PLACES = 100_000  # aliases may repeat a part of the file many times
MAX_DEPTH = 40
KEYS = Spelling()  # settings are named as they are in the file
MERGE = "tag:yaml.org,2002:merge"  # <<, which may be given several times


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
    lines: Mapping[Place, int]
    text: str

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Give errors of the study their place in the file, and spell settings as its keys."""
        with _named(self.path, self.lines):
            yield


def read(path: Path) -> StudyFile:
    """Read a study file.

    Raises:
        BadInput: It cannot be read, is not YAML, or is not a valid study; the message names file,
            line and key.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(
            str(path), f"cannot be read ({error.strerror})", "name a YAML file"
        ) from error
    if len(content) > MAX_BYTES:
        raise BadInput(str(path), f"more than {MAX_BYTES:,} bytes", "name a study file")
    lines: dict[Place, int] = {}
    with _named(path, lines):
        data = _constructed(path, content, lines)
        if not isinstance(data, dict):
            raise AtFault((), "is not a study", "write keys and values; docs/studies.md shows how")
        study = convert(data, Study, lines)
        study.check()
    return StudyFile(path, study, lines, content.decode())


def _constructed(path: Path, content: bytes, lines: dict[Place, int]) -> Any:
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
        raise BadInput(
            str(path), f"is not YAML ({' '.join(str(error).split())})", "correct it"
        ) from error
    except (RecursionError, ValueError) as error:
        raise BadInput(str(path), f"cannot be used ({error})", "correct it") from error


def _place(node: yaml.Node | None, at: Place, lines: dict[Place, int]) -> None:
    if len(at) > MAX_DEPTH or len(lines) > MAX_PLACES:
        raise ValueError("nested too deep, or too long")
    if node is None:
        return
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*at, str(key.value))
            first = lines.get(place)
            lines[place] = key.start_mark.line + 1
            if first is not None and key.tag != MERGE:
                raise AtFault(place, "is given twice", f"give it once; it is in line {first} too")
            _place(value, place, lines)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _place(value, (*at, number), lines)


@contextlib.contextmanager
def _named(path: Path, lines: Mapping[Place, int]) -> Iterator[None]:
    try:
        yield
    except AtFault as error:
        keys = ".".join(KEYS.text(str(key)) for key in error.path)
        where = f"{path}:{line_of(error.path, lines)}"
        named = BadInput((where, keys) if keys else where, *error.texts)
        named.spelling = KEYS
        raise named from error


def schema() -> Node:
    """Return the JSON Schema of study files."""
    definitions: dict[str, Node] = {}
    study = _object(Study, definitions)
    return {"$schema": DIALECT, "$defs": dict(sorted(definitions.items())), **study}


def _object(kind: type[Strict], definitions: dict[str, Node]) -> Node:
    properties = {field.encode_name: _node(field.type, definitions) for field in fields(kind)}
    for field in fields(kind):
        if not field.required:
            default = (
                field.default
                if field.default_factory is msgspec.NODEFAULT
                else field.default_factory()
            )
            properties[field.encode_name]["default"] = msgspec.to_builtins(default)
    return {
        "title": kind.__name__,
        "description": inspect.getdoc(kind),
        "type": "object",
        "properties": properties,
        "required": [field.encode_name for field in fields(kind) if field.required],
        "additionalProperties": False,
    }


def _node(kind: Any, definitions: dict[str, Node]) -> Node:
    origin, parameters, metas = bare(kind)
    node: Node = {}
    if origin is Union:
        node["anyOf" if types.NoneType in parameters else "oneOf"] = [
            _node(part, definitions) for part in parameters
        ]
    elif origin is Literal:
        node["enum"] = list(parameters)
    elif origin in _TYPES:
        node["type"] = _TYPES[origin]
    elif origin is not Any:
        if origin.__name__ not in definitions:
            definitions[origin.__name__] = _object(origin, definitions)
        node["$ref"] = f"#/$defs/{origin.__name__}"
    if origin is list:
        node["items"] = _node(parameters[0], definitions)
    elif origin is dict:
        node["additionalProperties"] = _node(parameters[1], definitions)
    for meta in metas:
        limits: Node = {key: getattr(meta, name) for name, key in _RANGES.items()}
        if origin in _COUNTED:
            limits |= {
                f"{end}{_COUNTED[origin]}": getattr(meta, f"{end}_length") for end in ("min", "max")
            }
        keywords = limits | {"description": meta.description, **(meta.extra_json_schema or {})}
        node |= {key: value for key, value in keywords.items() if value is not None}
    return node
