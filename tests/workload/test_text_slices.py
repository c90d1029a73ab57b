"""txt-slices sends the pieces of a text that `vllm bench serve` cuts with the same seed."""

import random

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained
from tests.workload.test_random_words import SIMULATOR

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

TEXT = "One swallow does not make a summer, nor does one fine day.\n" * 3


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory):
    return trained.wordpiece(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def text_file(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text(TEXT)
    return file


@pytest.fixture
def created(tokenizer_file):
    def create(file, **changes):
        fields = {"random_input_len": 8, "random_output_len": 5, "seed": 3} | changes
        path = None if file is None else str(file)
        fields = {"tokenizer": str(tokenizer_file), "dataset_path": path} | fields
        return datasets.create(RunSettings(dataset_name="txt-slices", **fields))

    return create


def test_pieces_begin_at_the_places_that_the_seed_draws(created, text_file, tokenizer_file):
    tokenizer = load(str(tokenizer_file))
    (token_ids,) = tokenizer.encode_batch([TEXT])
    draw = random.Random(3)
    starts = [draw.randint(0, len(token_ids) - 1) for _ in range(300)]
    twice = token_ids * 2
    pieces = [twice[start : start + 8] for start in starts]
    prompts = list(created(text_file).prompts(300))
    assert [prompt.text for prompt in prompts] == tokenizer.decode_batch(pieces)
    assert prompts[0].source == f"text.txt/{starts[0]}"
    assert {prompt.output_tokens for prompt in prompts} == {5}


def test_a_prompt_says_how_many_tokens_the_tokenizer_counts_in_it(created, text_file):
    prompts = list(created(text_file).prompts(20))
    tokenizer = created(text_file).tokenizer
    counted = tokenizer.count([prompt.text for prompt in prompts], special=True)
    assert [prompt.input_tokens for prompt in prompts] == counted


def test_further_prompts_follow_those_of_the_run(created, text_file):
    dataset = created(text_file)
    rows = zip(dataset.beyond(4), range(3), strict=False)
    assert [prompt for prompt, _ in rows] == list(dataset.prompts(7))[4:]


def test_a_text_shorter_than_a_piece_begins_again(created, tmp_path):
    file = tmp_path / "short.txt"
    file.write_text("one two three")
    (prompt,) = created(file, random_input_len=50).prompts(1)
    assert "one two three one two three" in prompt.text


def test_provenance_names_the_text_and_the_rule(created, text_file):
    provenance = created(text_file).provenance()
    assert provenance["name"] == "txt-slices"
    assert (provenance["file"], provenance["input_tokens"]) == ("text.txt", 8)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"random_input_len": "10:20"}, "--random-input-len: 10:20: pieces of a text have one"),
        ({"random_output_len": "1,2"}, "--random-output-len: 1,2: pieces of a text have one"),
        (
            {"tokenizer": str(SIMULATOR)},
            "does not have the words of text.txt; give the tokenizer of the model",
        ),
        ({"dataset_path": None}, "--dataset-path: is missing: the data set txt-slices"),
    ],
)
def test_other_settings_are_refused(created, text_file, changes, error):
    with pytest.raises(BadInput) as caught:
        created(text_file, **changes)
    assert error in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00"])
def test_a_file_without_text_is_refused(created, tmp_path, content):
    file = tmp_path / "bad.txt"
    file.write_bytes(content)
    with pytest.raises(BadInput, match="give a text file in UTF-8"):
        created(file)
