"""What no data set can read is refused by the flag that named it, before anything waits for it
or blames another.
"""

import os

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.datasets import prompt_cache
from loadgen.workload.datasets.lengths import Lengths
from tests.workload.test_random_words import SIMULATOR

OF_FILES = ["jsonl", "csv", "custom", "sharegpt", "trace", "prose"]
LENGTHS = "--random-input-len"


def refusal(name, path, **settings):
    """What is said of the file of a data set, as a run asks for it."""
    asked = RunSettings(
        dataset_name=name, dataset_path=str(path), tokenizer=str(SIMULATOR), **settings
    )
    with pytest.raises(BadInput) as refused:
        next(iter(prompt_cache.cached_dataset(asked).prompts(1)))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def refusal_of_lengths(path):
    with pytest.raises(BadInput) as refused:
        Lengths.parse(LENGTHS, f"@{path}")
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture
def pipe(tmp_path):
    """One that nobody writes: whoever opens it waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [*OF_FILES, "hf"])
def test_a_pipe_is_no_regular_file(pipe, name):
    said = (
        f"--dataset-path: {pipe} is not a regular file; copy its content into a file, and give that"
    )
    assert refusal(name, pipe) == said


@pytest.mark.timeout(30)
def test_a_pipe_of_lengths_is_no_regular_file(pipe):
    said = f"{LENGTHS}: {pipe} is not a regular file; copy its content into a file, and give that"
    assert refusal_of_lengths(pipe) == said


@pytest.mark.parametrize("name", OF_FILES)
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 9, b"\0a\n\0b\n"], ids=["empty", "NUL", "NUL in lines"]
)
def test_empty_or_nul_file_is_refused_with_its_flag(tmp_path, name, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    said = refusal(name, path)
    assert said.startswith(f"--dataset-path: {path}")
    assert "--trace-format" not in said


@pytest.mark.parametrize("name", ["burstgpt", "azure", "mooncake"])
@pytest.mark.parametrize(
    ("content", "problem"), [(b"", "is empty"), (b"\0\0", "contains NUL bytes")]
)
def test_so_is_a_trace_whose_format_is_named(tmp_path, name, content, problem):
    (tmp_path / "file").write_bytes(content)
    said = f"--dataset-path: {tmp_path}/file {problem}; give the file of a trace"
    assert refusal("trace", tmp_path / "file", trace_format=name) == said


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", " is empty"),
        (b" \n", " is empty"),
        (b"\0\0", r": invalid length '\x00\x00'"),
        (b"\0" * 1000, ": invalid length '" + r"\x00" * 40 + "'..."),
        (b"1 two", ": invalid length 'two'"),
        (b"5 0", ": 0 leaves no token"),
        (b"\xff", " contains text that is not a whole number"),
    ],
)
def test_a_file_of_lengths_that_is_none_is_named_with_its_flag(tmp_path, content, problem):
    (tmp_path / "lengths").write_bytes(content)
    said = (
        f"{LENGTHS}: {tmp_path}/lengths{problem}; give a file of whole numbers, separated by "
        "white space"
    )
    assert refusal_of_lengths(tmp_path / "lengths") == said


@pytest.mark.parametrize("name", [*OF_FILES, "hf"])
def test_a_path_that_no_file_can_have_is_refused(name):
    assert refusal(name, "a\0b").startswith(
        "--dataset-path: the path 'a\\x00b' contains a NUL byte"
    )
    assert refusal(name, "~nobody-at-home/x").startswith(
        "--dataset-path: ~nobody-at-home/x: unknown home"
    )


def test_a_path_of_lengths_that_no_file_can_have_is_refused():
    assert refusal_of_lengths("a\0b").startswith(
        f"{LENGTHS}: the path 'a\\x00b' contains a NUL byte"
    )
    assert refusal_of_lengths("~nobody-at-home/x").startswith(
        f"{LENGTHS}: ~nobody-at-home/x: unknown home"
    )


@pytest.mark.parametrize("name", ["random", "prefix_repetition", "multi_turn"])
def test_file_for_a_dataset_without_one_is_refused(name):
    """Or a path given without --dataset-name would measure random words."""
    assert f"--dataset-path: has no effect on the data set {name}; leave it out, or use" in refusal(
        name, "s.json"
    )
