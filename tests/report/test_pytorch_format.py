"""PyTorch's benchmark format, written as vLLM does if the environment asks for it."""

import json

import pytest

from loadgen.config.settings import RunSettings
from tests.helpers.run_facts import measured, result, steady, unsent
from tests.helpers.saved_json import save

# What `vllm bench serve` 0.33.0 writes for each metric: the keys of its three parts, what it leaves
# out of a result as too big, and the keys of what it says of the run.
PARTS = {
    "benchmark": ["name", "extra_info"],
    "model": ["name"],
    "metric": ["name", "benchmark_values", "extra_info"],
}
LEFT_OUT = {"ttfts", "itls", "generated_texts", "errors", "server_queue_times", "server_ttfts"}
ABOUT = ["args", "compilation_config.mode", "optimization_level", "use_compile"]
NAMES = {f"{s}_{m}_ms" for m in ("ttft", "tpot", "itl") for s in ("mean", "median", "std", "p99")}
SETTINGS = RunSettings(
    save_result=True, metadata=("tensor_parallel_size=2",), header=("X-Key=hunter2",)
)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """The records that a saved run has made, and the result beside them."""
    monkeypatch.setenv("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "1")
    settings = SETTINGS.replace(result_dir=str(tmp_path), result_filename="r.json")
    snapshot = measured(
        [steady(i, due=i * 10, ttft=20 + i, gap=10, n=5) for i in range(4)], detailed=True
    )
    paths = save(settings, result(snapshot, settings), snapshot).paths
    assert [path.rpartition("/")[2] for path in paths] == ["r.json", "r.pytorch.json"]
    return json.loads((tmp_path / "r.pytorch.json").read_text()), json.loads(
        (tmp_path / "r.json").read_text()
    )


def test_each_metric_is_a_record_of_vllms_shape(saved):
    records, whole = saved
    assert {record["metric"]["name"] for record in records} == NAMES
    for record in records:
        assert {part: list(record[part]) for part in record} == PARTS
        assert list(record["benchmark"]["extra_info"]) == ABOUT
        assert record["benchmark"]["name"] == "vLLM benchmark"
        assert record["model"]["name"] == whole["model_id"]
        assert record["metric"]["benchmark_values"] == [whole[record["metric"]["name"]]]


def test_extra_info_equals_vllms_without_secrets(saved):
    records, whole = saved
    told = records[0]["metric"]["extra_info"]
    assert told == {
        name: value for name, value in whole.items() if name not in LEFT_OUT | NAMES | {"loadgen"}
    }
    assert len(told["input_lens"]) == whole["completed"]  # a list with a number for each request
    assert records[0]["benchmark"]["extra_info"]["args"]["tensor_parallel_size"] == "2"
    assert "hunter2" not in json.dumps(records)


def test_unmeasured_values_have_no_record(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "1")
    settings = SETTINGS.replace(result_dir=str(tmp_path), result_filename="r.json")
    snapshot = measured([unsent(0)])
    save(settings, result(snapshot, settings), snapshot)
    assert json.loads((tmp_path / "r.pytorch.json").read_text()) == []


def test_without_the_variable_there_is_no_such_file(tmp_path, monkeypatch):
    monkeypatch.delenv("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", raising=False)
    settings = SETTINGS.replace(result_dir=str(tmp_path), result_filename="r.json")
    snapshot = measured([steady(0)])
    save(settings, result(snapshot, settings), snapshot)
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
