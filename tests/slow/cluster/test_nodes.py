"""Two nodes send the requests of one, start together, and give one result.

`make test-all` compares their requests with those of one worker, refuses clusters, and loses a
node; `make qa` tries the rest.
"""

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loadgen
from loadgen import report
from loadgen.errors import BadInput
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.records.shards import further_shards
from loadgen.runner import cluster_driver
from tests.helpers.command_line import SHORT, TOKENIZER, ended, hear, served, start
from tests.helpers.command_line import loadgen as command
from tests.helpers.run_facts import in_order
from tests.slow.cluster.nodes import HEAD, OTHER, Cluster, running

ray = pytest.importorskip("ray", reason="pip install ray")
pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]  # Ray's own

COUNT = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def settings() -> Iterator[loadgen.RunSettings]:
    """Of a run against a simulator that all nodes can reach."""
    with served() as (url, _):
        yield loadgen.RunSettings(
            base_url=url,
            tokenizer=TOKENIZER,
            random_input_len=16,
            random_output_len=4,
            request_rate=100,
            num_prompts=COUNT,
        )


def told(path: Path) -> list[tuple[int, int, str | None, int]]:
    """What was asked of each request of a run: its number, when it was due, what of, how many
    tokens.
    """
    file = RecordFile(path)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()[1:-1]]
    assert len(lines) == len(list(file))
    return sorted(
        (one["index"], one["due"], one["source"], one["planned_input_tokens"]) for one in lines
    )


def exact(result: loadgen.Result) -> list[Any]:
    """The numbers that are no times."""
    own = result.data["loadgen"]
    totals = [
        result.data[name] for name in ("completed", "total_input_tokens", "total_output_tokens")
    ]
    return [own["outcomes"], own["finish_reasons"], sorted(result.snapshot.index.tolist()), *totals]


def test_two_nodes_of_two_workers_ask_what_one_worker_asks(
    cluster: Cluster, settings: loadgen.RunSettings, tmp_path: Path
) -> None:
    """And each node measures latencies on its own clock."""
    alone = loadgen.run_sync(settings.replace(records=str(tmp_path / "alone.jsonl")))
    path = tmp_path / "shared.jsonl"
    saving = settings.replace(save_detailed=True, result_dir=str(tmp_path))
    shared = loadgen.run_sync(saving.replace(records=str(path), ray=cluster.address, workers=2))
    assert exact(shared) == exact(alone)
    assert told(path) == told(tmp_path / "alone.jsonl")
    own = shared.data["loadgen"]
    assert sorted(worker["host"] for worker in own["workers"]) == sorted([HEAD, OTHER] * 2)
    assert {worker["schedule_sha256"] for worker in own["workers"]} == {
        own["provenance"]["schedule"]["sha256"]
    }
    assert own["latency_ms"]["ttft_due"]["count"] == COUNT
    assert report.render(loadgen.from_records(path)) == report.render(shared)
    assert not list(further_shards(path))
    assert (shared.snapshot.sent >= 0).all()
    assert (shared.snapshot.closed > shared.snapshot.sent).all()
    first = min(shared.data["start_times"])
    sent = in_order(shared.snapshot).sent / 1e9
    assert [at - first for at in shared.data["start_times"]] == pytest.approx(
        sent - sent.min(), abs=1e-6
    )


@pytest.mark.qa_only
def test_fewer_nodes_are_used_where_fewer_are_asked_for(
    cluster: Cluster, settings: loadgen.RunSettings
) -> None:
    result = loadgen.run_sync(settings.replace(ray=cluster.address, ray_nodes=1, num_prompts=10))
    assert [worker["host"] for worker in result.data["loadgen"]["workers"]] == [HEAD]
    assert result.data["completed"] == 10


@pytest.mark.qa_only
def test_a_cap_is_shared(cluster: Cluster, settings: loadgen.RunSettings) -> None:
    closed = settings.replace(ray=cluster.address, request_rate=float("inf"), max_concurrency=4)
    result = loadgen.run_sync(closed)
    assert result.data["completed"] == COUNT
    with pytest.raises(BadInput, match="2 machines of 3 processes cannot share 4 requests"):
        loadgen.run_sync(closed.replace(workers=3))


def test_too_few_nodes_are_refused_with_those_that_are_there(cluster: Cluster) -> None:
    done = command(
        "run", "--base-url", "http://127.0.0.1:1", "--ray", cluster.address, "--ray-nodes", "3"
    )
    assert done.returncode == 2
    assert f"--ray-nodes: 3 are asked for, and the cluster has 2 ({HEAD}, {OTHER})" in done.stderr


async def test_a_node_with_another_version_is_refused_by_its_name(
    cluster: Cluster, settings: loadgen.RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_driver.importlib.metadata, "version", lambda name: "99.0")
    with pytest.raises(BadInput, match=rf"node {HEAD} has loadgen [\d.]+, and here is 99.0"):
        await loadgen.run(settings.replace(ray=cluster.address))


@pytest.mark.qa_only
def test_an_error_on_a_node_is_an_error_here(
    cluster: Cluster, settings: loadgen.RunSettings
) -> None:
    wrong = settings.replace(
        ray=cluster.address,
        ready_check_timeout_sec=0.5,
        extra_body={"model": "another"},
        num_prompts=4,
    )
    with pytest.raises(loadgen.LoadgenError, match=r"no success in 0\.5 s"):
        loadgen.run_sync(wrong)


@pytest.mark.qa_only
def test_an_interrupt_reaches_every_node(cluster: Cluster, tmp_path: Path) -> None:
    with served() as (url, _):
        run = start(
            "run",
            "--base-url",
            url,
            "--tokenizer",
            TOKENIZER,
            "--duration",
            "60",
            "--rate",
            "50",
            *SHORT,
            "--ray",
            cluster.address,
            "--save-result",
            "--result-filename",
            "r.json",
            cwd=tmp_path,
        )
        hear(run, lambda line: ended(line) > 50)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "PARTIAL: interrupted" in out
    assert "Traceback" not in err
    result = json.loads((tmp_path / "r.json").read_text())
    assert sum(result["loadgen"]["outcomes"].values()) == result["num_prompts"]
    assert [worker["lost"] for worker in result["loadgen"]["workers"]] == [None, None]


def test_a_node_that_is_lost_makes_the_run_invalid_and_is_named(
    cluster: Cluster, settings: loadgen.RunSettings, tmp_path: Path
) -> None:
    lose = threading.Thread(target=cluster.lose)

    def watch(progress: loadgen.Progress) -> None:
        if (
            progress.phase == "running"
            and progress.ended > 100
            and not lose.is_alive()
            and lose.ident is None
        ):
            lose.start()

    path = tmp_path / "r.jsonl"
    long = settings.replace(ray=cluster.address, num_prompts=6000, workers=2, records=str(path))
    result = asyncio.run(loadgen.run(long, on_progress=watch))
    lose.join()
    cluster.add()
    own = result.data["loadgen"]
    assert result.verdict is loadgen.Verdict.INVALID
    assert own["partial"] == f"part 2 of 2 was lost with node {OTHER}; what it had measured is lost"
    lost = [worker["number"] for worker in own["workers"] if worker["lost"]]
    assert lost == [1, 3]
    assert f"worker 2 was lost with node {OTHER}" in report.render(result)
    assert result.data["completed"] > 50
    assert (result.snapshot.index[result.snapshot.sent >= 0] % 2 == 0).all()
    assert report.render(loadgen.from_records(path)) == report.render(result)
