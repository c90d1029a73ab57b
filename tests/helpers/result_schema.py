"""Validating: what the packaged schema says of a result."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from tests.helpers.source import ROOT

FILE = ROOT / "loadgen/report/result.schema.json"
SCHEMA: dict[str, Any] = json.loads(FILE.read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


def problems(result: Any) -> list[str]:
    """In what a result is not what the schema says: where, and why."""
    found = VALIDATOR.iter_errors(json.loads(json.dumps(result)))
    return [f"{'/'.join(map(str, each.absolute_path))}: {each.message[:300]}" for each in found]
