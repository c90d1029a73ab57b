"""Structured output: answers by the JSON schema of each row, judged by loadgen and by a JSON
parser here.
"""

import json
from collections.abc import Iterator
from typing import Any

from bench.engines.features.measured_run import MeasuredRun, Row, TriedServer

# Of few tokens, for the models are tiny and end no text of their own.
PROPERTIES: tuple[dict[str, Any], ...] = (
    {"ok": {"type": "boolean"}},
    {"color": {"enum": ["red", "green"]}, "size": {"enum": [1, 2]}},
)
REQUESTS, PLAIN = 6, 2  # each third row asks for no JSON


def rows(server: TriedServer) -> Iterator[Row]:
    """Run rows with two schemas and without one."""
    path = server.folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row(number)) + "\n" for number in range(REQUESTS)))
    flags = ["--backend", "openai-chat", "--dataset-name", "jsonl", "--dataset-path", str(path)]
    run = server.measure(*flags, "--num-prompts", str(REQUESTS), "--max-concurrency", "2")
    found = run.own["structured_output"]
    seen = f"{found['matching']} of {found['answers']} answers match their schema"
    yield Row("response_format", str(REQUESTS), seen, tuple(answer_problems(run)))


def row(number: int) -> dict[str, Any]:
    """A row with one of the schemas, or with none."""
    plain = {"prompt": f"Name a color, please. This is question {number}.", "output_tokens": 60}
    if number % 3 == PLAIN:
        return plain
    return plain | {"extra_body": {"response_format": _form(PROPERTIES[number % 3])}}


def answer_problems(run: MeasuredRun) -> Iterator[str]:
    """Where an answer is not as its schema says, or the result says so without a reason."""
    asked = [number for number in range(REQUESTS) if number % 3 != PLAIN]
    if run.own["structured_output"] != dict.fromkeys(
        ("answers", "json", "checked", "matching"), len(asked)
    ):
        yield f"the result says {run.own['structured_output']}"
    for number in asked:
        try:
            answer = json.loads(run.text(number))
        except ValueError:
            yield f"answer {number} is no JSON: {run.text(number)!r}"
            continue
        if answer.keys() != PROPERTIES[number % 3].keys():
            yield f"answer {number} has other keys than its schema: {answer}"


def _form(properties: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }
