"""The script that repeats the deciding comparison: its contents and its effect."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.flags import parse
from loadgen.config.presets import PRESETS
from loadgen.config.serialize import flags
from loadgen.config.settings import RunSettings
from loadgen.engines.launch.launcher import SHOWN_FOLDER
from loadgen.lab.study.spec.workloads import loads
from tests.helpers.study_files import study
from tests.helpers.study_reports import found, truth, written

SIMULATED: dict[str, Any] = {
    "models": {"small": "sim"},
    "hardware": {"name": "a laptop"},
    "engines": {"sim": {"knobs": {"context_len": 512}}},
    "workloads": {"few": {"num_prompts": 12, "random_input_len": 16, "random_output_len": 4}},
    "objective": {"workload": "few"},
    "baseline": {"engine": "sim", "model": "small"},
    "budget": {"start_timeout": 30},
    "stages": [{"name": "seqs", "choice": {"more seqs": {"knobs": {"max_seqs": 64}}}}],
}


def script(tmp_path: Path, gains: Mapping[str, float], **parts: Any) -> str:
    """The script of a study."""
    return written(found(truth(gains), **parts), tmp_path)["reproduce.sh"]


def functions(text: str) -> dict[str, list[list[str]]]:
    """The commands of each arm, cut into words as a shell does."""
    bodies = re.findall(r"^(baseline|winner)\(\) \{.*?\n(.*?)^\}$", text, re.MULTILINE | re.DOTALL)
    return {name: [shlex.split(line) for line in body.splitlines()] for name, body in bodies}


# -- what stands in it


@pytest.mark.parametrize("preset", PRESETS)
def test_the_flags_of_a_workload_mean_the_workload(preset: str) -> None:
    settings = RunSettings(**PRESETS[preset])
    assert RunSettings(**parse(flags(settings))) == settings


def test_flags_of_every_kind_mean_what_they_were_made_of() -> None:
    settings = RunSettings(
        burstiness=float("inf"),
        extra_body={"min_tokens": 10, "note": "it's"},
        goodput=("ttft:200", "tpot:50"),
        ignore_eos=True,
        request_rate=12.5,
        temperature=-0.0,
        timeout=21600.5,
    )
    assert RunSettings(**parse(flags(settings))) == settings


@pytest.mark.slow
def test_a_server_is_started_by_its_whole_command_and_measured_as_it_was(tmp_path: Path) -> None:
    text = script(
        tmp_path,
        {"fp8": 1.25, "quantization/fp8": 1.25},
        objective={"workload": "short", "slo": "ttft_p99<5s"},
    )
    free, serve, waiting, run = functions(text)["winner"]
    assert free == ["expect_free", "127.0.0.1", "8000"]
    assert serve[:3] == ["serve", "winner-0", "."]
    assert serve[serve.index("vllm") :][:3] == ["vllm", "serve", "Qwen/Qwen3-8B-FP8"]
    assert waiting == ["await", "127.0.0.1", "8000"]
    assert run[:2] == ["loadgen", "run"]
    asked = RunSettings(**parse(run[2:]))
    short = loads(study())["short"]
    assert asked == short.replace(
        base_url="http://127.0.0.1:8000",
        backend="openai-chat",
        model="Qwen/Qwen3-8B-FP8",
        tokenizer="Qwen/Qwen3-8B-FP8",
        ready_check_timeout_sec=600.0,
        slo="ttft_p99<5s",
    )


def test_replicas_have_ports_of_their_own_and_share_the_requests(tmp_path: Path) -> None:
    stages = [{"name": "replicas", "choice": {"two": {"replicas": 2}}}]
    # two take the whole box, of which the baseline takes a fourth
    words = functions(script(tmp_path, {"two": 4.5, "replicas/two": 4.5}, stages=stages))["winner"]
    assert [line[2] for line in words if line[0] == "await"] == ["8000", "8001"]
    assert [line[line.index("--port") + 1] for line in words if line[0] == "serve"] == [
        "8000",
        "8001",
    ]
    assert RunSettings(**parse(words[-1][2:])).base_url == (
        "http://127.0.0.1:8000",
        "http://127.0.0.1:8001",
    )


def test_the_lines_of_the_page_ask_a_server_and_never_start_one(tmp_path: Path) -> None:
    findings = found(
        truth({}),
        baseline={"engine": "vllm", "model": "bf16", "replicas": 2},
        workloads={"short": "short"},
    )
    page = written(findings, tmp_path)["small.md"]
    (line,) = re.findall(r"^loadgen (run .*)$", page, re.MULTILINE)
    asked = RunSettings(**parse(shlex.split(line)[1:]))
    assert asked.base_url == ("http://127.0.0.1:8000", "http://127.0.0.1:8001")
    assert asked.model == "Qwen/Qwen3-8B"
    assert "use the baseline's at http://127.0.0.1:8000 and http://127.0.0.1:8001;" in page


def test_words_with_spaces_and_quotes_stay_one_word(tmp_path: Path) -> None:
    stages = [{"name": "raw", "choice": {"odd": {"raw": ["--note 'it is \"$HOME\" `x`'"]}}}]
    _, serve, *_ = functions(script(tmp_path, {"odd": 1.25, "raw/odd": 1.25}, stages=stages))[
        "winner"
    ]
    assert 'it is "$HOME" `x`' in serve


def test_credentials_are_asked_for_and_never_written(tmp_path: Path) -> None:
    stages = [
        {"name": "env", "choice": {"odd": {"env": {"HF_TOKEN": "hunter2", "OMP_NUM_THREADS": 4}}}}
    ]
    findings = found(truth({"odd": 1.25, "env/odd": 1.25}), stages=stages)
    texts = written(findings, tmp_path)
    assert ': "${HF_TOKEN:?the study ran with it}"' in texts["reproduce.sh"]
    assert "OMP_NUM_THREADS=4" in texts["reproduce.sh"]
    assert "HF_TOKEN=" not in texts["reproduce.sh"]
    assert not [name for name, text in texts.items() if "hunter2" in text]


def test_only_the_server_runs_in_the_folder_of_its_engine(tmp_path: Path) -> None:
    engines = {"vllm": {}, "mindie": {"host": "10.0.0.1"}}
    stages = [{"name": "engine", "choice": {"mindie": {"engine": "mindie"}}}]
    gains = {"mindie": 1.25, "engine/mindie": 1.25}
    share = {"short": {"workload": "sharegpt", "dataset_path": "share.json"}}
    folder_of = {"bf16": "./Qwen3-8B"}  # MindIE downloads none
    text = script(
        tmp_path, gains, engines=engines, stages=stages, workloads=share, models=folder_of
    )
    body = text.split("winner() {")[1]
    assert not re.search(r"^\s*cd ", body, re.MULTILINE)
    (folder,) = re.findall(r"^    serve winner-0 (\S+) ", body, re.MULTILINE)
    assert Path(folder).is_absolute()
    assert "--dataset-path share.json" in body


def test_files_of_an_engine_are_written_first(tmp_path: Path) -> None:
    stages = [
        {"name": "engine", "choice": {"trtllm": {"engine": "trtllm", "knobs": {"kv_dtype": "fp8"}}}}
    ]
    text = script(tmp_path, {"trtllm": 1.25, "engine/trtllm": 1.25}, stages=stages)
    (written_to,) = re.findall(r"^    printf %s '[^']*' >(\S+)$", text, re.MULTILINE)
    assert Path(written_to).parent == SHOWN_FOLDER
    assert (
        text.index(f"mkdir -p {SHOWN_FOLDER}")
        < text.index("printf %s")
        < text.index("serve winner-0")
    )


def test_the_client_is_vllms_where_its_release_does_the_same(tmp_path: Path) -> None:
    def page(**parts: Any) -> str:
        text = written(found(truth({}), workloads={"short": "short"}, **parts), tmp_path)[
            "small.md"
        ]
        return text.split("### Benchmark Script")[1].split("## ")[0]

    ours = page()
    assert "\nloadgen run --base-url" in ours
    assert "vllm bench serve" not in ours
    script = page(every_workload={"compat": "vllm-0.11"})
    (line,) = re.findall(r"^(vllm bench serve .*)$", script, re.MULTILINE)
    assert "`loadgen run --compat vllm-0.11` sends the same." in script
    assert shlex.split(line)[3:] == [
        *("--base-url", "http://127.0.0.1:8000", "--random-input-len", "128"),
        *("--random-output-len", "4", "--backend", "openai-chat", "--model", "Qwen/Qwen3-8B"),
        *("--tokenizer", "Qwen/Qwen3-8B", "--num-prompts", "1000", "--seed", "42"),
        *("--dataset-name", "random", "--endpoint", "/v1/chat/completions"),
    ]
