"""The cache returns the prompts that would be made again, or none."""

import json
import logging
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.chat_template.prediction import SizedToServer
from loadgen.workload.datasets import prompt_cache
from loadgen.workload.datasets.ready_prompts import ReadyDataset
from loadgen.workload.prompt import Prompt, Sessions, Timed
from tests.workload.test_random_words import SIMULATOR


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LOADGEN_CACHE_BYTES", raising=False)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.jsonl"
    chat = [{"role": "user", "content": "a\nb"}]
    rows = [
        *({"prompt": f"word {number}"} for number in range(40)),
        {"messages": chat, "output_tokens": 3},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def options(path, **changes):
    return RunSettings(
        **{
            "dataset_name": "jsonl",
            "dataset_path": str(path),
            "tokenizer": str(SIMULATOR),
            **changes,
        }
    )


def prompts(settings, count=50):
    dataset = prompt_cache.cached_dataset(settings)
    return [*dataset.prompts(count)], dataset.provenance()


def made_again(settings, monkeypatch, count=50):
    """Whether it makes prompts, though they may have been kept."""
    made = []
    original = ReadyDataset.prompts
    with monkeypatch.context() as patch:
        patch.setattr(ReadyDataset, "prompts", lambda self, n: made.append(n) or original(self, n))
        prompts(settings, count)
    return bool(made)


def files_of_prompts():
    """The files of the cache, without the small ones about tokenizers."""
    return [path for path in prompt_cache.folder().glob("*") if path.suffix in (".rows", ".draft")]


class TestContents:
    def test_cached_prompts_equal_new_prompts(self, path, monkeypatch):
        plain = datasets.create(options(path))
        expected = [*plain.prompts(50)], plain.provenance()
        assert prompts(options(path)) == expected
        assert not made_again(options(path), monkeypatch)
        assert prompts(options(path)) == expected

    @pytest.mark.parametrize(
        "changes",
        [
            {"custom_output_len": 7},
            {"seed": 1},
            {"seed_prompts": 1},
            {"seed_order": 1},
            {"dataset_name": "custom"},
            {"random_input_len": 7},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_other_settings_are_other_prompts(self, path, monkeypatch, changes):
        prompts(options(path))
        assert made_again(options(path, **changes), monkeypatch)
        assert not made_again(options(path), monkeypatch)

    def test_cache_depends_on_count_file_and_tokenizer(self, path, tmp_path, monkeypatch):
        prompts(options(path))
        assert made_again(options(path), monkeypatch, 51)
        other = tmp_path / "tokenizer.json"
        other.write_text(SIMULATOR.read_text() + " ")
        assert made_again(options(path, tokenizer=str(other)), monkeypatch)
        path.write_text(path.read_text().replace('word 1"', 'word x"'))
        assert made_again(options(path), monkeypatch)

    def test_cached_data_set_opens_its_source_only_for_more_prompts(self, path, monkeypatch):
        prompts(options(path), 20)
        dataset = prompt_cache.cached_dataset(options(path))
        opened = []
        original = ReadyDataset.from_settings
        monkeypatch.setattr(
            ReadyDataset, "from_settings", lambda settings: opened.append(1) or original(settings)
        )
        assert len([*dataset.prompts(20)]) == 20
        further = dataset.beyond(20)
        assert opened == []
        assert len([*further]) == 21
        assert opened == [1]

    def test_settings_without_effect_on_prompts_keep_the_cache(self, path, monkeypatch):
        prompts(options(path))
        assert not made_again(
            options(path, request_rate=5.0, seed_arrivals=3, temperature=0.5), monkeypatch
        )

    def test_warnings_are_repeated_from_the_cache(self, tmp_path, caplog):
        talk = {"conversations": [{"value": "one two three four"}, {"value": "one two three four"}]}
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps([talk, talk])[:-1])
        settings = options(path, dataset_name="sharegpt")
        for _ in range(2):
            caplog.clear()
            with caplog.at_level(logging.WARNING, "loadgen"):
                prompts(settings, 1)
            assert caplog.messages == [
                f"{path}: the file is truncated; its 2 complete conversations are used"
            ]

    @pytest.mark.parametrize("name", ["random", "prefix_repetition"])
    def test_random_words_are_not_cached(self, name):
        prompts(RunSettings(dataset_name=name, tokenizer=str(SIMULATOR)))
        assert prompt_cache.entries() == []

    @pytest.mark.parametrize(
        "more",
        [{"after": (1,)}, {"due_ns": 5}, {"server_tokens": 9}],
        ids=lambda more: next(iter(more)),
    )
    def test_prompts_that_rows_cannot_hold_are_not_cached(self, path, monkeypatch, more):
        original = ReadyDataset.prompts

        def timed(self, count):
            return (structs.replace(prompt, **more) for prompt in original(self, count))

        monkeypatch.setattr(ReadyDataset, "prompts", timed)
        assert prompts(options(path), 5) == prompts(options(path), 5)
        assert all(
            getattr(prompt, name) == value
            for prompt in prompts(options(path), 5)[0]
            for name, value in more.items()
        )
        assert not prompt_cache.entries()

    def test_rows_with_lengths_are_not_cached(self, tmp_path):
        path = tmp_path / "rows.jsonl"
        path.write_text('{"prompt": "a", "input_tokens": 1}\n')
        prompts(options(path))
        assert prompt_cache.entries() == []


class Countdown:
    """A data set as another package would add it, that says of which files its prompts are made."""

    def __init__(self, settings):
        pass

    @classmethod
    def from_settings(cls, settings):
        return cls(settings)

    @classmethod
    def made_of(cls, settings):
        return []

    def prompts(self, count):
        return (Prompt(f"from {number}", 2, 1, str(number)) for number in range(count))

    def provenance(self):
        return {"name": "countdown"}


class CountdownInTurns(Countdown):
    def sessions(self, count):
        return self.prompts(count)


class CountdownAtTimes(Countdown):
    def __init__(self, settings):
        self.requests = 7


class CountdownToMeasure(Countdown):
    def __init__(self, settings):
        self.tokenizer = None

    def probes(self):
        return []

    def with_template_tokens(self, template_counts, *, subtract, measure):
        return self


class TestOfOthers:
    @pytest.fixture
    def add(self, monkeypatch):
        def add(kind):
            monkeypatch.setattr(datasets, "_entry", lambda name: SimpleNamespace(load=lambda: kind))
            return RunSettings(dataset_name="countdown")

        return add

    def test_their_prompts_are_kept_where_they_name_their_files(self, add):
        settings = add(Countdown)
        assert prompts(settings, 3) == prompts(settings, 3)
        (entry,) = prompt_cache.entries()
        assert (entry.dataset, entry.prompts) == ("countdown", 3)

    @pytest.mark.parametrize(
        ("kind", "known"),
        [
            (CountdownInTurns, Sessions),
            (CountdownAtTimes, Timed),
            (CountdownToMeasure, SizedToServer),
        ],
    )
    def test_cached_data_set_keeps_its_kind(self, add, kind, known):
        dataset = prompt_cache.cached_dataset(add(kind))
        assert isinstance(dataset, known)
        assert isinstance(dataset, kind)


class TestFiles:
    def test_are_their_owners_alone(self, path):
        prompts(options(path))
        (entry,) = prompt_cache.entries()
        assert stat.S_IMODE(entry.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(prompt_cache.folder().stat().st_mode) == 0o700

    @pytest.mark.parametrize(
        "harm",
        [
            lambda data: b"",
            lambda data: data[:-1],
            lambda data: data[: len(data) // 2],
            lambda data: data[data.index(b"\n") + 1 :],
            lambda data: data.replace(b"word 7", b"word 8", 1),
            lambda data: data + b"\n",
            lambda data: data[:-2] + b"]\n",
            lambda data: b"null\n",
            lambda data: b"\x00" * len(data),
            lambda data: data.replace(b'"prompts":50', b'"prompts":49'),
        ],
    )
    def test_damaged_entries_are_deleted_and_made_again(self, path, monkeypatch, harm):
        expected = prompts(options(path))
        (entry,) = prompt_cache.entries()
        entry.path.write_bytes(harm(entry.path.read_bytes()))
        assert made_again(options(path), monkeypatch)
        assert not made_again(options(path), monkeypatch)
        assert prompts(options(path)) == expected

    def test_are_put_in_place_only_when_all_was_made(self, path, monkeypatch):
        # As where the file system has no files without names.
        monkeypatch.setattr(os, "O_TMPFILE", 0)
        stream = prompt_cache.cached_dataset(options(path)).prompts(50)
        next(stream)
        assert len(files_of_prompts()) == 1
        stream.close()
        assert files_of_prompts() == []

    def test_concurrent_runs_get_the_same_prompts_and_one_entry(self, path):
        one, other = (prompt_cache.cached_dataset(options(path)).prompts(50) for _ in range(2))
        assert [*zip(one, other, strict=True)]
        assert len(prompt_cache.entries()) == 1
        assert [file.suffix for file in files_of_prompts()] == [".rows"]

    def test_unwritable_cache_is_ignored(self, path, tmp_path):
        (tmp_path / "cache").write_text("no folder")
        assert len(prompts(options(path))[0]) == 50

    def test_bad_source_is_refused_as_without_a_cache(self, path):
        path.write_text("{}\n")
        with pytest.raises(BadInput, match="row 1 has neither prompt nor messages"):
            prompts(options(path))
        with pytest.raises(BadInput, match="cannot be read"):
            prompts(options(path.with_name("nothing")))


class TestSize:
    def test_the_longest_unused_goes_first(self, path, monkeypatch):
        used = []
        for seed in range(4):
            prompts(options(path, seed=seed))
            (entry,) = [entry for entry in prompt_cache.entries() if entry.path not in used]
            os.utime(entry.path, (1000 + seed, 1000 + seed))
            used.append(entry.path)
        prompts(options(path, seed=0))  # used again
        monkeypatch.setenv("LOADGEN_CACHE_BYTES", str(3 * used[0].stat().st_size + 100))
        prompts(options(path, seed=9))
        kept_still = {entry.path for entry in prompt_cache.entries()}
        assert len(kept_still) == 3
        assert {*used} & kept_still == {used[0], used[3]}

    def test_entry_over_the_size_limit_is_not_kept(self, path, monkeypatch):
        monkeypatch.setenv("LOADGEN_CACHE_BYTES", "1000")
        stream = prompt_cache.cached_dataset(options(path)).prompts(50)
        assert files_of_prompts() == []
        for _ in range(30):  # the disk is not filled with what will not be kept
            next(stream)
        assert files_of_prompts() == []
        assert len([*stream]) == 20

    def test_size_limit_of_zero_keeps_no_entry(self, path, monkeypatch):
        monkeypatch.setenv("LOADGEN_CACHE_BYTES", "0")
        prompts(options(path))
        assert files_of_prompts() == []

    def test_a_limit_that_is_none_is_refused(self, path, monkeypatch):
        monkeypatch.setenv("LOADGEN_CACHE_BYTES", "4G")
        with pytest.raises(BadInput) as refused:
            prompts(options(path))
        remedy = "write digits only, or 0 to keep no prompts"
        assert str(refused.value) == f"LOADGEN_CACHE_BYTES: invalid number of bytes '4G'; {remedy}"

    def test_draft_has_no_name_until_it_is_complete(self, path):
        made = prompt_cache.cached_dataset(options(path)).prompts(50)
        next(made)
        assert files_of_prompts() == []
        assert len([*made]) == 49
        assert [entry.suffix for entry in files_of_prompts()] == [".rows"]

    def test_draft_without_nameless_files_has_a_name(self, path, monkeypatch):
        monkeypatch.setattr(os, "O_TMPFILE", 0)  # as where the file system has none
        made = prompt_cache.cached_dataset(options(path)).prompts(50)
        next(made)
        (draft,) = files_of_prompts()
        assert (draft.suffix, stat.S_IMODE(draft.stat().st_mode)) == (".draft", 0o600)
        assert len([*made]) == 49
        assert [entry.suffix for entry in files_of_prompts()] == [".rows"]

    def test_drafts_that_were_left_behind_go_after_a_day(self, path):
        prompts(options(path))
        old, new = (prompt_cache.folder() / f"{name}.draft" for name in ("old", "new"))
        for draft in (old, new):
            draft.write_text("")
        os.utime(old, (1000, 1000))
        prompts(options(path, seed=1))
        assert (old.exists(), new.exists()) == (False, True)


class TestManagement:
    def test_entries_say_what_they_are_the_last_used_first(self, path):
        assert prompt_cache.entries() == []
        for count in (50, 60):
            prompts(options(path), count)
        os.utime(
            next(entry.path for entry in prompt_cache.entries() if entry.prompts == 60),
            (1000, 1000),
        )
        found = prompt_cache.entries()
        assert [(entry.dataset, entry.prompts) for entry in found] == [("jsonl", 50), ("jsonl", 60)]
        assert [entry.bytes for entry in found] == [entry.path.stat().st_size for entry in found]
        assert found[1].used_s == 1000

    def test_a_file_that_is_no_entry_is_not_listed(self, path):
        prompts(options(path))
        (prompt_cache.folder() / "other.rows").write_text("nothing")
        assert len(prompt_cache.entries()) == 1

    def test_clear_removes_the_folder(self, path):
        prompt_cache.clear()
        prompts(options(path))
        prompt_cache.clear()
        assert not prompt_cache.folder().exists()

    def test_the_folder_is_where_xdg_says_or_in_the_home(self, tmp_path, monkeypatch):
        assert prompt_cache.folder() == tmp_path / "cache" / "loadgen" / "datasets"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", "/home/me")
        assert prompt_cache.folder() == Path("/home/me/.cache/loadgen/datasets")
