"""Private files can be read only by their owner, whatever their earlier mode."""

import os
import stat

import pytest

from loadgen.errors import BadInput
from loadgen.util.private_files import create, opener


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, text):
    with open(path, "w", opener=opener) as file:
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
    monkeypatch.setattr(os, "fchmod", lambda descriptor, mode: pytest.fail("a device is everybody's"))
    write("/dev/null", "nothing")


def test_a_file_that_another_run_writes_is_refused_and_keeps_what_it_has(tmp_path):
    path = tmp_path / "records.jsonl"
    with create("--records", path) as first:
        first.write(b"one\n")
        first.flush()
        with pytest.raises(BadInput, match=r"--records: .* another run is writing this file; name another file"):
            create("--records", path)
    assert path.read_bytes() == b"one\n"
    with create("--records", path):
        assert path.read_bytes() == b""
