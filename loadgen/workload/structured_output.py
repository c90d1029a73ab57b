"""Structured output: the JSON schema that a request asks for, and whether its answer is JSON
that matches it.
"""

import json
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any

import orjson

# Fields of bodies that ask for JSON. In the text of a prompt their quotes are escaped.
MARKS = (b'"json_schema"', b'"json_object"', b'"guided_json"', b'"structured_outputs"')
Schema = dict[str, Any]


class Conformance(StrEnum):
    """What an answer is, measured by what its request asks for."""

    NOT_JSON = "not_json"
    UNCHECKED = "unchecked"  # it is JSON; its schema was not checked, or there is none
    VIOLATES = "violates"  # it is JSON, and not as the schema says
    MATCHES = "matches"


def asks_for_json(body: bytes) -> bool:
    """Return whether the body of a request may ask for JSON."""
    return any(mark in body for mark in MARKS)


def schema_of(body: dict[str, Any]) -> Schema | None:
    """Return the JSON schema that a body asks for, as OpenAI, vLLM, SGLang and llama.cpp take it.

    Returns:
        The schema, {} where any JSON object will do; None if the body asks for no JSON.
    """
    form = _object(body, "response_format") or _object(_object(body, "text"), "format")
    schemas = (
        _object(form, "json_schema").get("schema"),
        form.get("schema"),
        body.get("guided_json"),
        _object(body, "structured_outputs").get("json"),
        body.get("json_schema"),
        _object(body, "sampling_params").get("json_schema"),
    )
    first = next((schema for schema in schemas if schema is not None), None)
    if first is None:
        return {} if form.get("type") in ("json_object", "json_schema") else None
    if isinstance(first, str):
        try:
            first = json.loads(first)
        except ValueError:
            return {}
    return first if isinstance(first, dict) else {}


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a field that is an object; {} if it is missing or something else, which the server
    judges.
    """
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def conformance(body: bytes, text: str) -> Conformance | None:
    """Judge the text of an answer by the body of its request; None if that asks for no JSON.

    Without the package jsonschema no schema is checked.
    """
    schema = schema_of(orjson.loads(body))
    if schema is None:
        return None
    try:
        value = json.loads(text)
    except (RecursionError, ValueError):
        return Conformance.NOT_JSON
    judge = _judge(orjson.dumps(schema)) if schema else None
    return Conformance.UNCHECKED if judge is None else judge(value)


@lru_cache(maxsize=256)
def _judge(schema: bytes) -> Callable[[Any], Conformance] | None:
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry
    except ImportError:
        return None
    parsed = orjson.loads(schema)
    kind = validator_for(parsed)
    try:
        kind.check_schema(parsed)
    except SchemaError:
        return None
    validator = kind(parsed, registry=Registry())  # fetches no schema from elsewhere

    def judge(value: Any) -> Conformance:
        try:
            return Conformance.MATCHES if validator.is_valid(value) else Conformance.VIOLATES
        except Exception:  # noqa: BLE001 - a reference to nothing, an invalid pattern: no schema may cost the run
            return Conformance.UNCHECKED

    return judge
