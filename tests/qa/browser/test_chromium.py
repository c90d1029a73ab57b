"""Chromium is fetched once, whole or not at all, without root."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.engines.environments import MADE, CannotBeMade
from tests.qa.browser.chromium import REMEDY, chromium


@pytest.fixture(autouse=True)
def _none_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)


class Steps:
    """Write the files that the commands would write, and fail at a given step."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at, self.commands = fails_at, list[Sequence[str]]()

    def __call__(self, command: Sequence[str]) -> None:
        self.commands.append(command)
        if len(self.commands) == self.fails_at:
            raise CannotBeMade("no network")
        if "--download-only" in command:
            (cache,) = (
                word.partition("=")[2] for word in command if word.startswith("Dir::Cache=")
            )
            (Path(cache) / "archives" / "chromium.deb").touch()
        if command[0] == "dpkg-deb":
            program = Path(command[-1]) / "usr/lib/chromium/headless_shell"
            program.parent.mkdir(parents=True)
            program.touch()


def test_packages_are_unpacked_and_not_installed(tmp_path: Path) -> None:
    steps = Steps()
    program = chromium(tmp_path / "c", steps)
    assert program.path == str(tmp_path / "c/root/usr/lib/chromium/headless_shell")
    update, download, unpack = steps.commands
    assert "update" in update
    assert {"--download-only", "chromium-headless-shell"} <= {*download}
    assert all(f"Dir::State={tmp_path}/c/state" in command for command in (update, download))
    assert unpack[:2] == ["dpkg-deb", "-x"]
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [MADE, "root"]


def test_chromium_is_fetched_once(tmp_path: Path) -> None:
    assert chromium(tmp_path / "c", Steps()) == chromium(tmp_path / "c", Steps(fails_at=1))


@pytest.mark.parametrize("step", [1, 2, 3])
def test_failed_fetch_names_the_remedy_and_starts_over(tmp_path: Path, step: int) -> None:
    with pytest.raises(CannotBeMade, match=f"{REMEDY}: no network"):
        chromium(tmp_path / "c", Steps(fails_at=step))
    again = Steps()
    chromium(tmp_path / "c", again)
    assert len(again.commands) == 3


def test_installed_chromium_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        shutil, "which", lambda name: f"/usr/bin/{name}" if name == "chromium" else None
    )
    assert chromium(tmp_path / "c", Steps(fails_at=1)).path == "/usr/bin/chromium"
