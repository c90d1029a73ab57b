"""Files of a result: saved so that an interrupted write never leaves half a file, and read again."""

import contextlib
import errno
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadgen.config.option import flag
from loadgen.config.output import FILES
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.metrics.snapshot import Snapshot
from loadgen.report import pytorch_format
from loadgen.report.hdr_log import write_hlog
from loadgen.report.result import SCHEMA, RunResult
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.result.series import Series
from loadgen.report.series import is_series
from loadgen.util import private_files
from loadgen.util.atomic_file import write_atomic

NOT_ASCII = re.compile("[^ -~]")
NOT_IN_NAMES = re.compile(r"[^\w.+=@-]")
OWN_STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr")
STDOUT = "-"  # what other commands write there


@dataclass(frozen=True)
class Saved:
    """What became of the files of a run.

    Attributes:
        paths: Those that are whole.
        lost: What could not be, a line each, with the flag that had asked for it.
    """

    paths: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def add(self, name: str, path: str | Path, write: Callable[[], None]) -> None:
        """Write a file: that one cannot be written is no reason to lose the next.

        Args:
            name: The name of the setting that asks for it.
            path: The path of the file.
            write: Writes it.
        """
        try:
            write()
        except OSError as error:
            self.lost.append(f"{flag(name)} {path} could not be saved: {error.strerror or error}")
        else:
            self.paths.append(str(path))


def save(settings: RunSettings, result: RunResult, snapshot: Snapshot) -> Saved:
    """Write the files that the settings ask for; records and captures have been written while the run went on.

    Args:
        settings: As asked.
        result: The result.
        snapshot: The numbers it was made from.
    """
    saved, data, wall_s = Saved(), result.data, result.numbers.duration
    if settings.save_result or settings.append_result or settings.save_detailed:
        path, name = result_path(settings, result.numbers), "append_result" if settings.append_result else "save_result"
        put = _append if settings.append_result else write_atomic
        opener = opener_of(settings)
        saved.add(name, path, lambda: put(path, to_json(data) + "\n", opener))
        if pytorch_format.wanted():
            beside, records = pytorch_format.path_beside(path), pytorch_format.records(settings, data)
            saved.add(name, beside, lambda: write_atomic(beside, orjson.dumps(records).decode() + "\n"))
    if hlog := settings.hlog:
        histograms = {name: h for name, h in snapshot.histograms.items() if h.count}
        saved.add("hlog", hlog, lambda: write_hlog(hlog, histograms, start_s=time.time() - wall_s, length_s=wall_s))
    client = result.client
    errors = {"records": client.records_error, "capture": client.capture and client.capture.error}
    for name, error in errors.items():
        if written := getattr(settings, name):
            if error:
                saved.lost.append(f"{flag(name)} {written} is not complete: {error}")
            else:
                saved.paths.append(written)
    if summary := settings.markdown:
        saved.add("markdown", summary, lambda: save_markdown(summary, result))
    if junit := settings.junit:
        saved.add("junit", junit, lambda: save_junit(junit, [result]))
    if page := settings.html:  # the last: of all that is written, the others can make it again
        saved.add("html", page, lambda: save_page(page, [result]))
    return saved


def save_page(path: str, results: Sequence[RunResult | Series]) -> None:
    """Write the page of results, or of series; the same whether they come from a run or from a file.

    Raises:
        OSError: It cannot be written.
    """
    from loadgen.report import run_page as page

    write_atomic(Path(path), page.html([typed(orjson.loads(to_json(one.to_dict()))) for one in results]))


def save_markdown(path: str, result: RunResult | Series) -> None:
    """Write the summary of a result, or of a series, as Markdown that GitHub renders.

    Raises:
        OSError: It cannot be written.
    """
    from loadgen.report import ci_summary

    write_atomic(Path(path), ci_summary.markdown(result))


def save_junit(path: str, results: Sequence[RunResult]) -> None:
    """Write the gate of each result as a suite of a JUnit file.

    Raises:
        OSError: It cannot be written.
    """
    from loadgen.report import ci_summary, junit

    write_atomic(Path(path), junit.xml([ci_summary.suite(result) for result in results]))


def opener_of(settings: RunSettings) -> Callable[[str, int], int] | None:
    """What opens the files of a result: where answers stand in them, they are for their owner alone."""
    return private_files.opener if settings.save_detailed else None


def _append(path: Path, line: str, opener: Callable[[str, int], int] | None) -> None:
    """Add a line, or leave the file as it was; an unfinished line is ended first."""
    with open(
        path, "ab+", buffering=0, opener=opener
    ) as file:  # a buffer would be written once more as the file is closed
        size = file.tell()
        if size:
            file.seek(-1, os.SEEK_END)
            line = line if file.read() == b"\n" else "\n" + line
        rest = line.encode()
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            with contextlib.suppress(OSError):  # a device cannot be cut
                file.truncate(size)
            raise


def load(path: str) -> list[dict[str, Any]]:
    """Read a saved result, or the several that --append-result has put into one file.

    Raises:
        BadInput: It cannot be read, or is no result of loadgen.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(
            "FILE", f"{path}: {error.strerror}", "name a result that `loadgen run --save-result` wrote"
        ) from error
    results = _objects(path, text)
    for where, result in results:
        try:
            known = is_series(result) or result["loadgen"]["schema"] == SCHEMA
        except (KeyError, TypeError):
            known = False
        if not known:
            raise BadInput(
                "FILE",
                f"{where} is not a loadgen result, or not a whole one",
                "name a result that `loadgen run --save-result` wrote, or a file of records",
            )
    return [result for _, result in results]


def typed(data: dict[str, Any]) -> RunResult | Series:
    """Type what `load` returns.

    Raises:
        KeyError, TypeError, ValueError: It is not whole.
    """
    return Series.from_dict(data) if is_series(data) else RunResult.from_dict(data)


def _objects(path: str, text: bytes) -> list[tuple[str, Any]]:
    """Where one JSON object stands, however it is laid out, or one in each line, and it; None for what is no JSON."""
    whole = _json(text)
    if whole is not None:
        return [(path, whole)]
    lines = [(f"{path}: line {number}", _json(line)) for number, line in enumerate(text.splitlines(), 1) if line]
    return lines if len(lines) > 1 else [(path, None)]


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def to_json(data: dict[str, Any]) -> str:
    """The result as one line of JSON, with escapes for what a terminal might obey."""
    return NOT_ASCII.sub(_escaped, orjson.dumps(data).decode())


def _escaped(match: re.Match[str]) -> str:
    c = match.group()
    return c if c.isprintable() else "".join(f"\\u{unit:04x}" for unit in memoryview(c.encode("utf-16-le")).cast("H"))


def result_path(settings: RunSettings, numbers: RunNumbers) -> Path:
    """Where the result goes: as asked, else named as `vllm bench serve` names it."""
    if settings.ramp_up_strategy is None:
        rate = f"{float(settings.request_rate)}qps"
    else:
        start, end = settings.ramp_up_start_rps, settings.ramp_up_end_rps
        rate = f"ramp-up-{settings.ramp_up_strategy}-{start}qps-{end}qps"
    cap = f"-concurrency{settings.max_concurrency}" if settings.max_concurrency is not None else ""
    model = NOT_IN_NAMES.sub("_", numbers.model_id.split("/")[-1])  # the server may have named it
    label = NOT_IN_NAMES.sub("_", settings.label or numbers.backend)
    name = settings.result_filename or f"{label}-{rate}{cap}-{model}-{numbers.date}.json"
    return Path(settings.result_dir or ".") / name


def series_path(settings: RunSettings, series: Series) -> Path | None:
    """Where several runs together go: as asked, else named beside their own files; None where no result is saved.

    With --append-result, the file that is named holds the runs.
    """
    if not (settings.save_result or settings.append_result or settings.save_detailed):
        return None
    folder = Path(settings.result_dir or ".")
    if settings.result_filename and not settings.append_result:
        return folder / settings.result_filename
    first = series.points[0].result.numbers
    model = NOT_IN_NAMES.sub("_", first.model_id.split("/")[-1])
    label = NOT_IN_NAMES.sub("_", settings.label or first.backend)
    return folder / f"{label}-{series.kind}-{series.over}-{model}-{first.date}.json"


def check_writable(settings: RunSettings) -> None:
    """Refuse, before anything is sent, files that could not be written at the end; makes --result-dir.

    Raises:
        BadInput: Naming the flag.
    """
    if settings.result_dir or settings.save_result or settings.append_result or settings.save_detailed:
        folder = settings.result_dir or "."
        with _refusing("result_dir", folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
            _try(Path(folder))
    for name in FILES:
        if getattr(settings, name) == STDOUT:
            remedy = "write --json to have the result on stdout" if name == "result_filename" else "name a file"
            raise BadInput(flag(name), f"{STDOUT} is no name of a file", remedy)
    for name, path in _named(settings).items():
        if name != "result_filename" and (path in OWN_STREAMS or path.startswith("/dev/fd/")):
            raise BadInput(flag(name), f"{path} belongs to the process that measures", "name a file")
        with _refusing(name, path):
            if Path(path).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if name == "result_filename" and settings.append_result and Path(path).is_file():
                Path(path).open("ab").close()  # it is not replaced but extended
            elif Path(path).is_file() or not Path(path).exists():  # a device or a pipe is written as it is
                _try(Path(path).resolve().parent)
    _check_apart(settings)


def overwritten(settings: RunSettings) -> list[str]:
    """The named files that hold something now, and that a run with these settings writes anew."""
    named = _named(settings)
    if settings.append_result or not (settings.save_result or settings.save_detailed):
        named.pop("result_filename", None)
    return [path for path in named.values() if os.path.isfile(path) and os.path.getsize(path)]


@contextlib.contextmanager
def _refusing(name: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(flag(name), f"{path} cannot be written ({error.strerror})", "name another") from error


def _try(folder: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=folder):
        pass


def _named(settings: RunSettings) -> dict[str, str]:
    """The files that are named, each by its setting."""
    named = {name: getattr(settings, name) for name in FILES}
    if settings.result_filename:
        named["result_filename"] = os.path.join(settings.result_dir or "", settings.result_filename)
    return {name: path for name, path in named.items() if path}


def _check_apart(settings: RunSettings) -> None:
    """Refuse to write two things into one file, or into one that the run reads."""
    read = {name: getattr(settings, name) for name in ("dataset_path", "tokenizer", "workload")}
    seen = {os.path.realpath(path): name for name, path in read.items() if path}
    for name, path in _named(settings).items():
        if not path.startswith("/dev/"):
            first = seen.setdefault(os.path.realpath(path), name)
            if first != name:
                raise BadInput(flag(name), f"{path} is the file of {flag(first)} too", "name another")
