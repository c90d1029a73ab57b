"""Two nodes of a cluster share a cap, and errors and interrupts reach each of them.

tests/slow/cluster compares their requests with those of one worker, and loses a node.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import loadgen
from loadgen.errors import BadInput
from tests.helpers.command_line import SHORT, TOKENIZER, ended, hear, served, start
from tests.slow.cluster.nodes import COUNT, HEAD, Cluster, running, short_load

ray = pytest.importorskip("ray", reason="pip install ray")
pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]  # Ray's own


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def settings() -> Iterator[loadgen.RunSettings]:
    """Of a run against a simulator that all nodes can reach."""
    with served() as (url, _):
        yield short_load(url)


def test_fewer_nodes_are_used_where_fewer_are_asked_for(
    cluster: Cluster, settings: loadgen.RunSettings
) -> None:
    result = loadgen.run_sync(settings.replace(ray=cluster.address, ray_nodes=1, num_prompts=10))
    assert [worker["host"] for worker in result.data["loadgen"]["workers"]] == [HEAD]
    assert result.data["completed"] == 10


def test_a_cap_is_shared(cluster: Cluster, settings: loadgen.RunSettings) -> None:
    closed = settings.replace(ray=cluster.address, request_rate=float("inf"), max_concurrency=4)
    result = loadgen.run_sync(closed)
    assert result.data["completed"] == COUNT
    with pytest.raises(BadInput, match="2 machines of 3 processes cannot share 4 requests"):
        loadgen.run_sync(closed.replace(workers=3))


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
