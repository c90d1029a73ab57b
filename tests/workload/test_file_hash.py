"""The hash of a file is always current; that of a large unchanged file is cached."""

import os
import time

import pytest

from loadgen.workload.files import cache


@pytest.fixture(autouse=True)
def _small_is_big(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "BIG_BYTES", 10)


def settled(path, text):
    path.write_text(text)
    os.utime(path, (time.time() - 100,) * 2)
    return path


@pytest.fixture(autouse=True)
def _later(monkeypatch):
    """A clock that is ahead, so that a file has lain untouched."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 60_000_000_000)


@pytest.fixture
def hashed(monkeypatch):
    """How often a file is read."""
    read = []
    original = cache.hashlib.file_digest
    monkeypatch.setattr(
        cache.hashlib, "file_digest", lambda *given: read.append(1) or original(*given)
    )
    return read


def test_a_big_file_is_read_once(tmp_path, hashed):
    path = settled(tmp_path / "big", "x" * 100)
    assert cache.file_sha256(path) == cache.file_sha256(path)
    assert len(hashed) == 1


def test_changed_file_with_same_times_is_hashed_again(tmp_path, hashed):
    path = settled(tmp_path / "big", "x" * 100)
    before = cache.file_sha256(path)
    modified = path.stat()
    path.write_text("y" * 100)
    # As a copy that keeps times would.
    os.utime(path, ns=(modified.st_atime_ns, modified.st_mtime_ns))
    assert cache.file_sha256(path) != before
    assert len(hashed) == 2


def test_hash_of_a_file_changed_a_moment_ago_is_not_cached(tmp_path, hashed, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "BIG_BYTES", 10)
    path = tmp_path / "big"
    path.write_text("x" * 100)
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 1_000_000_000)
    cache.file_sha256(path)
    assert not cache.folder().exists()


def test_a_small_one_is_always_read(tmp_path, hashed):
    path = settled(tmp_path / "small", "x")
    assert cache.file_sha256(path) == cache.file_sha256(path)
    assert len(hashed) == 2


@pytest.mark.parametrize("text", ["", "zz", "ab", "0" * 63])
def test_a_hash_that_is_none_is_not_believed(tmp_path, text):
    path = settled(tmp_path / "big", "x" * 100)
    expected = cache.file_sha256(path)
    (memory,) = cache.folder().iterdir()
    memory.write_text(text)
    assert cache.file_sha256(path) == expected


def test_cache_keeps_one_hash_per_file(tmp_path):
    for text in ("x" * 100, "y" * 100):
        cache.file_sha256(settled(tmp_path / "big", text))
    assert len([*cache.folder().iterdir()]) == 1


def test_least_recently_used_hashes_are_evicted(tmp_path):
    memories = []
    for number in range(3):
        cache.file_sha256(settled(tmp_path / f"big {number}", "x" * 100))
        (memory,) = {*cache.folder().iterdir()} - {*memories}
        os.utime(memory, (1000 + number, 1000 + number))
        memories.append(memory)
    cache.file_sha256(tmp_path / "big 0")  # used again
    cache.make_room(2 * max(memory.stat().st_size for memory in memories))
    assert {*cache.folder().iterdir()} == {memories[0], memories[2]}
