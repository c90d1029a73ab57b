"""The JSON Schema of study files, generated from the types."""

import inspect
import types
from typing import Any, Literal, Union

import msgspec

from loadgen.lab.study.spec.strict_model import Strict, bare, fields
from loadgen.lab.study.spec.study import Study

Node = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {str: "string", int: "integer", float: "number", list: "array", dict: "object", types.NoneType: "null"}
_RANGES = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
_COUNTED = {str: "Length", list: "Items", dict: "Properties"}


def schema() -> Node:
    """Return the JSON Schema of study files."""
    definitions: dict[str, Node] = {}
    study = _object(Study, definitions)
    return {"$schema": DIALECT, "$defs": dict(sorted(definitions.items())), **study}


def _object(kind: type[Strict], definitions: dict[str, Node]) -> Node:
    properties = {field.encode_name: _node(field.type, definitions) for field in fields(kind)}
    for field in fields(kind):
        if not field.required:
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
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
        node["anyOf" if types.NoneType in parameters else "oneOf"] = [_node(each, definitions) for each in parameters]
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
        said: Node = {key: getattr(meta, name) for name, key in _RANGES.items()}
        if origin in _COUNTED:
            said |= {f"{end}{_COUNTED[origin]}": getattr(meta, f"{end}_length") for end in ("min", "max")}
        said |= {"description": meta.description, **(meta.extra_json_schema or {})}
        node |= {key: value for key, value in said.items() if value is not None}
    return node
