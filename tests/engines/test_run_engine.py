"""`loadgen run --engine` launches, measures and stops an engine."""

import contextlib
import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from loadgen.config.settings import RunSettings, public
from loadgen.engines.launch.server_registry import ServerRegistry
from loadgen.metrics.records.file import RecordFile
from loadgen.util.redaction import MARK
from tests.helpers.command_line import SHORT, hear, in_flight, loadgen, start
from tests.helpers.real_llamacpp import RAW, gguf, real

FEW = ["--num-prompts", "8", "--max-concurrency", "2", *SHORT]


@pytest.mark.integration
def test_the_simulator_as_any_engine(tmp_path: Path) -> None:
    done = loadgen(
        "run", "--engine", "sim", "--engine-arg", "max_seqs=4", *FEW, "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    own = json.loads(done.stdout)["loadgen"]
    assert own["simulated"]
    assert own["outcomes"] == {"ok": 8}
    assert own["provenance"]["engine"]["name"] == "sim"
    assert own["provenance"]["asked"]["engine_arg"] == ["max_seqs=4"]


@pytest.mark.integration
def test_replicas_share_the_requests(tmp_path: Path) -> None:
    done = loadgen("run", "--engine", "sim", "--replicas", "2", *FEW, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    own = json.loads(done.stdout)["loadgen"]
    assert own["simulated"]
    assert [target["ok"] for target in own["targets"]] == [4, 4]
    assert len(own["server"]["sources"]) == 2


@pytest.mark.parametrize(
    "word", ["--api-key hush", "--api-key=hush", "--dtype half --hf-token hush"]
)
def test_a_key_for_the_engine_is_in_no_result(word: str) -> None:
    shown = public(RunSettings(engine="vllm", model="m", engine_arg=(word, "max_seqs=4")))[
        "engine_arg"
    ]
    assert shown == [word.replace("hush", MARK), "max_seqs=4"]


def is_simulator(process: psutil.Process) -> bool:
    """Whether it is the one that serves, and not its supervisor; none of them is one that has
    just ended.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        return not process.children() and "loadgen.engines.sim" in process.cmdline()
    return False


@pytest.mark.integration
def test_engine_crash_under_load_makes_run_invalid(tmp_path: Path) -> None:
    flags = [
        "--engine",
        "sim",
        "--rate",
        "50",
        "--duration",
        "600",
        *SHORT,
        "--disable-tqdm",
        "--json",
    ]
    with start("run", *flags, cwd=tmp_path) as process:
        hear(process, lambda line: in_flight(line) > 0)
        started = psutil.Process(process.pid).children(recursive=True)
        (simulator,) = filter(is_simulator, started)
        os.kill(simulator.pid, signal.SIGKILL)
        hear(process, lambda line: " failed" in line and ", 0 failed" not in line)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    own = json.loads(out)["loadgen"]
    assert own["verdict"] == "INVALID"
    (engine,) = (check for check in own["checks"] if check["name"] == "engine lost")
    assert engine["ok"] is False
    assert engine["value"].startswith("killed: ")


class TestLlamaCpp:
    pytestmark = real("gguf")

    @pytest.mark.integration
    def test_single_command_launches_measures_and_stops(self, tmp_path: Path) -> None:
        """Prompts are as long as asked, to the token, by the tokenizer inside the model's file."""
        flags = [
            "--engine",
            "llamacpp",
            "--model",
            gguf(),
            "--engine-arg",
            "max_seqs=2",
            "context_len=2048",
        ]
        flags += [f"--engine-arg={' '.join(RAW)}", "--backend", "openai"]
        flags += ["--num-prompts", "6", "--max-concurrency", "2"]
        flags += [
            "--random-input-len",
            "40",
            "--random-output-len",
            "4",
            "--ignore-eos",
            "--records",
            "r.jsonl",
        ]
        done = loadgen("run", *flags, "--json", cwd=tmp_path, timeout_s=300)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        own = result["loadgen"]
        assert own["outcomes"] == {"ok": 6}
        assert own["tokens"]["input_as_planned"] == 6
        assert result["total_output_tokens"] == 6 * 4
        assert own["provenance"]["engine"]["name"] == "llamacpp"
        assert own["provenance"]["engine"]["differences"] == []
        assert [record.prompt_tokens for record in RecordFile(tmp_path / "r.jsonl")] == [40] * 6
        assert not list(ServerRegistry().folder.glob("*.json")), (
            "a server that was started is still there"
        )

    @pytest.mark.integration
    def test_chat_tokens_are_predicted_by_template_in_the_file(self, tmp_path: Path) -> None:
        flags = [
            "--engine",
            "llamacpp",
            "--model",
            gguf(),
            f"--engine-arg={' '.join(RAW)}",
            "--num-prompts",
            "2",
        ]
        flags += ["--max-concurrency", "1", "--random-input-len", "20", "--random-output-len", "2"]
        done = loadgen("run", *flags, "--records", "r.jsonl", "--json", cwd=tmp_path, timeout_s=300)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["loadgen"]["tokens"]["input_predicted"] == 2
        records = list(RecordFile(tmp_path / "r.jsonl"))
        assert [record.prompt_tokens for record in records] == [
            record.server_tokens for record in records
        ]

    @pytest.mark.integration
    def test_a_flag_that_it_does_not_know_is_told_with_the_cause(self, tmp_path: Path) -> None:
        flags = ["--engine", "llamacpp", "--model", gguf(), "--engine-arg=--no-such-flag"]
        done = loadgen("run", *flags, *FEW, cwd=tmp_path, timeout_s=120)
        assert done.returncode == 1
        assert "llamacpp: bad_flag: " in done.stderr
        assert "Traceback" not in done.stderr
