"""Files that are replaced as a whole, private files, and the scratch folder of a run."""

import errno
import multiprocessing
import os
import stat
import tempfile
from pathlib import Path

import pytest

from loadgen.errors import BadInput
from loadgen.util import files
from loadgen.util.files import (
    atomic_file,
    create_private,
    is_locked,
    private_opener,
    write_atomic,
)


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with pytest.raises(BadInput, match=r"HOME: .* no home folder; set HOME or XDG_STATE_HOME"):
        files.state_folder()
    monkeypatch.setenv("XDG_STATE_HOME", "/var/tmp")
    assert files.state_folder() == Path("/var/tmp/loadgen")


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomic(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_pipe_is_written_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomic(pipe, "new")
        assert os.read(reader, 10) == b"new"
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_file_is_unchanged_until_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with atomic_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_write_that_ends_early_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def written():
        with atomic_file(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(type(error)):
        written()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_opener_decides_who_may_read_it(tmp_path):
    with atomic_file(tmp_path / "file", files.private_opener):
        pass
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_an_error_of_a_full_disk_names_the_file(tmp_path):
    path = tmp_path / "file"

    def written():
        with atomic_file(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left") as caught:
        written()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))


def test_an_error_of_another_file_names_that_one(tmp_path):
    def copied():
        with atomic_file(tmp_path / "file"):
            (tmp_path / "none").read_text()

    with pytest.raises(FileNotFoundError) as caught:
        copied()
    assert caught.value.filename == str(tmp_path / "none")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, text):
    with open(path, "w", opener=private_opener) as file:
        file.write(text)


def test_a_new_file_is_for_its_owner_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        write(tmp_path / "new", "mine")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o600


def test_existing_file_becomes_private(tmp_path):
    path = tmp_path / "old"
    path.write_text("what stood here before")
    path.chmod(0o644)
    write(path, "mine")
    assert (path.read_text(), mode(path)) == ("mine", 0o600)


def test_file_of_another_user_is_unchanged(tmp_path, monkeypatch):
    def refuse(descriptor, mode):
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "anothers"
    path.write_text("precious")
    monkeypatch.setattr(os, "fchmod", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(PermissionError):
        write(path, "mine")
    assert path.read_text() == "precious"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_device_keeps_its_mode(monkeypatch):
    monkeypatch.setattr(
        os, "fchmod", lambda descriptor, mode: pytest.fail("a device is everybody's")
    )
    write("/dev/null", "nothing")


def test_a_file_that_another_run_writes_is_refused_and_keeps_what_it_has(tmp_path):
    path = tmp_path / "records.jsonl"
    with create_private("--records", path) as first:
        first.write(b"one\n")
        first.flush()
        with pytest.raises(
            BadInput, match=r"--records: .* another run is writing this file; name another file"
        ):
            create_private("--records", path)
        assert is_locked(path)
    assert not is_locked(path)
    assert not is_locked(tmp_path / "none")
    assert path.read_bytes() == b"one\n"
    with create_private("--records", path):
        assert path.read_bytes() == b""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def aged(path: Path) -> Path:
    os.utime(path, (0, 0))
    return path


def left_behind(temporary: Path) -> Path:
    path = temporary / f"{files.SCRATCH_PREFIX}left"
    path.mkdir()
    (path / "bodies").write_bytes(b"prompts")
    return aged(path)


def test_scratch_folder_is_private_and_removed_at_the_end(temporary: Path) -> None:
    with files.scratch_folder() as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        (path / "bodies").write_bytes(b"prompts")
    assert not list(temporary.iterdir())


def test_scratch_folder_is_removed_after_an_error(temporary: Path) -> None:
    with pytest.raises(KeyError), files.scratch_folder():
        raise KeyError
    assert not list(temporary.iterdir())


def test_folder_of_a_killed_program_is_removed_by_the_next(temporary: Path) -> None:
    left = left_behind(temporary)
    with files.scratch_folder():
        assert not left.exists()


def test_fresh_folder_of_another_program_is_kept(temporary: Path) -> None:
    left = left_behind(temporary)
    os.utime(left)
    with files.scratch_folder():
        assert left.exists()


@pytest.mark.integration
def test_folder_in_use_by_another_program_is_kept(temporary: Path) -> None:
    used, done = multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(target=_use, args=(used,))
    other.start()
    try:
        path = Path(done.recv())
        aged(path)
        with files.scratch_folder():
            assert path.exists()
    finally:
        done.send("enough")
        other.join(60)
    assert not path.exists()


def _use(told: "multiprocessing.connection.Connection") -> None:
    with files.scratch_folder() as path:
        told.send(str(path))
        told.recv()


def test_file_and_link_are_left_alone(temporary: Path) -> None:
    file = temporary / f"{files.SCRATCH_PREFIX}file"
    file.write_text("somebody else's")
    target = temporary / "target"
    target.mkdir()
    link = temporary / f"{files.SCRATCH_PREFIX}link"
    link.symlink_to(target)
    aged(file), aged(target)
    with files.scratch_folder():
        assert file.exists()
        assert target.exists()
