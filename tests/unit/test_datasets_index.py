"""The index of a big file is kept between runs, and used for exactly the file that it was made of."""

import json
import os
import stat
from pathlib import Path

import pytest

from loadgen.datasets import index, kept
from loadgen.datasets.conversations import Conversations
from loadgen.datasets.structure import Structure

LONG_AGO_NS = 1_000_000_000_000_000_000


def entries(*names: str) -> bytes:
    turns = [{"from": "human", "value": "a question"}, {"from": "gpt", "value": "an answer"}]
    return json.dumps([{"id": name, "conversations": turns} for name in names]).encode()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which indexes are kept; every file is big enough, and settled at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "WORTH_KEEPING", 0)
    monkeypatch.setattr(kept, "SETTLED_NS", 0)
    return tmp_path / "cache" / "loadgen" / "datasets"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "sharegpt.json"
    file.write_bytes(entries("a", "b"))
    return file


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a file has been looked through, as the length of a list."""
    made: list[int] = []
    of = Structure.of
    monkeypatch.setattr(Structure, "of", lambda data: made.append(len(data)) or of(data))
    return made


def names(path: Path) -> list[str]:
    conversations = Conversations(path)
    return [found.source for at in range(len(conversations)) if (found := conversations[at])]


def test_a_file_is_looked_through_once(cache: Path, path: Path, looks: list[int]) -> None:
    assert [names(path), names(path), len(looks)] == [["a", "b"], ["a", "b"], 1]


def test_that_it_was_cut_off_is_told_again(
    cache: Path, path: Path, looks: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(entries("a", "b")[:-1])
    for _ in range(2):
        assert Conversations(path).cut_off
    assert caplog.messages == [f"{path}: the file is cut off; its 2 whole conversations are used"] * 2
    assert len(looks) == 1


def test_a_file_that_has_changed_is_looked_through_again(cache: Path, path: Path, looks: list[int]) -> None:
    names(path)
    path.write_bytes(entries("c", "d"))
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert names(path) == ["c", "d"]
    assert len(looks) == 2


def test_another_file_in_its_place_is_looked_through(cache: Path, path: Path, looks: list[int]) -> None:
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    names(path)
    other = path.with_name("other.json")
    other.write_bytes(entries("c", "d"))
    os.utime(other, ns=(LONG_AGO_NS, LONG_AGO_NS))
    other.replace(path)
    assert names(path) == ["c", "d"]


def test_one_that_was_changed_just_now_is_not_kept(
    cache: Path, path: Path, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "SETTLED_NS", 3600_000_000_000)
    names(path)
    names(path)
    assert len(looks) == 2


def test_a_small_one_is_not_kept(cache: Path, path: Path, looks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "WORTH_KEEPING", path.stat().st_size + 1)
    names(path)
    assert not cache.exists()


@pytest.mark.parametrize("damaged", [b"", b"no index", b"PK\x03\x04"])
def test_a_damaged_index_is_made_again(cache: Path, path: Path, looks: list[int], damaged: bytes) -> None:
    names(path)
    (entry,) = cache.iterdir()
    entry.write_bytes(damaged)
    assert [names(path), names(path), len(looks)] == [["a", "b"], ["a", "b"], 2]


def test_one_of_another_format_is_made_again(
    cache: Path, path: Path, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    names(path)
    monkeypatch.setattr(index, "FORMAT", index.FORMAT + 1)
    names(path)
    assert len(looks) == 2


def test_where_nothing_can_be_kept_the_file_is_used_all_the_same(cache: Path, path: Path) -> None:
    cache.parents[1].write_text("no folder")
    assert names(path) == ["a", "b"]


def test_it_is_for_its_owner_alone_and_one_for_each_path(cache: Path, path: Path) -> None:
    for content in (entries("a"), entries("a", "b")):
        path.write_bytes(content)
        names(path)
    (entry,) = cache.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
