"""The JSON Schema of study files accepts what the reader accepts."""

from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from loadgen.lab.study.spec.study_file import DIALECT, schema
from tests.helpers.source import ROOT
from tests.helpers.study_files import SMALL, WHOLE, study

VALIDATOR = Draft202012Validator(schema())
EXAMPLES = sorted((ROOT / "examples" / "studies").glob("*.yaml"))


def test_schema_is_one_of_its_dialect() -> None:
    assert schema()["$schema"] == DIALECT
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid(path: Any) -> None:
    assert list(VALIDATOR.iter_errors(yaml.safe_load(path.read_text()))) == []


@pytest.mark.parametrize("document", [SMALL, WHOLE], ids=["small", "whole"])
def test_studies_with_few_and_with_all_keys_are_valid(document: dict[str, Any]) -> None:
    assert list(VALIDATOR.iter_errors(document)) == []


def test_study_as_json_is_valid_and_the_same_study() -> None:
    joint = {
        "name": "joint",
        "joint": {"a": {"log2": [2, 4]}, "b": {"int": [1, 3]}, "c": {"choice": [1, None]}},
    }
    read = study(
        {"name": "arms", "choice": {"x": {"env": {"A": 1, "B": None}, "devices": [0]}}}, joint
    )
    assert list(VALIDATOR.iter_errors(read.as_json())) == []
    assert study(**read.as_json()) == read


@pytest.mark.parametrize(
    ("part", "keyword"),
    [
        ({"keep": 0}, "minimum"),
        ({"keep": "2"}, "type"),
        ({"models": {}}, "minProperties"),
        ({"stages": []}, "minItems"),
        ({"stages": [{"name": "none"}]}, "oneOf"),
        ({"budget": {"hours": 0}}, "anyOf"),
        ({"decision": {"seed": 1 << 63}}, "exclusiveMaximum"),
        ({"report": {"layout": "pages"}}, "enum"),
        ({"nam": "x"}, "additionalProperties"),
    ],
)
def test_unusable_part_is_invalid(part: dict[str, Any], keyword: str) -> None:
    assert [error.validator for error in VALIDATOR.iter_errors(SMALL | part)] == [keyword]
