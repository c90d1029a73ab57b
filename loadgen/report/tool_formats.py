"""Formats of other tools: HdrHistogram's logs, and PyTorch's benchmark format.

A log of HdrHistogram (version 1.2) has named histograms in one text file that every port of
HdrHistogram and its plotters read. The format is that of `HistogramLogWriter` in HdrHistogram for
Java: one line per histogram with its tag, start and length in seconds, maximum in milliseconds, and
the counts in V2 encoding. The package hdrhistogram writes the head of the file and encodes the
counts. Its writer has no tags and cuts the maximum to whole milliseconds, so the other fields of a
line are written here.

PyTorch's benchmark format has one record per metric, as `vllm bench serve` writes it for PyTorch's
dashboards. Where SAVE_TO_PYTORCH_BENCHMARK_FORMAT is set, a saved result gets such a file beside
it: `NAME.pytorch.json`.
https://github.com/pytorch/pytorch/wiki/How-to-integrate-with-PyTorch-OSS-benchmark-database
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadgen.config.settings import RunSettings, public
from loadgen.core.histogram import Histogram
from loadgen.errors import BadInput, setting
from loadgen.util.files import write_atomic

NS_PER_MS = 1e6
SEPARATORS = frozenset(", \t\r\n")
VARIABLE = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT"
METRICS = [
    f"{statistic}_{metric}_ms"
    for metric in ("ttft", "tpot", "itl")
    for statistic in ("median", "mean", "std")
]
PERCENTILES = [f"p99_{metric}_ms" for metric in ("ttft", "tpot", "itl")]
# What vLLM's records leave out as too big, and what vLLM does not know.
LEFT_OUT = {"ttfts", "itls", "generated_texts", "errors", "loadgen"}


def write_hlog(
    path: str | Path, histograms: Mapping[str, Histogram], *, start_s: float, length_s: float
) -> None:
    """Write `histograms` of nanoseconds to `path` in one step: the file is either the old one or
    all of the new one.

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
    """Make one record per measured metric, as vLLM does: arguments, model, and the result without
    LEFT_OUT.

    Lists that have a number for each request stay in, as in vLLM.
    """
    measured = [name for name in (*METRICS, *PERCENTILES) if result.get(name) is not None]
    extra = {
        name: value
        for name, value in result.items()
        if name not in (*METRICS, *PERCENTILES) and name not in LEFT_OUT
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
