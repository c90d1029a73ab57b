"""Files of a run: their names, and how they are written, so that an interrupted write never leaves
half a file; how results are read again; logs of HdrHistogram, and PyTorch's benchmark format.

A file has the name that was asked for, else one as `vllm bench serve` gives it. Pages, summaries
and gates are imported only where they are written: most runs have none, and `loadgen run` imports
this module while the run goes on.
"""

import contextlib
import io
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from loadgen.config.settings import RunSettings, public
from loadgen.core.histogram import Histogram
from loadgen.errors import BadInput, NotWritten, setting
from loadgen.metrics.snapshot import Snapshot
from loadgen.report.result import SCHEMA, RunResult
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.result.series import Series
from loadgen.report.series import is_series
from loadgen.util import files
from loadgen.util.files import write_atomic

NOT_ASCII = re.compile("[^ -~]")
NOT_IN_NAMES = re.compile(r"[^\w.+=@-]")
MAX_PROFILE = 40  # characters of a profile
MAX_BYTES = 80  # of the label and of the model: most file systems allow 255 in all
NS_PER_MS = 1e6
SEPARATORS = frozenset(", \t\r\n")
TIMES = ("ttft", "tpot", "itl")
PYTORCH_VARIABLE = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT"
PYTORCH_METRICS = [
    *(f"{of}_{metric}_ms" for metric, of in product(TIMES, ("median", "mean", "std"))),
    *(f"p99_{metric}_ms" for metric in TIMES),
]
# What vLLM's records leave out as too big, and what vLLM does not know.
LEFT_OUT = {"ttfts", "itls", "generated_texts", "errors", "server_queue_times", "server_ttfts"} | {
    "loadgen"
}


class SavedFiles(Struct, frozen=True):
    """The files of a run that were written, and those that could not be.

    Attributes:
        paths: The files that are complete.
        errors: A message for each of the others, with the flag that asked for it.
    """

    paths: list[str] = []
    errors: list[str] = []

    def add(self, name: str, path: str | Path, write: Callable[[], None]) -> None:
        """Write a file; if it cannot be written, keep the message, and go on.

        Args:
            name: The name of the setting that asks for it.
            path: The path of the file.
            write: Writes it.
        """
        try:
            write()
        except OSError as error:
            text = f"{setting(name)} {path} could not be saved: {error.strerror or error}"
            self.errors.append(str(NotWritten(text)))
        else:
            self.paths.append(str(path))


def save(settings: RunSettings, result: RunResult, snapshot: Snapshot) -> SavedFiles:
    """Write the files that the settings ask for; records and captures have been written before.

    Args:
        settings: As asked.
        result: The result.
        snapshot: The numbers it was made from.
    """
    saved = SavedFiles()
    wall_s = result.numbers.duration
    if settings.saves_result:
        _save_result(saved, settings, result)
    if hlog := settings.hlog:
        histograms = {name: h for name, h in snapshot.histograms.items() if h.count}
        saved.add(
            "hlog",
            hlog,
            lambda: write_hlog(hlog, histograms, start_s=time.time() - wall_s, length_s=wall_s),
        )
    # Records and capture are complete or not.
    client = result.client
    errors = {"records": client.records_error, "capture": client.capture and client.capture.error}
    for name, error in errors.items():
        if path := getattr(settings, name):
            if error:
                text = f"{setting(name)} {path} is not complete: {error}"
                saved.errors.append(str(NotWritten(text)))
            else:
                saved.paths.append(path)
    if summary := settings.markdown:
        saved.add("markdown", summary, lambda: save_markdown(summary, result))
    if junit := settings.junit:
        saved.add("junit", junit, lambda: save_junit(junit, [result]))
    if page := settings.html:  # last: it can be made again from the other files
        saved.add("html", page, lambda: save_page(page, [result]))
    return saved


def save_page(path: str, results: Sequence[RunResult | Series]) -> None:
    """Write the page of results, or of series, from a run or from a file alike.

    Raises:
        OSError: It cannot be written.
    """
    from loadgen.report import run_page

    read_again = [from_dict(orjson.loads(to_json(result.to_dict()))) for result in results]
    write_atomic(Path(path), run_page.html(read_again))


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
    from loadgen.report import ci_summary, gate

    write_atomic(Path(path), gate.junit_xml([ci_summary.suite(result) for result in results]))


def opener_for(settings: RunSettings) -> Callable[[str, int], int] | None:
    """Return the opener of a result's files: only their owner may read answers of the server."""
    return files.private_opener if settings.save_detailed else None


def result_path(settings: RunSettings, numbers: RunNumbers) -> Path:
    """Return the path of a result: as asked, else named as `vllm bench serve` names it."""
    if settings.rate_profile is not None:
        rate = f"profile-{_in_name(settings.rate_profile)[:MAX_PROFILE]}"
    elif settings.ramp_up_strategy is None:
        rate = f"{float(settings.request_rate)}qps"
    else:
        start = settings.ramp_up_start_rps
        end = settings.ramp_up_end_rps
        rate = f"ramp-up-{settings.ramp_up_strategy}-{start}qps-{end}qps"
    cap = f"-concurrency{settings.max_concurrency}" if settings.max_concurrency is not None else ""
    if settings.concurrency_profile is not None:
        cap = f"-concurrency-{_in_name(settings.concurrency_profile)[:MAX_PROFILE]}"
    model = _in_name(numbers.model_id.split("/")[-1])  # the server may have named it
    label = _in_name(settings.label or numbers.backend)
    name = settings.result_filename or f"{label}-{rate}{cap}-{model}-{numbers.date}.json"
    return Path(settings.result_dir or ".") / name


def series_path(settings: RunSettings, series: Series) -> Path | None:
    """Return the path of a series: as asked, else named beside the files of its runs; None where no
    result is saved.

    With --append-result, the file that is named holds the runs.
    """
    if not settings.saves_result:
        return None
    folder = Path(settings.result_dir or ".")
    if settings.result_filename and not settings.append_result:
        return folder / settings.result_filename
    first = series.points[0].result.numbers
    model = _in_name(first.model_id.split("/")[-1])
    label = _in_name(settings.label or first.backend)
    return folder / f"{label}-{series.kind}-{series.over}-{model}-{first.date}.json"


def _save_result(saved: SavedFiles, settings: RunSettings, result: RunResult) -> None:
    """Write the JSON of a result, and beside it PyTorch's format if the environment asks for it."""
    data = result.data
    path = result_path(settings, result.numbers)
    if not settings.result_filename and not settings.append_result:
        free = path
        number = 1
        while free.exists():  # the names of two runs that begin in one second are the same
            number += 1
            free = path.with_name(f"{path.stem}-{number}{path.suffix}")
        path = free
    name, write = (
        ("append_result", _append) if settings.append_result else ("save_result", write_atomic)
    )
    saved.add(name, path, lambda: write(path, to_json(data) + "\n", opener_for(settings)))
    if os.environ.get(PYTORCH_VARIABLE):
        beside = path.with_suffix(".pytorch.json")
        records = pytorch_records(settings, data)
        saved.add(name, beside, lambda: write_atomic(beside, orjson.dumps(records).decode() + "\n"))


def _append(path: Path, line: str, opener: Callable[[str, int], int] | None) -> None:
    """Add a line, or leave the file as it was; an unfinished line is ended first."""
    # Unbuffered: a buffer would be written once more as the file is closed.
    with open(path, "ab+", buffering=0, opener=opener) as file:
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


def _in_name(text: str) -> str:
    return NOT_IN_NAMES.sub("_", text).encode()[:MAX_BYTES].decode(errors="ignore")


def load(path: str) -> list[dict[str, Any]]:
    """Read a saved result, or the several that --append-result has put into one file.

    Raises:
        BadInput: It cannot be read, or is no result of loadgen.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(
            (),
            f"{path}: {error.strerror}",
            "name a result that `loadgen run --save-result` wrote",
        ) from error
    whole = _json(text)
    results = [(path, whole)]
    if whole is None:  # not one object: one in each line
        lines = [
            (f"{path}: line {number}", _json(line))
            for number, line in enumerate(text.splitlines(), 1)
            if line
        ]
        results = lines if len(lines) > 1 else results
    for where, result in results:
        try:
            version = SCHEMA if is_series(result) else result["loadgen"]["schema"]
        except (KeyError, TypeError):
            version = None
        if isinstance(version, int) and version != SCHEMA:
            problem = f"{where} is a result of schema {version}, and this loadgen reads {SCHEMA}"
            raise BadInput((), problem, "read it with the loadgen that wrote it")
        if version != SCHEMA:
            raise BadInput(
                (),
                f"{where} is not a loadgen result, or not a whole one",
                "name a result that `loadgen run --save-result` wrote, or a file of records",
            )
    return [result for _, result in results]


def from_dict(data: dict[str, Any]) -> RunResult | Series:
    """Convert what `load` returns to its type.

    Raises:
        KeyError, TypeError, ValueError: It is not whole.
    """
    return Series.from_dict(data) if is_series(data) else RunResult.from_dict(data)


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def write_json(path: str | Path, data: dict[str, Any], *, private: bool = False) -> None:
    """Write a result to a file, which is complete or not written at all.

    Args:
        path: The file.
        data: The result.
        private: Whether only the owner may read the file.

    Raises:
        BadInput: It cannot be written.
    """
    try:
        write_atomic(Path(path), to_json(data) + "\n", files.private_opener if private else None)
    except OSError as error:
        raise BadInput(
            (), f"{path} cannot be written ({error.strerror})", "name another"
        ) from error


def to_json(data: dict[str, Any]) -> str:
    """Write a result as one line of JSON, with escapes for what a terminal might obey."""
    return NOT_ASCII.sub(_escape, orjson.dumps(data).decode())


def _escape(match: re.Match[str]) -> str:
    c = match.group()
    if c.isprintable():
        return c
    return "".join(f"\\u{unit:04x}" for unit in memoryview(c.encode("utf-16-le")).cast("H"))


def write_hlog(
    path: str | Path, histograms: Mapping[str, Histogram], *, start_s: float, length_s: float
) -> None:
    """Write histograms of nanoseconds as a log of HdrHistogram (version 1.2), in one step: the file
    is either the old one or all of the new one.

    A log has named histograms in one text file that every port of HdrHistogram and its plotters
    read. The format is that of `HistogramLogWriter` in HdrHistogram for Java: one line per
    histogram with its tag, start and length in seconds, maximum in milliseconds, and the counts in
    V2 encoding. The package hdrhistogram writes the head of the file and encodes the counts. Its
    writer has no tags and cuts the maximum to whole milliseconds, so the other fields of a line are
    written here.

    Args:
        path: The file to write; its folder must exist.
        histograms: Each histogram under the tag that its line bears.
        start_s: When the run started, seconds since the epoch.
        length_s: How long it lasted, seconds.

    Raises:
        BadInput: A tag is empty or has a comma or white space, which end it in the format.
        OSError: The file cannot be written.
    """
    from hdrh.log import HistogramLogWriter

    log = io.StringIO()
    writer = HistogramLogWriter(log)
    writer.output_comment("[Logged by loadgen]")
    writer.output_log_format_version()
    for name in ("StartTime", "BaseTime"):
        writer.output_comment(f"[{name}: {start_s:.3f} (seconds since epoch)]")
    writer.output_legend()
    for tag, histogram in histograms.items():
        if not tag or SEPARATORS.intersection(tag):
            raise BadInput(
                setting.hlog,
                f"{tag!r} cannot be a tag",
                "use a name without commas and white space",
            )
        max_ms = (histogram.max or 0) / NS_PER_MS
        log.write(f"Tag={tag},0.000,{length_s:.3f},{max_ms:.3f},{histogram.encode()}\n")
    write_atomic(Path(path), log.getvalue())


def pytorch_records(settings: RunSettings, result: dict[str, Any]) -> list[dict[str, Any]]:
    """Make one record per measured metric in PyTorch's benchmark format, as `vllm bench serve`
    writes it for PyTorch's dashboards: arguments, model, and the result without LEFT_OUT.

    Where SAVE_TO_PYTORCH_BENCHMARK_FORMAT is set, a saved result gets such a file beside it:
    `NAME.pytorch.json`. Lists that have a number for each request stay in, as in vLLM.
    https://github.com/pytorch/pytorch/wiki/How-to-integrate-with-PyTorch-OSS-benchmark-database
    """
    measured = [name for name in PYTORCH_METRICS if result.get(name) is not None]
    extra = {
        name: value
        for name, value in result.items()
        if name not in PYTORCH_METRICS and name not in LEFT_OUT
    }
    arguments = public(settings)
    if "tensor_parallel_size" in extra:  # out of --metadata, as vLLM takes it
        arguments["tensor_parallel_size"] = extra["tensor_parallel_size"]
    about = {
        "args": arguments,
        "compilation_config.mode": extra.get("compilation_config.mode", ""),
        "optimization_level": extra.get("optimization_level", ""),
        "use_compile": extra.get("compilation_config.mode") != "0"
        and "eager" not in (settings.result_filename or ""),
    }
    return [
        {
            "benchmark": {"name": "vLLM benchmark", "extra_info": about},
            "model": {"name": result["model_id"]},
            "metric": {"name": name, "benchmark_values": [result[name]], "extra_info": extra},
        }
        for name in measured
    ]
