"""Sample: a run's requests tell its own numbers when nothing is drawn anew, whatever the metric."""

from pathlib import Path

import numpy as np
import pytest

from loadgen.comparing.metrics import USUAL, Metric, named
from loadgen.comparing.sample import Sample
from loadgen.comparing.start import Start
from loadgen.results import from_records
from tests.comparing.running import SETTINGS, recorded

OURS = [metric for metric in USUAL if metric.ours]
GOOD = SETTINGS.replace(goodput=("ttft:20",), num_prompts=700)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    path = recorded(tmp_path_factory.mktemp("records") / "run.jsonl", settings=GOOD)
    return Start(path, from_records(path).data, path)


@pytest.mark.parametrize("metric", OURS, ids=lambda metric: metric.name)
def test_a_block_of_the_whole_run_is_the_run(start: Start, metric: Metric) -> None:
    """Drawn as one block, a circle is the same wherever it begins: so the estimators are those of the result."""
    assert start.sample is not None
    drawn = start.sample.drawn(metric, len(start.sample.ok), 0)
    assert drawn is not None
    assert drawn == pytest.approx(np.full(len(drawn), start.value(metric)), rel=1.5e-3)


def test_an_extreme_is_not_drawn_anew(start: Start) -> None:
    assert start.sample is not None
    for name in ("ttft_max", "ttft_p0"):
        metric = named(name)
        assert metric is not None
        assert start.sample.drawn(metric, 10, 0) is None


def test_what_the_server_said_is_not_either(start: Start) -> None:
    assert start.sample is not None
    metric = named("server_ttft_mean")
    assert metric is not None
    assert start.sample.drawn(metric, 10, 0) is None


def test_in_flight_is_what_little_says(start: Start) -> None:
    """20 requests/s of 50 ms each (20 to the first token and 3 gaps of 10) are one in flight."""
    assert start.sample is not None
    assert start.sample.in_flight == pytest.approx(1.0, rel=0.15)


def test_a_run_of_few_blocks_tells_nothing(start: Start) -> None:
    assert start.sample is not None
    assert start.sample.why_not(140) is None
    assert start.sample.why_not(141) == "700 requests are fewer than 5 blocks of 141"


def test_of_a_run_cut_short_those_that_were_sent_count(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path / "run.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:31]))
    sample = Sample.read(str(path))
    assert (len(sample.ok), sample.fewest) == (200, 30)
    assert sample.why_not(6) is None
    assert sample.why_not(7) == "30 requests are fewer than 5 blocks of 7"
    assert sample.drawn(named("request_throughput"), 6, 0) is not None


def test_a_request_without_a_record_did_not_succeed(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path / "run.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:51], *lines[52:-1]]))
    sample = Sample.read(str(path))
    assert len(sample.ok) == 200
    assert sample.ok.sum() == 199
    assert sample.ok[50] == 0
