"""The latest server metrics are read from a file that is still being written."""

import orjson

from loadgen.metrics.server.telemetry import FILE_NAME, LatestServerMetrics
from loadgen.util.files import TailReader
from tests.helpers.server_scrapes import scrape

OTHER = "http://127.0.0.1:8001/metrics"


def tell(folder, *lines):
    with (folder / FILE_NAME).open("ab") as file:
        file.write(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def test_tail_reader_returns_each_complete_line_once(tmp_path):
    path = tmp_path / "lines"
    growing = TailReader(path)
    assert growing.lines() == []
    path.write_bytes(b"a\nb\nhal")
    assert growing.lines() == [b"a", b"b"]
    assert growing.lines() == []
    path.write_bytes(b"a\nb\nhalf\n\nc")
    assert growing.lines() == [b"half", b""]


def test_before_the_first_scrape_there_is_none(tmp_path):
    assert LatestServerMetrics(tmp_path).latest() == {}


def test_latest_metrics_are_the_levels_of_the_last_scrape(tmp_path):
    metrics = LatestServerMetrics(tmp_path)
    tell(tmp_path, scrape(0, running=1, waiting=0, requests=7).to_dict())
    assert metrics.latest() == {"running": 1, "waiting": 0}
    tell(
        tmp_path,
        {"asked_ns": 5, "gpus": []},
        scrape(1, running=3, waiting=2, kv_usage=0.25).to_dict(),
    )
    assert metrics.latest() == {"running": 3, "waiting": 2, "kv_usage": 0.25}
    assert metrics.latest() == {"running": 3, "waiting": 2, "kv_usage": 0.25}


def test_several_sources_are_one_while_all_have_a_gauge(tmp_path):
    metrics = LatestServerMetrics(tmp_path)
    other = scrape(1, running=4, kv_usage=0.2, url=OTHER)
    tell(tmp_path, scrape(1, running=3, kv_usage=0.5).to_dict(), other.to_dict())
    assert metrics.latest() == {"running": 7, "kv_usage": 0.5}
    tell(tmp_path, scrape(2, failed="no answer").to_dict(), other.to_dict())
    assert metrics.latest() == {}
