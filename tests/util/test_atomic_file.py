"""A file is written completely or stays unchanged."""

import errno
import os
import stat

import pytest

from loadgen.util import private_files
from loadgen.util.atomic_file import atomic_file, write_atomic


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
    with atomic_file(tmp_path / "file", private_files.opener):
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
