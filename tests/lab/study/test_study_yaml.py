"""What is no study, and what YAML may be in one: text, words, and parts that are used again."""

import re
from pathlib import Path

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.study_file import MAX_BYTES
from tests.helpers.study_files import SMALL, as_yaml, read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [small", r"study.yaml:1: is not YAML \("),
        ("a: 1\nb: *x", r"study.yaml:2: is not YAML \(found undefined alias"),
        (
            "a: !!python/object:os.system 1",
            r"study.yaml:1: is not YAML \(could not determine a constructor",
        ),
        ("", r"study.yaml:1: is not a study; write keys"),
        ("- a", r"study.yaml:1: is not a study; write keys"),
        ("[" * 600, r"study.yaml"),
        ("a: " + "[" * 60 + "]" * 60, r"study.yaml: cannot be used \(nested too deep"),
        ("a: &a [*a]", r"study.yaml: cannot be used \(nested too deep"),
        (
            "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(8)),
            r"study.yaml: cannot be used \(nested too deep, or too long",
        ),
        ("#" * (MAX_BYTES + 1), r"study.yaml: more than 1,048,576 bytes"),
        ("a: \x01", r"study.yaml: is not YAML"),
    ],
)
def test_text_without_a_study_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(tmp_path, text)
    assert re.match(message, str(refused.value).replace(f"{tmp_path}/", ""))
    assert refused.value.remedy


def test_binary_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadInput, match="is not YAML"):
        study_file.read(tmp_path / "study.yaml")
    (tmp_path / "study.yaml").unlink()
    with pytest.raises(BadInput, match=r"study.yaml: cannot be read \(No such file"):
        study_file.read(tmp_path / "study.yaml")


def test_on_and_off_yes_and_no_are_words(tmp_path: Path) -> None:
    choice = {"name": "cache", "choice": {"on": {"knobs": {"prefix_cache": True}}}}
    grid = {"name": "words", "grid": {"attention_backend": ["on", "yes"]}}
    text = as_yaml(stages=[choice, grid]).replace("'on'", "on").replace("'yes'", "yes")
    assert {"on:", "on", "yes"} <= set(text.split())
    _, stage = read(tmp_path, text).study.stages
    assert getattr(stage, "grid", None) == {"attention_backend": ["on", "yes"]}


def test_parts_may_be_written_once_and_used_again(tmp_path: Path) -> None:
    text = (
        as_yaml(workloads=None)
        + "workloads:\n  short: &s {workload: short, num_prompts: 5}\n  long: {<<: *s, seed: 7}\n"
    )
    study = read(tmp_path, text).study
    assert study.workloads["long"] == {"workload": "short", "num_prompts": 5, "seed": 7}


def test_the_small_study_of_these_tests_is_one(tmp_path: Path) -> None:
    assert read(tmp_path, as_yaml()).study.name == SMALL["name"]
