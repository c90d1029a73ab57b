"""Answers that are to be JSON are judged by the schema of their request, wherever its API has
it, and counted.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from loadgen.core.outcome import Outcome
from loadgen.features.structured_output import (
    Conformance,
    StructuredAnswers,
    StructuredOutput,
    conformance,
    lines,
    schema_of,
)
from loadgen.workload.request_store import JSON_MARKS

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
OF_OPENAI = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
}


def asks_for_json(body: bytes) -> bool:
    return any(mark in body for mark in JSON_MARKS)


def judged(text: str, schema: object = SCHEMA) -> Conformance | None:
    return conformance(json.dumps({"guided_json": schema}).encode(), text)


@pytest.mark.parametrize(
    "body",
    [
        OF_OPENAI,
        {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"response_format": {"type": "json_object", "schema": SCHEMA}},
        {"guided_json": SCHEMA},
        {"guided_json": json.dumps(SCHEMA)},
        {"structured_outputs": {"json": SCHEMA}},
        {"json_schema": SCHEMA},
        {"sampling_params": {"json_schema": json.dumps(SCHEMA)}},
    ],
    ids=[
        "openai",
        "responses",
        "llama.cpp",
        "vllm",
        "vllm text",
        "vllm since 0.11",
        "llama.cpp own",
        "sglang own",
    ],
)
def test_the_schema_is_found_where_each_api_has_it(body: dict[str, Any]) -> None:
    assert schema_of(body) == SCHEMA
    assert asks_for_json(json.dumps(body, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("body", "schema"),
    [
        ({"response_format": {"type": "json_object"}}, {}),
        ({"guided_json": "no JSON"}, {}),
        ({"response_format": "json_object"}, None),
        (
            {
                "response_format": {"type": "json_schema", "json_schema": [1]},
                "text": "a",
                "structured_outputs": 1,
            },
            {},
        ),
        ({"response_format": {"type": "text"}}, None),
        ({"structured_outputs": {"regex": "a+"}}, None),
        ({"prompt": "a"}, None),
    ],
)
def test_other_bodies_ask_for_any_json_or_for_none(body: dict[str, Any], schema: object) -> None:
    assert schema_of(body) == schema


def test_a_prompt_about_schemas_asks_for_no_json() -> None:
    assert not asks_for_json(
        json.dumps({"prompt": 'write "json_schema" and "guided_json"'}).encode()
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"n": 3}', Conformance.MATCHES),
        (' \n{"n": 3}', Conformance.MATCHES),
        ('{"n": "three"}', Conformance.VIOLATES),
        ("{}", Conformance.VIOLATES),
        ('{"n": 3', Conformance.NOT_JSON),
        ("three", Conformance.NOT_JSON),
        ("", Conformance.NOT_JSON),
        ("[" * 100_000, Conformance.NOT_JSON),
    ],
)
def test_an_answer_is_judged_by_its_schema(text: str, found: Conformance) -> None:
    assert judged(text) is found


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "unknown"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/$defs/absent"},
        {"patternProperties": {"(": {}}},
        {"$ref": "#"},
    ],
    ids=[
        "any object",
        "no schema",
        "one from elsewhere",
        "a reference to nothing",
        "an invalid pattern",
        "a loop",
    ],
)
def test_a_schema_that_cannot_be_checked_leaves_json_unchecked(schema: dict[str, Any]) -> None:
    assert judged('{"n": 3}', schema) is Conformance.UNCHECKED
    assert judged("three", schema) is Conformance.NOT_JSON


def test_without_jsonschema_no_schema_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema.validators", None)
    assert judged('{"n": 3}', SCHEMA | {"title": "not seen before"}) is Conformance.UNCHECKED


def test_an_answer_to_a_request_for_text_is_not_judged() -> None:
    assert conformance(b'{"prompt": "a"}', "{}") is None


def sender() -> Any:
    """The hooks of a sender."""
    return SimpleNamespace(keeps_answer=False, after_end=[])


def of_requests(*bodies: dict[str, Any]) -> Any:
    """A store of requests with these bodies."""
    encoded = [json.dumps(body, separators=(",", ":")).encode() for body in bodies]
    return SimpleNamespace(
        structured=any(map(asks_for_json, encoded)), body=lambda index: encoded[index]
    )


async def test_only_ok_answers_that_are_to_be_json_are_counted() -> None:
    hooks = sender()
    structured = StructuredAnswers(of_requests(OF_OPENAI, OF_OPENAI, {"prompt": "a"}))
    structured.register(hooks)
    assert hooks.keeps_answer
    (keep,) = hooks.after_end
    for index, text, outcome in (
        (0, '{"n": 1}', Outcome.OK),
        (1, "a text", Outcome.TRUNCATED),
        (2, "a text", Outcome.OK),
        (0, "a text", Outcome.OK),
    ):
        keep(SimpleNamespace(index=index, outcome=outcome, answer_text=text))
    assert await structured.finish() == {"structured": {"matches": 1, "not_json": 1}}


async def test_a_run_that_asks_for_no_json_keeps_no_answers() -> None:
    hooks = sender()
    structured = StructuredAnswers(of_requests({"prompt": "a"}))
    structured.register(hooks)
    assert (hooks.keeps_answer, hooks.after_end) == (False, [])
    assert await structured.finish() == {}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"unchecked": 2, "not_json": 1}, ["2 of 3 answers are JSON, no schema was checked"]),
        ({"matches": 3, "violates": 1}, ["4 of 4 answers are JSON, 3 of 4 match their schema"]),
    ],
)
def test_the_report_has_a_line_of_them(facts: dict[str, int], expected: list[str]) -> None:
    run: Any = SimpleNamespace(trailer=SimpleNamespace(facts={"structured": facts}))
    assert list(lines(StructuredOutput.of(run))) == [
        f"Structured output: {line}" for line in expected
    ]
