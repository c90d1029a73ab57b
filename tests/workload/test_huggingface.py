"""Data sets of the hub: by name, split and columns, through an optional package."""

import json
import os
import sys
from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.tokenizer import tokenizer
from tests.workload.test_random_words import SIMULATOR

# Stands in for the package: rows from the file that ROWS names; keeps what it was asked for.
STUB = """
import json, os
asked = []
def load_dataset(path, name=None, *, split, streaming):
    asked.append((path, name, split, streaming))
    if split != "train":
        raise ValueError(f"Unknown split {split!r}.\\nThere is train.")
    with open(os.environ["ROWS"]) as file:
        return json.load(file)
"""
CHAT = [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three four five"}]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Puts rows where the stub finds them; returns what makes prompts of them."""
    (tmp_path / "datasets.py").write_text(STUB)
    about = tmp_path / "datasets-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: datasets\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "datasets", raising=False)
    monkeypatch.setattr(tokenizer, "has_address", lambda url: True)

    def prompts(rows, count=2, **changes):
        path = tmp_path / "rows.json"
        path.write_text(json.dumps(rows))
        monkeypatch.setitem(os.environ, "ROWS", str(path))
        found = datasets.create(options(**changes))
        return [(prompt.text, prompt.input_tokens, prompt.output_tokens) for prompt in found.prompts(count)]

    yield prompts
    sys.modules.pop("datasets", None)


def options(**changes):
    given = {"dataset_path": "org/name", "tokenizer": str(SIMULATOR), **changes}
    return RunSettings(dataset_name="hf", **given)


class TestRows:
    def test_rows_with_lengths_need_no_tokenizer(self, hub):
        row = {"prompt": "word", "input_tokens": 7, "output_tokens": 9}
        assert hub([row], 1, tokenizer=None) == [("word", 7, 9)]

    def test_come_in_order_and_again_from_the_first(self, hub):
        rows = [{"prompt": f"word {letter}", "answer": "three four five"} for letter in "ab"]
        assert hub(rows, 3) == [("word a", 2, 3), ("word b", 2, 3), ("word a", 2, 3)]

    def test_may_have_columns_of_other_names(self, hub):
        rows = [{"question": "one two", "reply": "three", "prompt": "not this"}]
        assert hub(rows, 1, hf_column=("prompt=question", "answer=reply")) == [("one two", 2, 1)]

    def test_chats_that_end_with_an_answer_are_sent_without_it(self, hub):
        assert hub([{"messages": CHAT}], 1) == [("one two", 2, 3)]
        assert hub([{"prompt": "not this", "messages": CHAT}], 1) == [("one two", 2, 3)]

    def test_may_say_their_lengths(self, hub):
        assert hub([{"prompt": "one two", "input_tokens": 7, "output_tokens": 9}], 1) == [("one two", 7, 9)]

    def test_may_be_asked_another_length_for_every_answer(self, hub):
        assert hub([{"messages": CHAT}], 1, hf_output_len=50) == [("one two", 2, 50)]

    def test_are_those_of_the_subset_and_split_and_are_streamed(self, hub):
        hub([{"messages": CHAT}], 1, hf_subset="en")
        assert sys.modules["datasets"].asked == [("org/name", "en", "train", True)]

    def test_data_set_in_a_folder_needs_no_hub(self, hub, tmp_path, monkeypatch):
        monkeypatch.setattr(tokenizer, "has_address", lambda url: False)
        hub([{"messages": CHAT}], 1, dataset_path=str(tmp_path))
        assert sys.modules["datasets"].asked == [(str(tmp_path), None, "train", True)]

    def test_provenance_names_data_set_and_columns(self, hub):
        hub([{"prompt": "a", "answer": "b"}])
        said = datasets.create(options()).provenance()
        assert (said["file"], said["split"], said["datasets"]) == ("org/name", "train", "1.0")
        assert said["columns"] == {"prompt": "prompt", "answer": "answer"}


class TestBadInput:
    @pytest.mark.parametrize(
        ("rows", "changes", "message"),
        [
            ([], {}, "--dataset-path: org/name has no rows; give another split"),
            (
                [{"q": "a", "a": "b"}],
                {},
                "--hf-column: org/name has no column prompt or messages; "
                "give it: --hf-column prompt=COLUMN, with one of q, a",
            ),
            ([{"q": "a"}], {"hf_column": ("prompt=r",)}, "--hf-column: unknown column 'r'; choose from q"),
            (
                [{"q": "a"}],
                {"hf_column": ("text=q",)},
                "--hf-column: unknown field or empty column in 'text'; "
                "write FIELD=COLUMN with id, prompt, messages, input_tokens, output_tokens, answer",
            ),
            (
                [{"prompt": 5}],
                {},
                "--hf-column: hf/0 of org/name has a prompt that is not a text; "
                "give the columns: --hf-column prompt=COLUMN, or messages=COLUMN",
            ),
            (
                [{"prompt": "a", "answer": 5}],
                {},
                "--hf-column: the answer of hf/0 is not a text; give another column: --hf-column answer=COLUMN",
            ),
            (
                [{"prompt": "a"}],
                {},
                "--hf-output-len: is missing, and hf/0 has no answer that gives the length; "
                "give it, or --hf-column answer=COLUMN",
            ),
            (
                [],
                {"hf_split": "none"},
                "--dataset-path: org/name cannot be loaded (Unknown split 'none'.); "
                "check name, --hf-subset and --hf-split",
            ),
            (
                [],
                {"dataset_path": None},
                "--dataset-path: is missing; give the name of a data set on the hub, or a folder",
            ),
        ],
    )
    def test_is_refused_in_one_line_with_its_remedy(self, hub, rows, changes, message):
        with pytest.raises(BadInput) as refused:
            hub(rows, **changes)
        assert str(refused.value) == message

    def test_a_package_that_is_not_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(BadInput, match="--dataset-name: hf needs the package datasets; pip install datasets"):
            datasets.create(options())

    def test_a_hub_that_cannot_be_reached(self, hub, monkeypatch):
        monkeypatch.setattr(tokenizer, "has_address", lambda url: False)
        with pytest.raises(BadInput) as refused:
            hub([{"prompt": "a"}])
        remedy = "give a folder, or set HF_HUB_OFFLINE=1 to use earlier downloads"
        assert (
            str(refused.value) == f"--dataset-path: org/name is not a folder, and the hub cannot be reached; {remedy}"
        )


@pytest.mark.real_data
def test_the_real_package_reads_a_folder(tmp_path: Path):
    pytest.importorskip("datasets", reason="datasets: pip install datasets")
    rows = [{"question": f"word {number}", "reply": "one two"} for number in range(3)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = options(dataset_path=str(tmp_path), hf_column=("prompt=question", "answer=reply"))
    made = [prompt.text for prompt in datasets.create(settings).prompts(4)]
    assert made == ["word 0", "word 1", "word 2", "word 0"]
