"""Temporary files and shared memory that engines leave behind are removed by the launcher."""

import mmap
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.engines import EngineFailed, Launcher, Server
from loadgen.engines.launch import shutdown
from loadgen.engines.launch.processes import descendants
from tests.helpers.fake_engine import Fake, litter_of


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def littering() -> Server:
    return Launcher().start(Fake(), "m", raw=("--litter",))


@pytest.mark.integration
def test_litter_of_a_stopped_server_is_removed() -> None:
    server = littering()
    file, segment = litter_of(server)
    assert file.exists()
    assert segment.exists()
    server.stop()
    assert not file.exists()
    assert not segment.exists()
    assert not file.parent.exists()


@pytest.mark.integration
def test_litter_of_a_crashed_server_is_removed() -> None:
    server = littering()
    file, segment = litter_of(server)
    os.kill(server.pid, signal.SIGKILL)
    assert server.wait_ended(20)
    assert segment.exists()
    server.stop()
    assert not file.exists()
    assert not segment.exists()


@pytest.mark.integration
def test_each_server_has_a_folder_for_temporary_files_of_its_own() -> None:
    with littering() as one, littering() as other:
        assert litter_of(one)[0].parent != litter_of(other)[0].parent


@pytest.mark.integration
def test_failed_launch_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    with pytest.raises(EngineFailed):
        Launcher().start(Fake(command=("/nowhere/program",)), "m")
    assert list((tmp_path / "t").iterdir()) == []


@pytest.mark.integration
def test_compile_cache_of_pytorch_is_kept_between_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    folders = set()
    for _ in range(2):
        with Launcher().start(Fake(), "m") as server:
            variables = Path(f"/proc/{server.pid}/environ").read_text().split("\0")
            folders |= {
                variable
                for variable in variables
                if variable.startswith("TORCHINDUCTOR_CACHE_DIR=")
            }
    assert len(folders) == 1


@pytest.fixture
def segment() -> Iterator[Path]:
    path = shutdown.SHARED_MEMORY / f"loadgen-test-{os.getpid()}"
    path.write_bytes(bytes(4096))
    yield path
    path.unlink(missing_ok=True)


def test_a_segment_that_somebody_maps_stays(segment: Path) -> None:
    with segment.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        assert segment in shutdown.shared_memory_segments([os.getpid()])
        shutdown.remove_shared_memory([segment], since=0)
        assert segment.exists()
    shutdown.remove_shared_memory([segment], since=0)
    assert not segment.exists()


def test_a_segment_that_was_there_before_stays(segment: Path) -> None:
    shutdown.remove_shared_memory([segment], since=segment.stat().st_ctime + 1)
    assert segment.exists()


@pytest.mark.integration
def test_descendants_are_children_and_theirs() -> None:
    with Launcher().start(Fake(), "m") as server:
        assert server.pid in descendants(os.getpid())
        assert descendants(server.pid) == []
