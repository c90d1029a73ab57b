"""Data sets of the hub: records of a local copy become prompts by their columns."""

import json
from itertools import islice

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.files import cache, hub
from tests.workload.test_random_words import SIMULATOR

CHAT = [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three four five"}]
TURNS = [{"from": "human", "value": "one two"}, {"from": "gpt", "value": "three four five"}]


@pytest.fixture
def copy(tmp_path):
    """Writes a local copy of records; returns the data set of it."""

    def written(records, **changes):
        (tmp_path / "train.jsonl").write_text(
            "".join(json.dumps(record) + "\n" for record in records)
        )
        return datasets.create(options(dataset_path=str(tmp_path), **changes))

    return written


def options(**changes):
    given = {"tokenizer": str(SIMULATOR), "disable_shuffle": True, **changes}
    return RunSettings(dataset_name="hf", **given)


def made(found, count=1):
    return [
        (prompt.text, prompt.input_tokens, prompt.output_tokens) for prompt in found.prompts(count)
    ]


class TestRows:
    def test_rows_with_lengths_need_no_tokenizer(self, copy):
        row = {"prompt": "word", "input_tokens": 7, "output_tokens": 9}
        assert made(copy([row], tokenizer=None)) == [("word", 7, 9)]

    def test_come_in_the_files_order_if_it_is_asked(self, copy):
        rows = [{"prompt": f"word {letter}"} for letter in "abcdefg"]
        assert [prompt.text[-1] for prompt in copy(rows).prompts(7)] == list("abcdefg")

    def test_are_shuffled_by_the_seed_of_the_order(self, copy):
        rows = [{"prompt": f"word {letter}"} for letter in "abcdefg"]
        orders = {
            seed: "".join(
                prompt.text[-1]
                for prompt in copy(rows, disable_shuffle=False, seed_order=seed).prompts(7)
            )
            for seed in (0, 1)
        }
        assert orders[0] == "cedgfab"  # as `IterableDataset.shuffle(0)` orders seven records
        assert orders[1] != orders[0]
        assert sorted(orders[1]) == list("abcdefg")

    def test_random_ones_are_repeated_if_there_are_too_few(self, copy):
        found = copy([{"prompt": f"word {letter}"} for letter in "abc"])
        prompts = [prompt.text for prompt in found.prompts(9)]
        assert prompts[:3] == ["word a", "word b", "word c"]
        assert set(prompts[3:]) <= set(prompts[:3])
        assert [prompt.text for prompt in found.prompts(5)] == prompts[:5]

    def test_beyond_a_number_come_once_each(self, copy):
        found = copy([{"prompt": f"word {letter}"} for letter in "abc"])
        assert [prompt.text for prompt in found.beyond(1)] == ["word b", "word c"]
        assert list(islice(found.beyond(3), 1)) == []

    def test_may_have_columns_of_other_names(self, copy):
        rows = [{"query": "one two", "reply": "three", "prompt": "not this"}]
        assert made(copy(rows, hf_column=("prompt=query", "answer=reply"))) == [("one two", 2, 1)]

    def test_chats_that_end_with_an_answer_are_sent_without_it(self, copy):
        assert made(copy([{"messages": CHAT}])) == [("one two", 2, 3)]
        assert made(copy([{"prompt": "not this", "messages": CHAT}])) == [("one two", 2, 3)]

    def test_may_be_asked_another_length_for_every_answer(self, copy):
        assert made(copy([{"messages": CHAT}], hf_output_len=50)) == [("one two", 2, 50)]

    def test_without_an_answer_ask_the_default_of_vllm_rs(self, copy):
        assert made(copy([{"prompt": "one two"}])) == [("one two", 2, 128)]

    def test_may_be_chosen_by_their_columns(self, copy):
        rows = [
            {"prompt": f"word {n}", "kind": ["even", "odd"][n % 2], "size": n} for n in range(6)
        ]
        asked = copy(rows, hf_where=("kind=even", "size>=1", "size<=4"))
        assert [prompt.text for prompt in asked.prompts(2)] == ["word 2", "word 4"]

    def test_provenance_names_data_set_and_columns(self, copy, tmp_path):
        said = copy(
            [{"prompt": "a", "answer": "b"}], disable_shuffle=False, seed_order=3
        ).provenance()
        assert (said["file"], said["files"], said["seed_order"]) == (
            str(tmp_path),
            ["train.jsonl"],
            3,
        )
        assert said["file_sha256"] == cache.file_sha256(tmp_path / "train.jsonl")
        assert said["columns"] == {"prompt": "prompt", "answer": "answer"}


class TestColumns:
    """Without --hf-column, columns are found by their names, as vllm-rs finds them."""

    @pytest.mark.parametrize(
        ("record", "prompt", "tokens"),
        [
            ({"conversation": CHAT}, "one two", 3),
            ({"conversations": TURNS, "id": "a"}, "one two", 3),
            ({"conversation": [{"role": "system", "content": "be kind"}, *CHAT]}, "one two", 3),
            ({"turns": ["one two", "three"]}, "one two", 128),
            ({"question": "one two", "solution": "three four"}, "one two", 2),
            ({"context": "one", "input": "two", "answers": ["three"]}, "one\n\ntwo", 128),
            ({"text": "one two", "answers": ["three four", "five"]}, "one two", 2),
            (
                {"instruction": "one two", "completion": "three", "output": "four five"},
                "one two",
                1,
            ),
        ],
    )
    def test_are_found(self, copy, record, prompt, tokens):
        ((text, _, wanted),) = made(copy([record]))
        assert (text, wanted) == (prompt, tokens)

    def test_may_hold_a_conversation_where_a_prompt_is_named(self, copy):
        assert made(copy([{"talk": TURNS}], hf_column=("prompt=talk", "answer=talk"))) == [
            ("one two", 2, 3)
        ]


class TestBadInput:
    @pytest.mark.parametrize(
        ("records", "changes", "flag", "says"),
        [
            (
                [{"q": "a", "a": "b"}],
                {},
                "--hf-column",
                "has no column prompt or messages; give it",
            ),
            (
                [{"q": "a"}],
                {"hf_column": ("prompt=r",)},
                "--hf-column",
                "unknown column 'r'; choose from q",
            ),
            (
                [{"q": "a"}],
                {"hf_column": ("word=q",)},
                "--hf-column",
                "write FIELD=COLUMN with id, prompt, messages",
            ),
            ([{"prompt": 5}], {}, "--dataset-path", "hf/0 of"),
            (
                [{"prompt": "a", "answer": 5}],
                {},
                "--dataset-path",
                "neither a text nor a conversation",
            ),
            (
                [{"prompt": "a"}],
                {"hf_where": ("kind=b",)},
                "--hf-where",
                "unknown column 'kind'; choose from prompt",
            ),
            (
                [{"prompt": "a"}],
                {"hf_where": ("kind",)},
                "--hf-where",
                "'kind' is not a condition; write COLUMN=TEXT",
            ),
            (
                [{"prompt": "a"}],
                {"hf_where": ("prompt>=x",)},
                "--hf-where",
                "'x' in 'prompt>=x' is not a number",
            ),
            (
                [{"prompt": "a"}],
                {"hf_where": ("prompt>=1",)},
                "--hf-where",
                "'a' in 'prompt' is not a number",
            ),
            (
                [{"prompt": "a"}],
                {"hf_where": ("prompt=b",)},
                "--dataset-path",
                "has no usable record",
            ),
        ],
    )
    def test_is_refused_in_one_line_with_its_remedy(self, copy, records, changes, flag, says):
        with pytest.raises(BadInput) as refused:
            made(copy(records, **changes))
        assert refused.value.field == flag
        assert says in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_a_missing_path(self):
        with pytest.raises(BadInput, match="--dataset-path: is missing; give a local copy"):
            datasets.create(options())

    def test_a_folder_that_does_not_exist(self):
        with pytest.raises(
            BadInput, match="--dataset-path: file or folder /no/such/folder does not exist"
        ):
            datasets.create(options(dataset_path="/no/such/folder"))

    def test_a_hub_that_cannot_be_reached(self, monkeypatch):
        monkeypatch.setattr(hub, "why_unavailable", lambda: "timed out")
        with pytest.raises(
            BadInput, match=r"of the hub, and the hub cannot be reached \(timed out\); give a local"
        ):
            datasets.create(options(dataset_path="org/name"))

    def test_conditions_for_a_data_set_that_has_no_columns(self):
        with pytest.raises(BadInput, match="--hf-where: has no effect on the data set random"):
            datasets.create(
                RunSettings(dataset_name="random", hf_where=("a=b",), tokenizer=str(SIMULATOR))
            )
