"""The peers' reports: each was recorded in a run of the real peer, and cut to what is read."""

import re
from pathlib import Path

import pytest

from bench.peers.compare_peers import PEERS
from bench.peers.floors import PlainClient
from bench.peers.ours import OURS
from bench.peers.peer import METRICS, PERCENTILES, Peer, Task
from bench.peers.tools import TOOLS
from bench.performance.load import Load

RECORDED = Path(__file__).with_name("recorded")
LOAD = Load("few", rate=370, count=3700, tokens=530)  # numbers that stand nowhere else


def test_vllm_reports_all_three_times_and_no_remark() -> None:
    told = PEERS["vllm"].report(RECORDED / "vllm", "")
    assert told.times_ms.keys() == set(METRICS)
    assert told.says == ""


def test_guidellm_has_a_mean_for_each_request_where_others_have_gaps() -> None:
    told = PEERS["guidellm"].report(RECORDED / "guidellm", "")
    assert told.tokens == 1000
    assert told.times_ms["ttft"] == pytest.approx({50: 23.345, 99: 51.569}, abs=0.001)
    assert told.times_ms["tpot"] == pytest.approx({50: 19.936, 99: 21.175}, abs=0.001)
    assert "itl" not in told.times_ms
    assert told.says.startswith("mean generation delay was 2% of mean time to first token")


def test_aiperf_calls_the_gaps_chunk_latency_and_warns_in_its_log() -> None:
    told = PEERS["aiperf"].report(RECORDED / "aiperf", "")
    assert told.tokens == 1000
    assert told.times_ms["ttft"] == pytest.approx({50: 22.027, 99: 29.177}, abs=0.001)
    assert told.times_ms["itl"] == pytest.approx({50: 20.006, 99: 26.898}, abs=0.001)
    assert told.times_ms["tpot"] == pytest.approx({50: 19.990, 99: 20.528}, abs=0.001)
    assert told.says == "Event loop"


def test_inference_perf_tells_seconds() -> None:
    told = PEERS["inference-perf"].report(RECORDED / "inference-perf", "")
    assert told.tokens == 1000
    assert told.times_ms["ttft"] == pytest.approx({50: 20.701, 99: 28.388}, abs=0.001)
    assert told.times_ms["itl"] == pytest.approx({50: 20.002, 99: 24.001}, abs=0.001)
    assert told.says == ""


def test_evalscope_has_a_table_of_percentiles(tmp_path: Path) -> None:
    told = PEERS["evalscope"].report(RECORDED / "evalscope", "")
    assert told.tokens == 1000
    assert told.times_ms["ttft"][50] == 24.4024
    assert told.times_ms["itl"][50] == 20.0195
    assert told.says == ""


def test_loadgen_tells_its_verdict_and_its_own_memory() -> None:
    told = OURS[0].report(RECORDED / "loadgen", "")
    assert told.times_ms.keys() == set(METRICS)
    assert told.says.split(":")[0] in {"VALID", "SUSPECT", "INVALID"}
    assert told.measuring_mb is not None
    assert 10 < told.measuring_mb < 200


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.iterdir()))
def test_percentiles_are_in_ms_and_in_order(name: str) -> None:
    told = PEERS[name].report(RECORDED / name, "")
    assert told.times_ms
    for times in told.times_ms.values():
        assert times.keys() == set(PERCENTILES)
        assert 1 < times[50] <= times[99] < 1000


def test_a_floor_prints_its_report() -> None:
    told = PlainClient().report(Path(), '{"tokens": 6, "ttft_p50_ms": 20.1, "ttft_p99_ms": 22.0}\n')
    assert told.tokens == 6
    assert told.times_ms == {"ttft": {50: 20.1, 99: 22.0}}


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_a_command_says_where_how_fast_how_many_and_how_long(peer: Peer, tmp_path: Path) -> None:
    command = peer.command(
        Task("http://127.0.0.1:18123", LOAD, tmp_path / "tokenizer", tmp_path, Path("/programs"))
    )
    told = " ".join([*command, *(path.read_text() for path in tmp_path.glob("*.yml"))])
    assert "127.0.0.1:18123" in told or "18123" in command
    assert "metronome" in told
    assert {str(LOAD.rate), str(LOAD.tokens)} <= set(re.findall(r"\d+", told))
    many = f"count={LOAD.count}" in told or f'"duration": {LOAD.count // LOAD.rate}' in told
    assert many or str(LOAD.count) in command


@pytest.mark.parametrize("peer", TOOLS, ids=lambda peer: peer.name)
def test_a_tool_is_of_one_version_and_runs_from_its_own_environment(
    peer: Peer, tmp_path: Path
) -> None:
    assert peer.recipe is not None
    assert "==" in peer.recipe.steps[-1][-1]
    command = peer.command(Task("http://127.0.0.1:1", LOAD, tmp_path, tmp_path, Path("/programs")))
    assert command[0].startswith("/programs/")
