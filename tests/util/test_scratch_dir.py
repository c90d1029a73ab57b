"""The scratch folder of a run is removed at its end, or by the next run if it was killed."""

import multiprocessing
import os
import stat
import tempfile
from pathlib import Path

import pytest

from loadgen.util import scratch_dir


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def aged(path: Path) -> Path:
    os.utime(path, (0, 0))
    return path


def left_behind(temporary: Path) -> Path:
    path = temporary / f"{scratch_dir.PREFIX}left"
    path.mkdir()
    (path / "bodies").write_bytes(b"prompts")
    return aged(path)


def test_scratch_folder_is_private_and_removed_at_the_end(temporary: Path) -> None:
    with scratch_dir.scratch_folder() as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        (path / "bodies").write_bytes(b"prompts")
    assert not list(temporary.iterdir())


def test_scratch_folder_is_removed_after_an_error(temporary: Path) -> None:
    with pytest.raises(KeyError), scratch_dir.scratch_folder():
        raise KeyError
    assert not list(temporary.iterdir())


def test_folder_of_a_killed_program_is_removed_by_the_next(temporary: Path) -> None:
    left = left_behind(temporary)
    with scratch_dir.scratch_folder():
        assert not left.exists()


def test_fresh_folder_of_another_program_is_kept(temporary: Path) -> None:
    left = left_behind(temporary)
    os.utime(left)
    with scratch_dir.scratch_folder():
        assert left.exists()


@pytest.mark.integration
def test_folder_in_use_by_another_program_is_kept(temporary: Path) -> None:
    used, done = multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(target=_use, args=(used,))
    other.start()
    try:
        path = Path(done.recv())
        aged(path)
        with scratch_dir.scratch_folder():
            assert path.exists()
    finally:
        done.send("enough")
        other.join(60)
    assert not path.exists()


def _use(told: "multiprocessing.connection.Connection") -> None:
    with scratch_dir.scratch_folder() as path:
        told.send(str(path))
        told.recv()


def test_file_and_link_are_left_alone(temporary: Path) -> None:
    file = temporary / f"{scratch_dir.PREFIX}file"
    file.write_text("somebody else's")
    target = temporary / "target"
    target.mkdir()
    link = temporary / f"{scratch_dir.PREFIX}link"
    link.symlink_to(target)
    aged(file), aged(target)
    with scratch_dir.scratch_folder():
        assert file.exists()
        assert target.exists()
