"""Jobs that GPUStack's own code composes, carried out on the simulator and read by its own
reader.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import TOKENIZER, loadgen, served
from tests.qa.gpustack.gpustack_code import GPUStack

RANDOM = {"dataset_name": "Random", "dataset_input_tokens": 16, "dataset_output_tokens": 8}
RATE = RANDOM | {"load_type": "fixed_rate", "request_rate": 50, "total_requests": 60}
STREAMS = RANDOM | {"load_type": "concurrency", "request_rate": 4, "total_requests": 60}
STAGES = [{"rate": 4, "max_requests": 40}, {"rate": 8, "max_requests": 40, "max_seconds": 30}]
FEW = {"lower_bound": 4, "upper_bound": 8, "max_points": 3, "max_total_seconds": 300}
SEARCH = RANDOM | {"auto_tune": True} | FEW
NINE = {
    f"slo_{of}_{metric}_ms": 5000
    for of in ("avg", "p95", "p99")
    for metric in ("ttft", "tpot", "latency")
}
BUCKETS = [
    {"prefix_tokens": 32, "prefix_count": 2, "bucket_weight": 70},
    {"prefix_tokens": 64, "prefix_count": 1, "bucket_weight": 30},
]
# Kinds of jobs: the columns of the benchmark.
KINDS: dict[str, dict[str, Any]] = {
    "a rate": RATE,
    "requests in flight": STREAMS,
    "all at once": RATE | {"request_rate": -1},
    "seconds": RATE | {"max_seconds": 3.0},
    "spread lengths": RATE
    | {"dataset_input_stdev": 4, "dataset_input_min": 8, "dataset_input_max": 30},
    "a fixed seed": RATE | {"dataset_seed": 9, "dataset_seed_increment": False},
    "a number of errors": RATE | {"max_errors": 5},
    "a share of errors": RATE | {"max_error_rate": 0.2},
    "warm-up and cool-down by share": RATE | {"warmup": 0.1, "cooldown": 0.1},
    "warm-up and cool-down by number": STREAMS | {"warmup": 5, "cooldown": 5},
    "saturation": RATE | {"stop_on_saturation": True},
    "turns": STREAMS | {"turns": 3},
    "shared prefixes": STREAMS | {"prefix_buckets": BUCKETS},
    "turns and shared prefixes": STREAMS | {"turns": 2, "prefix_buckets": BUCKETS},
    "stages of rates": RANDOM
    | {"load_type": "fixed_rate", "stages": [s | {"rate": 50} for s in STAGES]},
    "stages of requests in flight": RANDOM | {"load_type": "concurrency", "stages": STAGES},
    "a search of a rate": SEARCH | {"load_type": "fixed_rate"},
    "a search of requests in flight": SEARCH | {"load_type": "concurrency"},
    "a search with all limits": SEARCH | NINE | {"load_type": "concurrency"},
    "a search with phases": SEARCH
    | {"load_type": "concurrency", "warmup": 0.1, "cooldown": 0.1, "max_errors": 50},
    "a search of sessions": SEARCH
    | {"load_type": "concurrency", "turns": 2, "prefix_buckets": BUCKETS},
    "the entrance of a deployment": RATE | {"target_mode": "route", "route_name": "sim"},
}


@pytest.fixture(scope="module")
def simulator() -> Iterator[str]:
    with served() as (url, _):
        yield url


def carried_out(
    gpustack: GPUStack, columns: dict[str, Any], target: str, folder: Path, **places: Any
) -> dict[str, Any]:
    """What GPUStack reads of a job that it composed."""
    places = {
        "target": target,
        "processor": TOKENIZER,
        "folder": folder,
        "progress": "http://127.0.0.1:1",
    } | places
    words = gpustack.command_line(columns, **places)
    done = loadgen("benchmark-runner", *words, timeout_s=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return gpustack.read(folder, columns)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_job_is_carried_out_and_read(
    kind: str, gpustack: GPUStack, simulator: str, tmp_path: Path
) -> None:
    columns = KINDS[kind]
    found = carried_out(
        gpustack, columns, simulator, tmp_path, backend_parameters=["--trust-remote-code"]
    )
    assert found["skipped"] is None
    assert found["metrics"]["request_successful"] > 0
    assert found["metrics"]["request_errored"] == 0
    assert found["ended"]
    points = found["points"]
    if columns.get("stages"):
        assert [point["rate"] for point in points] == [stage["rate"] for stage in columns["stages"]]
    elif columns.get("auto_tune"):
        assert points[0]["rate"] == 4
        assert found["best"]["recommended_rate"] == max(
            point["rate"] for point in points if point["rate"]
        )
        assert found["loaded"] == found["ramp"]["points_measured"] <= columns["max_points"]
        assert found["validity"]["stop_reason"]
    else:
        assert [point["rate"] for point in points] == [
            None if kind == "all at once" else columns["request_rate"]
        ]
    if columns.get("warmup") and not columns.get("auto_tune"):
        assert found["metrics"]["request_total"] in (48, 50)


def test_questions_of_sharegpt_are_those_of_the_asked_lengths(
    gpustack: GPUStack, simulator: str, tmp_path: Path
) -> None:
    file = tmp_path / "ShareGPT_V3.json"
    asked = ["word " * (1 + number % 9) for number in range(90)]
    turns = [
        [{"from": "human", "value": text}, {"from": "gpt", "value": "yes it is"}] for text in asked
    ]
    file.write_text(
        json.dumps([{"id": str(i), "conversations": both} for i, both in enumerate(turns)])
    )
    columns = RATE | {
        "dataset_name": "ShareGPT",
        "dataset_input_min": 4,
        "dataset_input_max": 5,
        "total_requests": 15,
    }
    with GPUStack.started(tmp_path, GPUSTACK_BENCHMARK_DATASET_SHAREGPT_PATH=str(file)) as other:
        found = carried_out(other, columns, simulator, tmp_path / "out")
    assert found["metrics"]["request_successful"] == 15


def test_every_shipped_profile_is_a_job_by_its_name(gpustack: GPUStack, tmp_path: Path) -> None:
    """The command line that GPUStack composes from the form that a profile has filled asks for
    the same.
    """
    from loadgen.lab.gpustack import arguments
    from loadgen.lab.gpustack.job import Job

    file, profiles = gpustack.profiles()
    assert list(profiles) == ["Max Throughput", "Meet Latency SLO"]
    for name, profile in profiles.items():
        places = {
            "target": "http://127.0.0.1:1",
            "processor": TOKENIZER,
            "folder": tmp_path,
            "progress": "http://a",
        }
        columns = {
            key: value for key, value in profile.items() if key not in ("name", "description")
        }
        composed = Job.of(
            arguments.parse(gpustack.command_line(columns | {"dataset_seed": 7}, **places)[2:])
        )
        flags = [
            "--target",
            "http://127.0.0.1:1",
            "--model",
            "sim",
            "--processor",
            TOKENIZER,
            "--random-seed",
            "7",
        ]
        patience = [
            "--backend-kwargs",
            '{"timeout": 3600}',
            "--output-dir",
            str(tmp_path),
            "--outputs",
            "7.dual_json",
        ]
        by_name = Job.of(arguments.parse(["--scenario", f"{file}#{name}", *flags, *patience]))
        assert by_name.auto_tune == composed.auto_tune
