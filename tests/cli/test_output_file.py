"""A file that a command writes at its end: a wrong name is bad input, a full disk is not."""

import errno
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from loadgen.cli.output_file import writing
from loadgen.errors import BadInput, NotWritten
from tests.helpers.compared_runs import saved


def fails(number: int) -> None:
    with writing("--markdown", "x.md"):
        raise OSError(number, "why", "x.md")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EROFS])
def test_a_name_that_cannot_be_written_is_bad_input(number: int) -> None:
    with pytest.raises(BadInput, match=r"--markdown: x.md cannot be written \(why\); choose another path"):
        fails(number)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG])
def test_a_disk_that_fails_is_none(number: int) -> None:
    with pytest.raises(NotWritten, match=r"--markdown: x.md cannot be written \(why\)"):
        fails(number)


@pytest.mark.parametrize("flag", ["--markdown", "--junit"])
def test_a_full_disk_has_the_code_of_errors_of_the_machine(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = saved(tmp_path / "a.json"), saved(tmp_path / "b.json")
    for command in (["report", one], ["compare", one, other, "--fail-if", "ttft_p99>+5%"]):
        assert dispatch([*command, flag, "/dev/full"]) == 1
        assert f"{flag}: /dev/full cannot be written (No space left on device)" in capsys.readouterr().err
        assert dispatch([*command, flag, str(tmp_path / "nowhere" / "x")]) == 2
