"""The rule of GPUStack's benchmark-runner builds the prompts that the tool builds."""

import json
import random

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"


def prompts(count, **changes):
    return list(
        datasets.create(RunSettings(**{"tokenizer": str(SIMULATOR), **changes})).prompts(count)
    )


def words(count):
    return " ".join(["word"] * count)


class TestBenchmarkRunner:
    RULE = "benchmark-runner"

    @pytest.fixture
    def write(self, tmp_path):
        def to_file(content):
            path = tmp_path / "sharegpt.json"
            path.write_bytes(
                content if isinstance(content, bytes) else json.dumps(content).encode()
            )
            return path

        return to_file

    def rows(self, path, count, **changes):
        asked = {"dataset_name": "sharegpt", "dataset_path": str(path), "dataset_rule": self.RULE}
        made = prompts(count, **asked, **changes)
        return [(prompt.source, prompt.input_tokens, prompt.output_tokens) for prompt in made]

    def test_the_first_questions_that_are_asked_and_answered(self, write, monkeypatch):
        draw, entries, expected = random.Random(0), [], []
        for number in range(700):
            turns = [
                {
                    "from": draw.choice(["human", "user", "gpt", "assistant", "system"]),
                    "value": words(draw.randrange(9)),
                }
                for _ in range(draw.randrange(4))
            ]
            entries.append({"id": f"c{number}", "conversations": turns})
            if len(turns) < 2 or turns[0]["from"] not in ("human", "user"):
                continue
            if turns[1]["from"] in ("gpt", "assistant") and turns[0]["value"] and turns[1]["value"]:
                question, answer = (len(turn["value"].split()) for turn in turns[:2])
                expected.append((f"sharegpt/c{number}", question, answer))
        assert 30 < len(expected) < 200
        monkeypatch.setattr("loadgen.lab.tools.prompt_rules.sharegpt.BATCH", 7)
        for count in (0, 1, 30, len(expected)):
            assert self.rows(write(entries), count) == expected[:count]

    def test_seeds_do_not_change_the_rows(self, write):
        path = write([conversation(number) for number in range(9)])
        assert self.rows(path, 5, seed=1) == self.rows(path, 5, seed=2)

    def test_file_is_read_only_as_far_as_needed(self, write):
        path = write(
            json.dumps([conversation(1), conversation(2)]).encode()[:-1] + b', {"id": \\x}, broken'
        )
        assert len(self.rows(path, 2)) == 2
        with pytest.raises(BadInput, match="is not JSON in the object at byte"):
            self.rows(path, 3)

    def test_only_the_question_is_counted_with_special_tokens(self, write, tmp_path):
        path = write(
            [
                {
                    "conversations": [
                        {"from": "user", "value": "the word"},
                        {"from": "gpt", "value": "a name"},
                    ]
                }
            ]
        )
        assert self.rows(path, 1, tokenizer=str(trained.wordpiece(tmp_path))) == [
            ("sharegpt/0", 4, 2)
        ]

    def test_output_length_applies_to_every_answer(self, write):
        assert self.rows(write([conversation(1)]), 1, sharegpt_output_len=77) == [
            ("sharegpt/1", 5, 77)
        ]

    @pytest.mark.parametrize(
        ("lengths", "kept"),
        [("2:3", ["2", "3"]), (":2", ["1", "2"]), ("4:", ["4"]), ("3:3", ["3"])],
    )
    def test_questions_of_other_lengths_are_left_out(self, write, lengths, kept):
        rows = [
            {
                "id": str(n),
                "conversations": [
                    {"from": "user", "value": words(n)},
                    {"from": "gpt", "value": "yes"},
                ],
            }
            for n in range(1, 5)
        ]
        path = write(rows)
        made = self.rows(path, len(kept), sharegpt_input_len=lengths)
        assert [source for source, _, _ in made] == [f"sharegpt/{number}" for number in kept]
        with pytest.raises(BadInput, match=f"more than the {len(kept)} questions of this length"):
            self.rows(path, len(kept) + 1, sharegpt_input_len=lengths)

    @pytest.mark.parametrize("lengths", ["", "5", ":", "9:3", "a:b", "-1:3"])
    def test_lengths_that_are_no_range_are_refused(self, write, lengths):
        with pytest.raises(BadInput, match="--sharegpt-input-len"):
            self.rows(write([conversation(1)]), 1, sharegpt_input_len=lengths)

    def test_more_than_the_file_has_is_refused(self, write):
        path = write([conversation(1), {"id": "2", "conversations": []}])
        with pytest.raises(BadInput) as refused:
            self.rows(path, 2)
        assert str(refused.value) == (
            f"--num-prompts: 2 is more than the 1 questions with an answer in {path}; "
            "give a lower number, or the complete file"
        )

    def test_truncated_file_is_used_with_a_warning_at_its_end(self, write, caplog):
        path = write(json.dumps([conversation(1), conversation(2), conversation(3)]).encode()[:-9])
        assert len(self.rows(path, 2)) == 2
        assert not caplog.messages
        with pytest.raises(BadInput, match="--num-prompts: 3 is more than the 2"):
            self.rows(path, 3)
        assert caplog.messages == [
            f"{path}: the file is truncated; its 2 complete conversations are used"
        ]

    def test_more_after_the_list_is_refused_where_it_is_met(self, write):
        with pytest.raises(BadInput, match="has more after its list, from byte"):
            self.rows(write(json.dumps([conversation(1)]).encode() + b"\n[]"), 2)

    def test_missing_path_is_refused(self):
        with pytest.raises(BadInput, match="--dataset-path: is missing"):
            prompts(1, dataset_name="sharegpt", dataset_rule=self.RULE)

    def test_provenance_names_rule_and_file(self, write):
        path = write([conversation(1)])
        asked = {"dataset_name": "sharegpt", "dataset_path": str(path), "dataset_rule": self.RULE}
        said = datasets.create(RunSettings(tokenizer=str(SIMULATOR), **asked)).provenance()
        assert (said["rule"], said["file"], said["file_bytes"]) == (
            self.RULE,
            str(path),
            path.stat().st_size,
        )


def conversation(name):
    turns = [{"from": "human", "value": words(5)}, {"from": "gpt", "value": words(6)}]
    return {"id": str(name), "conversations": turns}
