"""Structured output: the JSON schema that a request asks for, whether its answer is JSON that
matches it, and how many answers of a run do.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Self

import orjson
from msgspec import Struct

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.sender import Sender
from loadgen.metrics.run_data import RunData
from loadgen.workload.prompt import ANSWER_PLACEHOLDER
from loadgen.workload.request_store import Requests

Schema = dict[str, Any]


class Conformance(StrEnum):
    """What an answer is, measured by what its request asks for."""

    NOT_JSON = "not_json"
    UNCHECKED = "unchecked"  # it is JSON; its schema was not checked, or there is none
    VIOLATES = "violates"  # it is JSON, and not as the schema says
    MATCHES = "matches"


class StructuredAnswers:
    """Keeps the answers that are to be JSON, if a run has any, and judges them after it.

    Args:
        requests: The requests of the run.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._answers: list[tuple[int, str]] = []  # by the number of the request

    def register(self, sender: Sender) -> None:
        """Keep the texts of ok answers."""
        if self._requests.structured:
            sender.keeps_answer = True
            sender.after_end.append(self._keep)

    async def finish(self) -> dict[str, Any]:
        """Return how many answers are what, by `Conformance`."""
        return {"structured": await asyncio.to_thread(self._count)} if self._answers else {}

    def _keep(self, record: Record) -> None:
        if record.outcome is Outcome.OK:
            self._answers.append((record.index, record.answer_text))

    def _count(self) -> dict[str, int]:
        verdicts = (
            conformance(self._requests.body(index).replace(ANSWER_PLACEHOLDER, b""), text)
            for index, text in self._answers
        )
        return dict(Counter(str(verdict) for verdict in verdicts if verdict is not None))


class StructuredOutput(Struct, frozen=True, kw_only=True):
    """Ok answers whose requests ask for JSON."""

    answers: Annotated[int, "Number of them."]
    json: Annotated[int, "Those that are JSON."]
    checked: Annotated[
        int, "Those of them whose schema was checked, for which the package jsonschema is needed."
    ]
    matching: Annotated[int, "Those of them that match it."]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Count them; None if there are none."""
        counts = Counter[str](run.trailer.facts.get("structured", {}))
        answers = counts.total()
        if not answers:
            return None
        return cls(
            answers=answers,
            json=answers - counts[Conformance.NOT_JSON],
            checked=counts[Conformance.MATCHES] + counts[Conformance.VIOLATES],
            matching=counts[Conformance.MATCHES],
        )


def lines(output: StructuredOutput | None) -> Iterator[str]:
    """Write how many of the answers that were to be JSON are, and how many match their schema."""
    if output is None:
        return
    checked = (
        f"{output.matching} of {output.checked} match their schema"
        if output.checked
        else "no schema was checked"
    )
    yield f"Structured output: {output.json} of {output.answers} answers are JSON, {checked}"


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
