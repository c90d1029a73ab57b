"""Validates results against the generated JSON Schema."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from loadgen.report.result.schema import text

SCHEMA: dict[str, Any] = json.loads(text())
VALIDATOR = Draft202012Validator(SCHEMA)


def problems(result: Any) -> list[str]:
    """In what a result is not what the schema says: where, and why."""
    found = VALIDATOR.iter_errors(json.loads(json.dumps(result)))
    return [f"{'/'.join(map(str, each.absolute_path))}: {each.message[:300]}" for each in found]
