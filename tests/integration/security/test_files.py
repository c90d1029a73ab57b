"""Files are written completely, for their owner, and never through another user's link."""

import os
import secrets
import stat
from pathlib import Path

import pytest

from loadgen.util.files import write_atomic


def test_a_link_where_the_new_file_is_made_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, path = tmp_path / "victim", tmp_path / "result.json"
    victim.write_text("precious")
    monkeypatch.setattr(secrets, "token_hex", lambda size: "guessed")
    (tmp_path / ".result.json.guessed").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomic(path, "mine")
    assert victim.read_text() == "precious"
    assert not path.exists()


def test_the_name_of_the_new_file_cannot_be_foreseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    monkeypatch.setattr(Path, "replace", lambda self, target: names.append(self.name))
    for _ in range(2):
        write_atomic(tmp_path / "result.json", "{}")
    assert len(set(names)) == 2
    assert not any(str(os.getpid()) == name.rpartition(".")[2] for name in names)


def test_result_is_writable_only_by_its_owner(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomic(tmp_path / "result.json", "{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "result.json").stat().st_mode) == 0o644
