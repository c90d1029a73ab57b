"""Structured output: the JSON schema that a request asks for, and whether its answer is JSON that matches it."""

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
    sampling = body.get("sampling_params")
    text = body.get("text")
    form = body.get("response_format") or (text.get("format") if isinstance(text, dict) else None) or {}
    outputs = body.get("structured_outputs") or {}
    named = form.get("json_schema") or {}
    places = (
        named.get("schema"),
        form.get("schema"),
        body.get("guided_json"),
        outputs.get("json") if isinstance(outputs, dict) else None,
        body.get("json_schema"),
        sampling.get("json_schema") if isinstance(sampling, dict) else None,
    )
    found = next((place for place in places if place is not None), None)
    if found is None:
        return {} if form.get("type") in ("json_object", "json_schema") else None
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return {}
    return found if isinstance(found, dict) else {}


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
    """Return what judges values by a schema; None if there is none, or no package for it."""
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry
        from referencing.exceptions import Unresolvable
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
        except (RecursionError, Unresolvable):
            return Conformance.UNCHECKED

    return judge
