"""The benchmark reports a figure and ratios for every client; their values are not tested."""

import dataclasses
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from bench.performance import cost, live, scaling
from bench.performance.clients import C_LIMIT, C_SAME_CALLS, Limit, Loadgen, flags
from bench.performance.findings import Findings
from bench.performance.load import Load, serve
from bench.performance.plan import QUICK
from bench.performance.ratios import Costs
from bench.performance.report import report, workers_shared
from bench.performance.sample import Sample, Surroundings
from bench.performance.startup import COMMANDS


def sampled(client: str, load: Load, cpu_s: float) -> Sample:
    around = Surroundings(tree_cpu_s=2.0, others_cores=0.0, server_cores=0.5, overrun_ms=0.0)
    tokens, cores = load.count * load.tokens, cpu_s / 10
    return Sample(
        client,
        load,
        0,
        tokens,
        cpu_s,
        cores,
        cores,
        1000.0,
        0.1,
        1.0,
        20.0,
        21.0,
        70.0,
        "VALID",
        around,
    )


def system_calls(command: list[str]) -> Counter[str]:
    traced = ["strace", "-c", *command]
    done = subprocess.run(traced, stderr=subprocess.PIPE, text=True, check=True, timeout=60)
    rows = [line.split() for line in done.stderr.splitlines()[2:-2]]
    # % time, seconds, usecs/call, calls, errors if there are any, the call
    return Counter({row[-1]: int(row[3]) for row in rows})


@pytest.fixture(scope="module")
def found() -> Findings:
    return cost.measure(QUICK)


def test_every_client_runs_under_every_load(found: Findings) -> None:
    assert found.clients[:2] == ["loadgen", "plain aiohttp"]
    assert found.clients[2:] == [C_LIMIT, C_SAME_CALLS] or "compiler" in found.notes[0]
    runs = [(sample.client, sample.load.name) for sample in found.samples]
    assert sorted(runs) == sorted(
        (client, load.name) for client in found.clients for load in QUICK.loads
    )
    for sample in found.samples:
        assert sample.cpu_s > 0
        assert sample.busy_share > 0
        assert sample.achieved_rps is not None
        assert sample.achieved_rps > 0
        assert sample.ttft_p99_ms >= sample.ttft_p50_ms > 0
        assert sample.peak_mb > 0
        assert sample.around.tree_cpu_s > 0


def test_second_worker_is_shown_beside_the_first() -> None:
    heavy = QUICK.loads[-1]
    plan = dataclasses.replace(QUICK, loads=(heavy,))
    samples = [
        sampled(name, heavy, cpu_s)
        for name, cpu_s in (("loadgen", 1.0), ("loadgen --workers 2", 1.5))
    ]
    text = "\n".join(workers_shared(Findings(plan, [sample.client for sample in samples], samples)))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith(("| 1 |", "| 2 |"))]
    assert [row[-1].rstrip(" |") for row in rows] == ["1.00", "1.50"]


def test_ratios_are_positive(found: Findings) -> None:
    costs = Costs(found.samples)
    ours, *others = found.clients
    for cost_of in (costs.by_token("W1"), costs.by_request("W2"), costs.by_token("W3")):
        for other in others:
            (ratio,) = costs.ratio(cost_of, other, ours)
            assert ratio > 0


def test_memory_and_start_up_are_told(found: Findings) -> None:
    assert found.memory is not None
    assert found.memory.peak_mb > 0
    assert all(seconds > 0 for seconds in found.startup_s.values())
    assert set(COMMANDS) <= found.startup_s.keys()


def test_the_tables_have_a_column_or_a_row_for_every_client(found: Findings) -> None:
    text = report(found)
    for client in found.clients:
        assert f"| {client} |" in text
    assert "n/a" not in [
        cell.strip() for line in text.splitlines() if "us per" in line for cell in line.split("|")
    ]


def test_a_missing_compiler_is_noted_and_the_rest_still_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    notes: list[str] = []
    clients = cost.make_clients(tmp_path, QUICK, notes)
    assert [client.name for client in clients] == ["loadgen", "plain aiohttp"]
    assert notes == ["The loops in C were left out: there is no C compiler (cc)."]


def test_one_load_alone_has_one_row_for_its_requests() -> None:
    plan = QUICK.only("W2")
    (load,) = plan.loads
    samples = [sampled("loadgen", load, 0.02), sampled(C_SAME_CALLS, load, 0.01)]
    text = report(Findings(plan, [sample.client for sample in samples], samples))
    (row,) = (line for line in text.splitlines() if line.startswith("| us per"))
    assert row == "| us per request of 2 tokens, W2 | 200 | 100 | 2.00 |"
    assert "Memory and start-up" not in text


@pytest.mark.skipif(
    not (shutil.which("cc") and shutil.which("strace")), reason="no C compiler, or no strace"
)
def test_the_loop_in_c_makes_the_calls_of_its_switches_for_each_request(tmp_path: Path) -> None:
    load = Load("few", rate=100, count=20, tokens=2)
    with serve(5.0) as server:
        bare, same = (
            system_calls(limit.command(server.base_url, server.model, load, 20))
            for limit in (Limit(tmp_path), Limit(tmp_path, same_calls=True))
        )
    further = same - bare
    assert (further["recvfrom"], further["pread64"]) == (20, 20)
    assert further["getsockopt"] >= 20, "after the last read of each answer, and after late ones"
    assert same["recvmsg"] >= 40, "at least one read of each answer, and one of its stamp"


@pytest.fixture(scope="module")
def scaled() -> scaling.Findings:
    return scaling.measure([scaling.of_streams(10, 0.1), scaling.of_reads(4, 0.1)], 1)


def test_event_cost_has_a_row_per_streams_and_events_per_read(scaled: scaling.Findings) -> None:
    rows = [line for line in scaling.report(scaled).splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows[2:]] == [
        "| streams at once: 10",
        "| events per read: 4",
    ]
    clients = {client for _, client in scaled.costs}
    assert clients in ({"loadgen", "C limit"}, {"loadgen"})
    assert all(len(costs) == 1 for costs in scaled.costs.values())


@pytest.mark.parametrize("case", scaling.cases(quick=False), ids=lambda case: case.name)
def test_the_loads_of_a_case_differ_in_the_length_of_their_streams_alone(
    case: scaling.Case,
) -> None:
    short, long = case.short, case.long
    assert (short.rate, short.count, short.warm) == (long.rate, long.count, long.warm)
    assert long.tokens == scaling.LONGER * short.tokens
    assert case.events == 2 * short.count * short.tokens
    assert short.warm == short.count, "each stream has a connection before it begins"


def test_all_streams_are_there_before_the_first_has_ended() -> None:
    for count in scaling.STREAMS:
        case = scaling.of_streams(count, 5.0)
        lasts_s = case.short.tokens * count / scaling.EVENTS_PER_S
        assert (count - 1) / case.short.rate < lasts_s


def test_a_run_can_write_every_request_to_a_file(tmp_path: Path) -> None:
    load = Load("few", rate=100, count=3, tokens=2)
    with serve(5.0) as server:
        assert "--json" in flags(server, load)
        told = Loadgen(tmp_path, records=True).run(server, load)
    assert told["tokens"] == 6
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 3 + 1  # what the run was, its requests, how it ended


def test_live_view_cost_is_reported_with_and_without_it() -> None:
    load = Load("live", rate=200, count=100, tokens=20)
    with serve(QUICK.step_ms) as server:
        shown, hidden = (live.run(server, load, shown=on) for on in (True, False))
    assert min(*dataclasses.astuple(shown), *dataclasses.astuple(hidden)) > 0
    text = live.report(load, [shown], [hidden], live.telling_us())
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 6
