"""The files of a data set: their formats, and those of a subset and a split."""

import json
import sys
from itertools import islice

import pytest

from loadgen.errors import BadInput
from loadgen.workload.datasets.hub_folder import HubFolder, records, split_files
from loadgen.workload.datasets.prompt_rows import shuffled_by_buffer, shuffled_files

CONFIGS = """---
configs:
- config_name: main
  data_files:
  - split: train
    path: main/train-*
  - split: test
    path: main/test-*
- config_name: socratic
  data_files: extra/*.jsonl
---
# A data set
"""


def folder(tmp_path, *names, readme=None):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"a": 1}\n')
    if readme is not None:
        (tmp_path / "README.md").write_text(readme)
    return HubFolder.of(str(tmp_path))


class TestRecords:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.jsonl", b'{"a": 1}\n\n{"a": 2}\n'),
            ("a.json", b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}'),
            ("a.json", b' [{"a": 1}, {"a": 2}]'),
            ("a.json", b'[{"a": 1, "b": [{"c": "]"}]}, {"a": 2}]\n'),
        ],
    )
    def test_are_read_from_lists_and_lines(self, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        assert [record["a"] for record in records(tmp_path / name)] == [1, 2]

    def test_are_read_from_csv(self, tmp_path):
        (tmp_path / "a.csv").write_text('a,b\n1,"two, three"\n')
        assert list(records(tmp_path / "a.csv")) == [{"a": "1", "b": "two, three"}]

    def test_are_read_from_parquet(self, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow: pip install pyarrow")
        import pyarrow

        parquet.write_table(
            pyarrow.Table.from_pylist([{"a": [1, 2]}, {"a": None}]), tmp_path / "a.parquet"
        )
        assert list(records(tmp_path / "a.parquet")) == [{"a": [1, 2]}, {"a": None}]

    def test_are_read_no_further_than_needed(self, tmp_path):
        (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\nnot JSON\n')
        assert list(islice(records(tmp_path / "a.jsonl"), 1)) == [{"a": 1}]

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "is empty"),
            (b'{"a": 1}\n{"a"\n', "line 2: not JSON"),
            (b'"a"\n', "line 1: not a JSON object"),
            (b'[{"a": 1}, {"a"', "is cut off after record 1"),
        ],
    )
    def test_of_another_form_are_refused_with_their_place(self, tmp_path, content, problem):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(BadInput, match=problem):
            list(records(tmp_path / "a.json"))

    def test_of_parquet_need_a_package(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(
            BadInput, match=r"reading a.parquet needs the package pyarrow; pip install pyarrow"
        ):
            list(records(tmp_path / "a.parquet"))


class TestSplits:
    def test_are_found_by_the_words_of_paths(self, tmp_path):
        there = folder(
            tmp_path, "data/train-0-of-2.jsonl", "data/train-1-of-2.jsonl", "data/valid.jsonl"
        )
        assert split_files(there, None, "train") == [
            "data/train-0-of-2.jsonl",
            "data/train-1-of-2.jsonl",
        ]
        assert split_files(there, None, "validation") == ["data/valid.jsonl"]
        assert len(split_files(there, None, None)) == 2

    def test_are_all_files_that_are_named_like_none(self, tmp_path):
        there = folder(tmp_path, "part_a.jsonl", "part_b.jsonl")
        assert (
            split_files(there, None, "train")
            == split_files(there, None, None)
            == ["part_a.jsonl", "part_b.jsonl"]
        )

    def test_of_a_subset_are_in_its_folder_or_have_its_name(self, tmp_path):
        there = folder(
            tmp_path, "en/train.jsonl", "en/test.jsonl", "de/train.jsonl", "de/test.jsonl"
        )
        assert split_files(there, "de", "test") == ["de/test.jsonl"]
        named = folder(tmp_path / "more", "throughput_1k.jsonl", "throughput_16k.jsonl")
        assert split_files(named, "throughput_1k", "train") == ["throughput_1k.jsonl"]

    def test_are_those_that_the_readme_declares(self, tmp_path):
        there = folder(
            tmp_path, "main/train-0.jsonl", "main/test-0.jsonl", "extra/a.jsonl", readme=CONFIGS
        )
        assert split_files(there, None, None) == ["main/train-0.jsonl"]
        assert split_files(there, "main", "test") == ["main/test-0.jsonl"]
        assert split_files(there, "socratic", "train") == ["extra/a.jsonl"]
        with pytest.raises(
            BadInput, match=r"--hf-subset: .* has no subset 'x'; choose from main, socratic"
        ):
            split_files(there, "x", None)
        with pytest.raises(
            BadInput, match=r"--hf-split: .* has no split 'x'; choose from train, test"
        ):
            split_files(there, "main", "x")

    def test_the_only_file_of_a_copy_is_used_with_a_warning(self, tmp_path, caplog):
        there = folder(tmp_path, "train.jsonl")
        assert split_files(there, None, "train") == ["train.jsonl"]
        assert caplog.text == ""
        assert split_files(there, "stories", "test") == ["train.jsonl"]
        assert (
            "has a single file, train.jsonl: it is used as subset stories, split test"
            in caplog.text
        )

    def test_that_are_not_there_are_refused_with_those_that_are(self, tmp_path):
        there = folder(tmp_path, "train.jsonl", "test.jsonl")
        with pytest.raises(
            BadInput, match=r"--hf-split: .* has no split 'validation'; choose from train, test"
        ):
            split_files(there, None, "validation")
        with pytest.raises(BadInput, match=r"--hf-subset: .* has no subset 'de'; choose from"):
            split_files(there, "de", None)

    def test_files_about_the_data_set_have_no_records(self, tmp_path):
        there = folder(tmp_path, "train.jsonl", "dataset_infos.json", ".cache/x.jsonl", "notes.csv")
        assert there.data_files() == ["train.jsonl"]

    def test_folder_without_data_is_refused(self, tmp_path):
        with pytest.raises(BadInput, match=r"has no file of .parquet, .jsonl, .json, .csv"):
            split_files(folder(tmp_path, readme="# Nothing"), None, None)


class TestOrder:
    def test_large_ones_are_shuffled_a_part_at_a_time(self):
        """The first numbers are those of `IterableDataset.shuffle(seed=0)` of 2500 records with
        datasets 5.2.
        """
        order = list(shuffled_by_buffer(range(2500), 0))
        assert order[:8] == [459, 206, 222, 162, 711, 814, 350, 890]
        assert sorted(order) == list(range(2500))

    def test_files_are_shuffled_before_their_records(self):
        assert shuffled_files(["a", "b", "c", "d", "e", "f", "g"], 0) == list("cedgfab")

    def test_record_is_read_only_when_it_is_needed(self):
        assert len(list(islice(shuffled_by_buffer(iter(int, 1), 0), 500))) == 500


def test_json_of_a_thousand_records_is_read_as_a_list(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"a": number} for number in range(3000)]))
    assert [record["a"] for record in records(tmp_path / "a.json")] == list(range(3000))
