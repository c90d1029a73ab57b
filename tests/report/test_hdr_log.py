"""Histograms written as a log can be read by hdrhistogram's own reader."""

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from loadgen.core.histogram import DAY_NS, Histogram
from loadgen.errors import BadInput
from loadgen.report.files import write_hlog


@pytest.fixture
def two():
    ttft, itl = Histogram(), Histogram()
    ttft.record(123_456_789, 3)
    itl.record(7_000_000)
    return {"ttft": ttft, "itl": itl}


def read(path):
    reader = HistogramLogReader(str(path), HdrHistogram(1, DAY_NS, 3))
    try:
        return list(iter(reader.get_next_interval_histogram, None))
    finally:
        reader.close()


def test_hdrhistogram_reads_tags_counts_and_times(tmp_path, two):
    write_hlog(tmp_path / "run.hlog", two, start_s=1_700_000_000.25, length_s=60.5)
    ttft, itl = read(tmp_path / "run.hlog")
    assert (ttft.get_tag(), itl.get_tag()) == ("ttft", "itl")
    assert (ttft.get_total_count(), itl.get_total_count()) == (3, 1)
    assert ttft.get_max_value() == pytest.approx(123_456_789, rel=1e-3)
    assert ttft.get_start_time_stamp() == 1_700_000_000_250
    assert ttft.get_end_time_stamp() == 1_700_000_060_750


def test_a_log_has_a_head_and_a_line_for_each_histogram(tmp_path, two):
    write_hlog(tmp_path / "run.hlog", two, start_s=1_700_000_000.25, length_s=60.5)
    *head, ttft, itl = (tmp_path / "run.hlog").read_text().splitlines()
    assert head == [
        "#[Logged by loadgen]",
        "#[Histogram log format version 1.2]",
        "#[StartTime: 1700000000.250 (seconds since epoch)]",
        "#[BaseTime: 1700000000.250 (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    assert ttft.startswith("Tag=ttft,0.000,60.500,123.457,HIST")
    assert itl.startswith("Tag=itl,0.000,60.500,7.000,HIST")


def test_an_empty_histogram_is_a_line_too(tmp_path):
    write_hlog(tmp_path / "run.hlog", {"tpot": Histogram()}, start_s=1.5e9, length_s=1)
    assert [histogram.get_total_count() for histogram in read(tmp_path / "run.hlog")] == [0]


def test_new_log_replaces_the_old_one(tmp_path, two):
    for length_s in (1, 2):
        write_hlog(tmp_path / "run.hlog", two, start_s=1.5e9, length_s=length_s)
    assert [path.name for path in tmp_path.iterdir()] == ["run.hlog"]
    assert len(read(tmp_path / "run.hlog")) == 2


@pytest.mark.parametrize("tag", ["", "a,b", "a b", "a\nb"])
def test_a_tag_that_would_break_the_line_is_refused_and_the_old_file_stays(tmp_path, two, tag):
    path = tmp_path / "run.hlog"
    path.write_text("old")
    with pytest.raises(BadInput, match=r"--hlog: .* cannot be a tag"):
        write_hlog(path, {**two, tag: Histogram()}, start_s=0, length_s=1)
    assert path.read_text() == "old"


def test_failed_write_leaves_no_file(tmp_path, two):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_hlog(tmp_path / "taken", two, start_s=0, length_s=1)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
