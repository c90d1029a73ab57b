"""HdrHistogram logs: named histograms in one text file that every port of HdrHistogram and its plotters read.

The format (version 1.2) is that of `HistogramLogWriter` in HdrHistogram for Java: one line per histogram with its
tag, start and length in seconds, maximum in milliseconds, and the counts in V2 encoding. `hdrh`'s own writer knows no
tags and writes the maximum in whole units, so the lines are made here.
"""

from collections.abc import Mapping
from pathlib import Path

from loadgen.core.histogram import Histogram
from loadgen.errors import BadInput
from loadgen.util.files import write_atomic

HEADER = """\
#[Logged by loadgen]
#[Histogram log format version 1.2]
#[StartTime: {start_s:.3f} (seconds since epoch)]
#[BaseTime: {start_s:.3f} (seconds since epoch)]
"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
"""
NS_PER_MS = 1e6
SEPARATORS = frozenset(", \t\r\n")


def write_hlog(
    path: str | Path,
    histograms: Mapping[str, Histogram],
    *,
    start_s: float,
    length_s: float,
) -> None:
    """Write `histograms` of nanoseconds to `path` in one step: the file is either the old one or all of the new one.

    Args:
        path: The file to write; its folder must exist.
        histograms: Each histogram under the tag that its line bears.
        start_s: When the run started, seconds since the epoch.
        length_s: How long it lasted, seconds.

    Raises:
        BadInput: A tag is empty or has a comma or white space, which end it in the format.
        OSError: The file cannot be written.
    """
    lines = [HEADER.format(start_s=start_s)]
    for tag, histogram in histograms.items():
        if not tag or SEPARATORS.intersection(tag):
            raise BadInput("--hlog", f"{tag!r} cannot be a tag", "use a name without commas and white space")
        max_ms = (histogram.max or 0) / NS_PER_MS
        lines.append(f"Tag={tag},0.000,{length_s:.3f},{max_ms:.3f},{histogram.encode()}\n")
    write_atomic(Path(path), "".join(lines))
