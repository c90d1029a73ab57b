"""GPUStack's side of a job; the interpreter of its environment runs this.

Each line of stdin is a JSON list: a verb and its arguments. Each is answered by a line of JSON on
stdout.

["profiles"]                    the file of the profiles that GPUStack ships, and the profiles by
name ["compose", PLACES, COLUMNS]    the words of the command line that its worker composes ["read",
FOLDER, COLUMNS]       what its worker makes of the files of a job

COLUMNS has the columns of a benchmark, as GPUStack's form sends them; PLACES has what depends on
the machine.
"""

import importlib.resources
import json
import logging
import sys

import yaml
from gpustack.schemas.benchmark import Benchmark, BenchmarkCreate, BenchmarkResultCreate
from gpustack.worker.benchmark import analysis
from gpustack.worker.benchmark.runner import BenchmarkRunner
from gpustack.worker.benchmark_manager import BenchmarkManager

ID = 7
NOT_OF_THE_ROW = ("route_name",)


def benchmark(columns: dict) -> Benchmark:
    """The row of a benchmark, checked as the form's request is."""
    asked = BenchmarkCreate.model_validate(
        {
            "name": "b",
            "model_instance_name": "m-0",
            "model_name": "sim",
            "cluster_id": 1,
            "model_id": 1,
        }
        | columns
    )
    return Benchmark(id=ID, **asked.model_dump(exclude=set(NOT_OF_THE_ROW)))


def compose(places: dict, columns: dict) -> list[str]:
    runner = object.__new__(BenchmarkRunner)
    runner._benchmark = benchmark(columns)
    runner._model_endpoint = places["target"]
    runner._model_path = places["processor"]
    runner._benchmark_dir = places["folder"]
    runner._api_url, runner._api_key = places["progress"], "t0ken"
    runner._model_backend_parameters = places.get("backend_parameters")
    runner._progress_insecure_skip_tls_verify = False
    runner._route_name = columns.get("route_name")
    runner._route_target = lambda: places["target"]
    return runner._build_command_args()


def read(folder: str, columns: dict) -> dict:
    row = benchmark(columns)
    manager = object.__new__(BenchmarkManager)
    manager._benchmark_dir = folder
    collected = manager._collect_results(row)
    for point in collected.results:
        BenchmarkResultCreate.model_validate(point)
    best = analysis.compute_best_points(row, collected.results)
    ramp = analysis.read_ramp_facts(folder, row)
    return {
        "points": [
            {k: v for k, v in point.items() if k != "raw_metrics"} for point in collected.results
        ],
        "metrics": collected.metrics.model_dump(exclude={"raw_metrics"})
        if collected.metrics
        else None,
        "loaded": collected.loaded,
        "skipped": collected.skipped_reason,
        "best": best,
        "validity": analysis.compute_validity(row, collected.results, best, ramp),
        "ramp": ramp,
        "ended": manager._runner_left_terminal_artifact(row),
    }


def profiles() -> dict:
    file = (
        importlib.resources.files("gpustack")
        / "assets"
        / "profiles_config"
        / "profiles_config.yaml"
    )
    return {
        "file": str(file),
        "profiles": {one["name"]: one for one in yaml.safe_load(file.read_text())["profiles"]},
    }


def main() -> None:
    logging.disable(logging.WARNING)
    answers, sys.stdout = sys.stdout, sys.stderr  # its packages may print
    verbs = {"profiles": profiles, "compose": compose, "read": read}
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        print(json.dumps(verbs[verb](*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main()
