"""MindIE: knobs and flags become a config.json, compared with files in tests/data/engines/mindie.

`python -m tests.engines.test_mindie` writes those anew; look at what changed before it is kept.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.engines.kinds.engine import Launch, Place
from loadgen.engines.kinds.mindie import engine
from loadgen.engines.kinds.mindie_config import configure, parse
from loadgen.errors import BadInput
from tests.helpers.source import ROOT

GOLDEN = ROOT / "tests/data/engines/mindie"
PLACE = Place(1025, Path("/runs/1"), host="10.0.0.1")
MODEL = "/models/Qwen3-30B-A3B"
NOWHERE = replace(engine, install=Path("/nowhere/mindie-service"))

# name: knobs, raw flags, devices
CASES: dict[str, tuple[dict[str, Any], str, int]] = {
    "plain": ({}, "", 1),
    "long-prompts": ({"context_len": 32768, "max_seqs": 50}, "--max-prefill-batch-size 10", 0),
    "prefix-cache": ({"prefix_cache": True, "tensor_parallel": 2}, "", 2),
    "split-and-prefix-cache": (
        {"prefix_cache": True, "chunked_prefill": True},
        "--split-chunk-tokens 1024",
        0,
    ),
    "mtp-and-prefix-cache": (
        {"speculative": {"method": "mtp", "num_speculative_tokens": 1}, "prefix_cache": True},
        "--trust-remote-code",
        0,
    ),
    "experts": (
        {"tensor_parallel": 4, "data_parallel": 2, "expert_parallel": True, "memory_fraction": 0.8},
        "--enforce-eager --log-level Error --no-metrics",
        8,
    ),
}


def launch(knobs: dict[str, Any], raw: str = "", devices: int = 0, model: str = MODEL) -> Launch:
    place = replace(PLACE, devices=tuple(str(number) for number in range(devices)))
    return NOWHERE.launch(model, knobs, raw.split(), place)


def shown(launched: Launch) -> str:
    """All that a launch is, as JSON."""
    parts = {
        "argv": launched.argv,
        "shorthand": launched.shorthand,
        "folder": str(launched.folder),
        "env": dict(sorted(launched.env.items())),
        "files": {str(path): json.loads(text) for path, text in launched.files.items()},
    }
    return json.dumps(parts, indent=1) + "\n"


def config(knobs: dict[str, Any], raw: str = "", devices: int = 0) -> Any:
    (text,) = launch(knobs, raw, devices).files.values()
    return json.loads(text)["BackendConfig"]


@pytest.mark.parametrize("name", CASES)
def test_a_launch_is_what_the_golden_file_says(name: str) -> None:
    assert shown(launch(*CASES[name])) == (GOLDEN / f"{name}.json").read_text()


def test_installed_settings_that_no_knob_sets_are_kept(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    installed = {
        "Version": "1.0.0",
        "ServerConfig": {
            "managementIpAddress": "127.0.0.2",
            "port": 1,
            "tlsCert": "security/certs/server.pem",
        },
        "BackendConfig": {
            "tokenizerProcessNumber": 8,
            "ModelDeployConfig": {
                "ModelConfig": [{"modelName": "llama_65b", "npuMemSize": -1, "plugin_params": "{}"}]
            },
        },
    }
    (conf / "config.json").write_text(json.dumps(installed))
    (tmp_path / "version.info").write_text("Ascend-mindie-service\nVersion: 2.1.RC1\n")
    here = replace(engine, install=tmp_path)
    (text,) = here.launch(MODEL, {}, (), PLACE).files.values()
    made = json.loads(text)
    assert made["Version"] == "1.0.0"
    assert made["ServerConfig"]["tlsCert"] == "security/certs/server.pem"
    assert "managementIpAddress" not in made["ServerConfig"]
    assert made["ServerConfig"]["port"] == made["ServerConfig"]["managementPort"] == 1025
    assert made["BackendConfig"]["tokenizerProcessNumber"] == 8
    (model,) = made["BackendConfig"]["ModelDeployConfig"]["ModelConfig"]
    assert "plugin_params" not in model
    assert (model["npuMemSize"], model["modelName"], model["modelWeightPath"]) == (
        -1,
        "Qwen3-30B-A3B",
        MODEL,
    )
    assert json.loads((conf / "config.json").read_text()) == installed
    assert here.version() == "2.1.RC1"


def test_installed_config_is_copied_not_changed() -> None:
    base: dict[str, Any] = {"ServerConfig": {"port": 1}}
    configure(base, parse([]), MODEL, "m", PLACE)
    assert base == {"ServerConfig": {"port": 1}}


def test_an_installation_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/config.json").write_text("{")
    with pytest.raises(BadInput, match="it cannot be read"):
        replace(engine, install=tmp_path).launch(MODEL, {}, (), PLACE)


def test_context_len_admits_a_request_of_32000_tokens() -> None:
    assert config({})["ModelDeployConfig"]["maxSeqLen"] == 8192
    made = config({"context_len": 32100})
    assert (
        made["ModelDeployConfig"]["maxSeqLen"]
        == made["ModelDeployConfig"]["maxInputTokenLen"]
        == 32100
    )
    assert (
        made["ScheduleConfig"]["maxPrefillTokens"]
        == made["ScheduleConfig"]["maxIterTimes"]
        == 32100
    )


@pytest.mark.parametrize("flag", ["--enable-split", "--enable-multi-token-prediction"])
def test_prefix_caching_leaves_the_other_plugin_in_place(flag: str) -> None:
    plugins = config({"prefix_cache": True}, flag)["ModelDeployConfig"]["ModelConfig"][0][
        "plugin_params"
    ]
    assert set(json.loads(plugins)["plugin_type"].split(",")) == {
        "prefix_cache",
        "splitfuse" if "split" in flag else "mtp",
    }


def test_the_timeouts_are_written() -> None:
    (text,) = launch({}, "--token-timeout 30 --e2e-timeout 3000").files.values()
    server = json.loads(text)["ServerConfig"]
    assert (server["tokenTimeout"], server["e2eTimeout"]) == (30, 3000)


def test_a_small_batch_is_not_scheduled_ahead() -> None:
    assert launch({"max_seqs": 50}).env["MINDIE_ASYNC_SCHEDULING_ENABLE"] == "0"
    assert launch({"max_seqs": 51}).env["MINDIE_ASYNC_SCHEDULING_ENABLE"] == "1"
    assert launch({}, "--enforce-eager").env["MINDIE_ASYNC_SCHEDULING_ENABLE"] == "0"


def test_memory_of_the_npu_is_limited_by_a_variable() -> None:
    assert launch({}).env["NPU_MEMORY_FRACTION"] == "0.8"
    assert launch({"memory_fraction": 0.9}).env["NPU_MEMORY_FRACTION"] == "0.9"


@pytest.mark.parametrize("model", ["Qwen/Qwen3-30B-A3B", "Qwen3-30B-A3B"])
def test_hub_name_is_refused_with_the_remedy(model: str) -> None:
    with pytest.raises(BadInput) as refused:
        launch({}, model=model)
    assert str(refused.value) == (
        f"model: MindIE downloads nothing, and {model} is not a folder; download it, and name its "
        "folder, such as ./Qwen3-30B-A3B or /models/Qwen3-30B-A3B"
    )


def test_relative_folder_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = launch({}, model="./Qwen3-30B-A3B").files.values()
    (model,) = json.loads(text)["BackendConfig"]["ModelDeployConfig"]["ModelConfig"]
    assert (model["modelWeightPath"], model["modelName"]) == (
        str(tmp_path / "Qwen3-30B-A3B"),
        "Qwen3-30B-A3B",
    )


@pytest.mark.parametrize(
    ("raw", "plugin", "gamma"),
    [
        (
            "--enable-memory-decoding --memory-decoding-length 8",
            {"plugin_type": "memory_decoding", "decoding_length": 8, "dynamic_algo": False},
            8,
        ),
        (
            "--enable-lookahead",
            {"plugin_type": "la", "level": 4, "window": 5, "guess_set_size": 5},
            30,
        ),
    ],
)
def test_plugin_that_guesses_tokens(raw: str, plugin: dict[str, Any], gamma: int) -> None:
    deployed = config({}, raw)["ModelDeployConfig"]
    assert json.loads(deployed["ModelConfig"][0]["plugin_params"]) == plugin
    assert deployed["speculationGamma"] == gamma


def test_settings_as_json_and_expected_times_are_entries() -> None:
    raw = """--kv-pool-config {"backend":"x"} --models {"qwen":{"ep_level":2}} --async-scheduler-wait-time 60
        --max-first-token-wait-time 100 --enable-buffer-response --prefill-expected-time-ms 500
        --decode-expected-time-ms 50"""  # noqa: E501
    made = config({}, raw)
    (model,) = made["ModelDeployConfig"]["ModelConfig"]
    assert made["kvPoolConfig"] == {"backend": "x"}
    assert (model["models"], model["async_scheduler_wait_time"]) == ({"qwen": {"ep_level": 2}}, 60)
    schedule = made["ScheduleConfig"]
    assert (schedule["maxFirstTokenWaitTime"], schedule["bufferResponseEnabled"]) == (100, True)
    assert (schedule["prefillExpectedTime"], schedule["decodeExpectedTime"]) == (500, 50)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_address_is_refused(host: str) -> None:
    with pytest.raises(BadInput, match="host: MindIE does not answer at"):
        NOWHERE.launch(MODEL, {}, (), replace(PLACE, host=host))


@pytest.mark.parametrize(
    ("knobs", "raw", "devices", "problem"),
    [
        (
            {},
            "--max-model-len 4",
            0,
            "--max-model-len: mindie has no such flag; use one of --log-level",
        ),
        ({}, "--no-max-seq-len", 0, "--no-max-seq-len: mindie has no such flag"),
        ({}, "--max-seq-len many", 0, "--max-seq-len: 'many' is not a whole number"),
        ({}, "--max-seq-len", 0, "--max-seq-len: it has 0 values"),
        ({}, "--max-batch-size 5001", 0, "--max-batch-size: 5001 is out of range; give 1 to 5000"),
        ({}, "--enable-split yes", 0, "--enable-split: it takes no value, but 'yes' follows"),
        (
            {"context_len": 100},
            "--max-prefill-tokens 200",
            0,
            "--max-prefill-tokens: 200 is more than --max-seq-len",
        ),
        (
            {},
            "--max-input-token-len 300 --max-prefill-tokens 200",
            0,
            "--max-input-token-len: 300 is more than",
        ),
        (
            {"max_seqs": 8},
            "--max-prefill-batch-size 9",
            0,
            "--max-prefill-batch-size: 9 is more than",
        ),
        ({}, "--split-chunk-tokens 100", 0, "--split-chunk-tokens: 100 is not a multiple of 16"),
        ({}, "--policy-type 3", 0, "--policy-type: unknown policy 3"),
        ({"tensor_parallel": 3}, "", 0, "--tensor-parallel-size: 3 is not a power of 2"),
        (
            {"pipeline_parallel": 2, "data_parallel": 2},
            "",
            0,
            "--pipeline-parallel-size: it cannot be used with data",
        ),
        ({"data_parallel": 2}, "-cp 2", 0, "--data-parallel-size: it cannot be used with context"),
        ({"tensor_parallel": 4}, "", 2, "devices: 2 devices, but the parallel sizes need 4"),
        (
            {"tensor_parallel": 4},
            "-sp 2",
            0,
            "--sequence-parallel-size: 2 is not the tensor parallel size; give 4",
        ),
        (
            {"tensor_parallel": 4},
            "-moe-ep 2 -moe-tp 4",
            0,
            "the expert sizes do not match the devices",
        ),
        (
            {"chunked_prefill": True},
            "--enable-multi-token-prediction",
            0,
            "it cannot be used with --enable-split",
        ),
        (
            {"data_parallel": 2, "prefix_cache": True},
            "",
            0,
            "--enable-prefix-caching: it cannot be used with data",
        ),
        (
            {},
            "--enable-lookahead --enable-memory-decoding",
            0,
            "it cannot be used with --enable-lookahead",
        ),
        (
            {"prefix_cache": True},
            "--enable-lookahead",
            0,
            "--enable-lookahead: it cannot be used with --enable-prefix",
        ),
        (
            {},
            "--enable-buffer-response",
            0,
            "--prefill-expected-time-ms: missing, and --enable-buffer-response needs",
        ),
        (
            {},
            "--kv-pool-config [1]",
            0,
            "--kv-pool-config: '[1]' is not a mapping; give a JSON object",
        ),
        (
            {},
            "--dtype bfloat16",
            0,
            "--dtype: loadgen changes no file of a model; make the change in config.json",
        ),
        ({}, "--rope-theta 1e6", 0, "--rope-theta: loadgen changes no file of a model"),
        ({"kv_dtype": "fp8"}, "", 0, "kv_dtype: mindie has no such setting"),
    ],
)
def test_knobs_that_contradict_each_other_are_refused(
    knobs: dict[str, Any], raw: str, devices: int, problem: str
) -> None:
    with pytest.raises(BadInput) as refused:
        launch(knobs, raw, devices)
    assert problem in str(refused.value)


def test_all_devices_are_used_where_no_size_is_said() -> None:
    made = config({}, devices=4)
    assert made["npuDeviceIds"] == [[0, 1, 2, 3]]
    assert made["ModelDeployConfig"]["ModelConfig"][0]["worldSize"] == 4


if __name__ == "__main__":
    for name, case in CASES.items():
        (GOLDEN / f"{name}.json").write_text(shown(launch(*case)))
