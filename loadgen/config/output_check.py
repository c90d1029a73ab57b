"""Output check: before a run begins, whether the files that its settings name can be written."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loadgen.config.output import FILES
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting

OWN_STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr")
STDOUT = "-"  # what other commands write there


def check_writable(settings: RunSettings) -> None:
    """Refuse files that could not be written at the end, before anything is sent. Creates
    --result-dir.

    Raises:
        BadInput: Naming the flag.
    """
    if settings.saves_result:
        folder = settings.result_dir or "."
        with _refuse_unwritable("result_dir", folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
            _write_probe(Path(folder))
    for name in FILES:
        if getattr(settings, name) == STDOUT:
            remedy = (
                f"write {setting.json} to have the result on stdout"
                if name == "result_filename"
                else "name a file"
            )
            raise BadInput(setting(name), f"{STDOUT} is not a file name", remedy)
    for name, path in _named_files(settings).items():
        if name != "result_filename" and (path in OWN_STREAMS or path.startswith("/dev/fd/")):
            raise BadInput(
                setting(name), f"{path} belongs to the process that measures", "name a file"
            )
        with _refuse_unwritable(name, path):
            if Path(path).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if name == "result_filename" and settings.append_result and Path(path).is_file():
                Path(path).open("ab").close()  # it is not replaced but extended
            elif (
                Path(path).is_file() or not Path(path).exists()
            ):  # a device or a pipe is written as it is
                _write_probe(Path(path).resolve().parent)
    _check_distinct(settings)


def files_to_overwrite(settings: RunSettings) -> list[str]:
    """List the named files that hold something now, and that a run with these settings
    overwrites.
    """
    named = _named_files(settings)
    if settings.append_result or not (settings.save_result or settings.save_detailed):
        named.pop("result_filename", None)
    return [path for path in named.values() if os.path.isfile(path) and os.path.getsize(path)]


@contextlib.contextmanager
def _refuse_unwritable(name: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(
            setting(name), f"{path} cannot be written ({error.strerror})", "name another"
        ) from error


def _write_probe(folder: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=folder):
        pass


def _named_files(settings: RunSettings) -> dict[str, str]:
    named = {name: getattr(settings, name) for name in FILES}
    if settings.result_filename:
        named["result_filename"] = os.path.join(settings.result_dir or "", settings.result_filename)
    return {name: path for name, path in named.items() if path}


def _check_distinct(settings: RunSettings) -> None:
    """Refuse to write two things into one file, or into one that the run reads."""
    read = {name: getattr(settings, name) for name in ("dataset_path", "tokenizer", "workload")}
    seen = {os.path.realpath(path): name for name, path in read.items() if path}
    for name, path in _named_files(settings).items():
        if not path.startswith("/dev/"):
            first = seen.setdefault(os.path.realpath(path), name)
            if first != name:
                raise BadInput(
                    setting(name), f"{path} is the file of {setting(first)} too", "name another"
                )
