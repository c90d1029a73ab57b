"""The JSON Schema of a result, generated from the types."""

import re
from collections.abc import Iterable
from typing import Any, get_args, get_type_hints

import msgspec
import orjson

from loadgen.report.result import SCHEMA, RunFindings
from loadgen.report.result.latencies import Distribution
from loadgen.report.result.numbers import PERCENTILE_KEY, SEQUENCE_KEYS, TOKEN_KEYS, RunNumbers
from loadgen.report.result.provenance import Engine, Prompts
from loadgen.report.result.series import BriefFindings, RunBrief, Series
from loadgen.report.result.sglang_numbers import SglangNumbers
from loadgen.report.result.timeline import RequestColumns

Node = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES = (
    RequestColumns,
    SglangNumbers,
    RunNumbers,
    RunFindings,
    Engine,
    Prompts,
    BriefFindings,
    Series,
)
# Definitions whose names are not those of their classes in lower case.
NAMES = {"run_findings": "loadgen", "run_numbers": "numbers", "limit_result": "limit"}
OPEN = ("prompts",)  # objects with further keys
OPTIONAL_NUMBER: Node = {"type": ["number", "null"]}


def schema() -> Node:
    """Generate the JSON Schema of what `--save-result` and `--json` write: of a run, or of a
    series of runs.
    """
    _, components = msgspec.json.schema_components(
        TYPES, schema_hook=_by_hand, ref_template="{name}"
    )
    for name, texts in _texts(TYPES, {}).items():
        properties = components[name]["properties"]
        properties |= {
            field: {"description": text} | properties[field] for field, text in texts.items()
        }
    enums = {name: node for name, node in components.items() if "enum" in node}
    generated = {
        _name(name): _plain(node, enums) for name, node in components.items() if name not in enums
    }
    columns, sglang = generated.pop("request_columns"), generated.pop("sglang_numbers")
    numbers = generated.pop("numbers")
    for name in ("percentiles_ms", "metadata"):  # keys of their own, beside the others
        del numbers["properties"][name]
        numbers["required"].remove(name)
    for name in (*TOKEN_KEYS, *SEQUENCE_KEYS):  # of some backends alone
        numbers["required"].remove(name)
    del numbers["additionalProperties"]
    about = (
        "A percentile of --metric-percentiles, or a statistic of the wait for a slot, ms; "
        "null: none was measured."
    )
    numbers["patternProperties"] = {
        PERCENTILE_KEY.pattern: {"description": about, **OPTIONAL_NUMBER}
    }
    definitions = {
        "run": _flat(
            "One run: the keys of `vllm bench serve` with their meaning there, and loadgen's own "
            "under `loadgen`. With --save-detailed, lists with an item for each request, in the "
            "order of the schedule. With --sglang-result, keys of SGLang. Further keys are those "
            "of --metadata.",
            columns["properties"]
            | sglang["properties"]
            | {"loadgen": _reference("loadgen", "loadgen's own findings.")},
        ),
        "numbers": numbers,
        "loadgen": generated.pop("loadgen"),
        "distribution": _distribution(),
        "brief": _flat(
            "The single numbers of a run's result, and its verdict. Further keys are those of "
            "--metadata.",
            {
                "loadgen": _reference(
                    "brief_findings", "Verdict and findings, as in the result of the run."
                )
            },
        ),
        **generated,
    }
    return {
        "$schema": DIALECT,
        "$id": f"urn:loadgen:result:{SCHEMA}",
        "title": "A result of loadgen",
        "description": "What `loadgen run --save-result` or --json writes of a run, or `loadgen "
        "search` of several.",
        "if": {"required": ["loadgen_series"]},
        "then": {"$ref": "#/$defs/series"},
        "else": {"$ref": "#/$defs/run"},
        "$defs": definitions,
    }


def text() -> str:
    """The JSON Schema as JSON."""
    return orjson.dumps(schema(), option=orjson.OPT_INDENT_2).decode() + "\n"


def _texts(
    hints: Iterable[Any], texts_by_class: dict[str, dict[str, str]]
) -> dict[str, dict[str, str]]:
    """Collect what describes each field, by class and name in JSON, of all classes inside some
    types.
    """
    for hint in hints:
        _texts(get_args(hint), texts_by_class)
        if (
            isinstance(hint, type)
            and issubclass(hint, msgspec.Struct)
            and hint.__name__ not in texts_by_class
        ):
            names = dict(zip(hint.__struct_fields__, hint.__struct_encode_fields__, strict=True))
            types = get_type_hints(hint, include_extras=True)
            texts = [
                (names[field], text)
                for field, annotated in types.items()
                for text in getattr(annotated, "__metadata__", ())
            ]
            texts_by_class[hint.__name__] = {
                name: text for name, text in texts if isinstance(text, str)
            }
            _texts([*types.values(), *getattr(hint, "__orig_bases__", ())], texts_by_class)
    return texts_by_class


def _by_hand(kind: type) -> Node:
    """Refer to the types whose JSON is not a mapping of their fields."""
    names: dict[type, str] = {Distribution: "distribution", RunBrief: "brief"}
    return {"$ref": names[kind]}


def _distribution() -> Node:
    about = {
        "count": "Number of values.",
        "mean": "Their mean, ms.",
        "std": "Their standard deviation, ms.",
        "min": "Exact minimum, ms.",
        "max": "Exact maximum, ms.",
        "p50": "Their median, ms.",
        "p90": "Their 90th percentile, ms.",
        "p99": "Their 99th percentile, ms.",
    }
    kinds = {name: {"type": "integer"} if name == "count" else OPTIONAL_NUMBER for name in about}
    percentile = {"description": "A percentile of --metric-percentiles, ms.", **OPTIONAL_NUMBER}
    return {
        "description": "Summary of a distribution, ms; null if nothing was measured.",
        "type": "object",
        "properties": {name: {"description": text, **kinds[name]} for name, text in about.items()},
        "required": list(about),
        "patternProperties": {"^p[0-9.e-]+$": percentile},
        "additionalProperties": False,
    }


def _flat(description: str, properties: Node) -> Node:
    """Define an object that has the keys of `numbers` beside its own."""
    return {
        "description": description,
        "type": "object",
        "properties": properties,
        "required": ["loadgen"],
        "$ref": "#/$defs/numbers",
        "unevaluatedProperties": {
            "description": "A value of --metadata, by its key.",
            "type": "string",
        },
    }


def _reference(name: str, description: str) -> Node:
    return {"description": description, "$ref": f"#/$defs/{name}"}


def _name(class_name: str) -> str:
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()
    return NAMES.get(snake, snake)


def _plain(node: Any, enums: Node) -> Any:
    """Simplify what msgspec generates, and close objects: they want all their keys, and take no
    other.

    A field with a default is missing in files of earlier versions alone, so it is required too.
    """
    if isinstance(node, list):
        return [_plain(item, enums) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: value for key, value in node.items() if key != "default"}
    if "$ref" in node:
        reference = node["$ref"].removeprefix("#/$defs/")
        if reference in enums:
            return {"description": node["description"], "enum": enums[reference]["enum"]}
        about = {"description": node["description"]} if "description" in node else {}
        return about | {"$ref": f"#/$defs/{_name(reference)}"}
    if "properties" in node:
        return _object(node, enums)
    if "anyOf" in node and all(set(item) == {"type"} for item in node["anyOf"]):
        node["type"] = [item["type"] for item in node.pop("anyOf")]
    if len(node.get("enum", ())) == 1:
        node["const"] = node.pop("enum")[0]
    return {key: _plain(value, enums) for key, value in node.items()}


def _object(node: Node, enums: Node) -> Node:
    properties = node["properties"]
    required = [
        name
        for name, field in properties.items()
        if name in node.get("required", ()) or "default" in field
    ]
    name = _name(node["title"])
    return {
        "description": " ".join(node["description"].split()),
        "type": "object",
        "properties": {key: _plain(field, enums) for key, field in properties.items()},
        **({"required": required} if required else {}),
        "additionalProperties": name in OPEN,
    }
