"""Readers of other projects: what they read of loadgen's files, and where it stands in these.

`make release-check` runs them. What each has told then is kept in `tests/data`, and `make test-all`
compares that with the files of today.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engines.environments import Recipe
from bench.peers import recipes
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics.records.trailer import WorkerReport
from loadgen.report import to_json
from tests.helpers.counted_run import counted_run
from tests.helpers.run_facts import failed, result, steady
from tests.helpers.source import ROOT

TOLD = ROOT / "tests" / "data" / "foreign_readers.json"
RESULT, AIPERF, INFERENCE_PERF = "run.json", "aiperf", "inference-perf"
AIPERF_FILE = f"{AIPERF}/profile_export_aiperf.json"
STAGE_FILE = f"{INFERENCE_PERF}/stage_0_lifecycle_metrics.json"
LATENCY, RATES = ((STAGE_FILE, "successes", name) for name in ("latency", "throughput"))
START_NS = 1_700_000_000 * 10**9


@dataclass(frozen=True)
class Reader:
    """Foreign code.

    Attributes:
        recipe: Its environment; None: that of the tests, with a clone of its repository.
        script: Reads the folder of its first argument, and prints what it has read as JSON.
        places: What it should have read: a file and the keys in it; or the value itself.
    """

    recipe: Recipe | None
    script: str
    places: dict[str, Any]


def written(folder: Path) -> Path:
    """Write a result, the files of AIPerf and those of inference-perf; return the folder."""
    records = counted_run(folder / "run.jsonl")
    for tool in (AIPERF, INFERENCE_PERF):
        assert dispatch(["report", str(records), "--as", tool, "--to", str(folder / tool)]) == 0
    requests = [
        steady(
            index,
            due=100 * index,
            ttft=20 + index,
            gap=10 + index % 3,
            n=2 + index % 4,
            counts={"prompt_tokens": 10 + index, "completion_tokens": 2 + index % 4},
        )
        for index in range(30)
    ]
    requests.append(failed(30, Outcome.STATUS, due=3000))
    settings = RunSettings(max_concurrency=4, num_prompts=31)
    data = result(requests, settings, shards=[WorkerReport(start_unix_ns=START_NS)])
    (folder / RESULT).write_text(to_json(data) + "\n")
    return folder


def expected(reader: Reader, folder: Path) -> dict[str, Any]:
    """Return what a reader should tell of a folder."""
    return {name: _at(folder, place) for name, place in reader.places.items()}


def _at(folder: Path, place: Any) -> Any:
    if not isinstance(place, tuple):
        return place
    file, *keys = place
    value = json.loads((folder / file).read_text())
    for key in keys:
        value = value[key]
    return value


OF_AIPERF = {
    "ok": (AIPERF_FILE, "request_count", "avg"),
    "failed": (AIPERF_FILE, "error_request_count", "avg"),
    "ttft_p99": (AIPERF_FILE, "time_to_first_token", "p99"),
    "mean_ttft": (AIPERF_FILE, "time_to_first_token", "avg"),
}
OWN_AIPERF = """
import json, sys
from pathlib import Path
from aiperf.common.models.export_models import JsonExportData
from aiperf.plot.core.data_loader import DataLoader

folder = Path(sys.argv[1]) / "aiperf"
summary = JsonExportData.model_validate_json((folder / "profile_export_aiperf.json").read_bytes())
requests = DataLoader().load_run(folder).requests
failed = int(requests["error"].notna().sum())
print(json.dumps({
    "ok": len(requests) - failed,
    "failed": failed,
    "ttft_p99": summary.time_to_first_token.p99,
    "mean_ttft": requests["time_to_first_token"].mean(),
    "count": summary.request_count.avg,
    "errors": sum(each.count for each in summary.error_summary),
}))
"""
KNEEBENCH = """
import json, sys
from pathlib import Path
from kneebench.loadgen.aiperf.parse import parse_point

point = parse_point(Path(sys.argv[1]) / "aiperf")
ok = [each for each in point.profiling_requests() if each.ok]
print(json.dumps({
    "ok": len(ok),
    "failed": len(point.requests) - len(ok),
    "ttft_p99": point.stat("time_to_first_token", "p99"),
    "mean_ttft": sum(each.ttft_ms for each in ok) / len(ok),
}))
"""
# Its wrapper of AIPerf, with a program in place of AIPerf that does nothing.
EVALSCOPE = """
import json, sys
from pathlib import Path
from evalscope.perf.scenarios import agentx

folder = Path(sys.argv[1])
summary = agentx._run_one_agentx(
    command=[sys.executable, "-c", ""],
    env={},
    scenario=agentx.AgentXScenario(mode="smoke", num_gpus=2),
    dataset=agentx.AgentXDatasetProvenance(
        source="local", dataset_id="", trace_file="", sha256="", verified=False
    ),
    concurrency=1,
    duration=1.0,
    seed=0,
    run_path=folder,
    artifacts_path=folder / "aiperf",
)
print(json.dumps({
    "status": summary.status,
    "schema": summary.aiperf_schema_version,
    "submission_valid": summary.submission_valid,
    "ok": summary.metrics["request_count"].avg,
    "failed": sum(each["count"] for each in summary.error_summary),
    "ttft_p99": summary.metrics["time_to_first_token"].p99,
    "mean_ttft": summary.metrics["time_to_first_token"].avg,
    "rate": summary.derived_metrics["request_throughput_per_gpu"].avg * 2,
}))
"""
VALIDATORS = """
import json, sys
from pathlib import Path
from inference_perf.reportgen.per_stage.validation import PerStageLifecycleValidator
from inference_perf.reportgen.summary.validation import SummaryLifecycleValidator
from inference_perf.reportgen.validation import run_validators
from inference_perf.utils import ReportFile

paths = (Path(sys.argv[1]) / "inference-perf").iterdir()
files = [ReportFile(path.stem, json.loads(path.read_text())) for path in paths]
result = run_validators([SummaryLifecycleValidator(), PerStageLifecycleValidator()], files)
print(json.dumps({
    "files": " ".join(sorted(file.get_filename() for file in files)),
    "findings": "; ".join(each.message for each in result.all_errors() + result.all_warnings()),
}))
"""
LLM_D = """
import json, sys
from llmd_benchmark_report import native_to_br0_2 as imports

folder, told = sys.argv[1], {}
for name, read, file, scale in (
    ("result", imports.import_vllm_benchmark, "run.json", 1),
    ("aiperf", imports.import_aiperf, "aiperf/profile_export_aiperf.json", 1000),
    ("stage", imports.import_inference_perf, "inference-perf/stage_0_lifecycle_metrics.json", 1),
):
    report = read(f"{folder}/{file}").model_dump(mode="json")
    whole = report["results"]["request_performance"]["aggregate"]
    assert report["version"].startswith("0.2"), report["version"]
    told |= {
        f"{name}_failed": whole["requests"]["failures"],
        f"{name}_mean_ttft": whole["latency"]["time_to_first_token"]["mean"] * scale,
        f"{name}_p99_latency": whole["latency"]["request_latency"]["p99"] * scale,
        f"{name}_output_rate": whole["throughput"]["output_token_rate"]["mean"],
        f"{name}_total_rate": whole["throughput"]["total_token_rate"]["mean"],
        f"{name}_request_rate": whole["throughput"]["request_rate"]["mean"],
    }
told["stage_output_len"] = report["scenario"]["load"]["standardized"]["output_seq_len"]["value"]
print(json.dumps(told))
"""
INFERENCEX = """
import json, os, runpy, sys
from contextlib import redirect_stdout
from pathlib import Path

folder, clone = map(Path, sys.argv[1:3])
os.chdir(folder)
os.environ |= dict.fromkeys(
    ("RUNNER_TYPE", "FRAMEWORK", "PRECISION", "SPEC_DECODING", "MODEL_PREFIX", "IMAGE"), "x"
) | {"RESULT_FILENAME": "run", "ISL": "1024", "OSL": "256", "DISAGG": "false"}
os.environ |= {"TP": "2", "EP_SIZE": "1", "DP_ATTENTION": "false"}
sys.path.insert(0, str(clone / "utils"))
with redirect_stdout(sys.stderr):
    runpy.run_path(str(clone / "utils" / "process_result.py"), run_name="__main__")
row = json.loads(Path("agg_run.json").read_text())
power = json.loads(Path("power_validation_run.json").read_text())["benchmark_window"]
from agentic.aggregation import request_metrics

records, counts = request_metrics.load_records_with_accounting(
    Path("aiperf/profile_export.jsonl")
)
latency, _ = request_metrics.compute_latency_stats(records)
print(json.dumps({
    "streams": row["conc"],
    "model": row["model"],
    "output_rate": row["output_tput_per_gpu"] * 2,
    "mean_ttft_ms": row["mean_ttft"] * 1000,
    "p99_tpot_ms": row["p99_tpot"] * 1000,
    "mean_tpot_ms": 1000 / row["mean_intvty"],
    "start": power["start_time_unix"],
    "end": power["end_time_unix"],
    "agentic_ok": counts["records_profiled"],
    "agentic_failed": counts["records_error_dropped"],
    "agentic_mean_ttft_ms": latency["mean_ttft"] * 1000,
}))
"""
READERS = {
    "aiperf": Reader(
        recipes.aiperf,
        OWN_AIPERF,
        OF_AIPERF | {"count": OF_AIPERF["ok"], "errors": OF_AIPERF["failed"]},
    ),
    "kneebench": Reader(recipes.kneebench, KNEEBENCH, OF_AIPERF),
    "evalscope": Reader(
        recipes.evalscope,
        EVALSCOPE,
        OF_AIPERF
        | {
            "status": "completed",
            "schema": (AIPERF_FILE, "schema_version"),
            "submission_valid": False,
            "rate": (AIPERF_FILE, "request_throughput", "avg"),
        },
    ),
    "inference-perf": Reader(
        recipes.inference_perf,
        VALIDATORS,
        {
            "files": "stage_0_lifecycle_metrics.json summary_lifecycle_metrics.json",
            "findings": "",
        },
    ),
    "llm-d": Reader(
        recipes.llm_d,
        LLM_D,
        {
            "result_failed": (RESULT, "failed"),
            "result_mean_ttft": (RESULT, "mean_ttft_ms"),
            "result_p99_latency": (RESULT, "p99_e2el_ms"),
            "result_output_rate": (RESULT, "output_throughput"),
            "result_total_rate": (RESULT, "total_token_throughput"),
            "result_request_rate": (RESULT, "request_throughput"),
            "aiperf_failed": OF_AIPERF["failed"],
            "aiperf_mean_ttft": OF_AIPERF["mean_ttft"],
            "aiperf_p99_latency": (AIPERF_FILE, "request_latency", "p99"),
            "aiperf_output_rate": (AIPERF_FILE, "output_token_throughput", "avg"),
            "aiperf_total_rate": (AIPERF_FILE, "total_token_throughput", "avg"),
            "aiperf_request_rate": (AIPERF_FILE, "request_throughput", "avg"),
            "stage_output_len": (STAGE_FILE, "successes", "output_len", "mean"),
            "stage_failed": (STAGE_FILE, "failures", "count"),
            "stage_mean_ttft": (*LATENCY, "time_to_first_token", "mean"),
            "stage_p99_latency": (*LATENCY, "request_latency", "p99"),
            "stage_output_rate": (*RATES, "output_tokens_per_sec"),
            "stage_total_rate": (*RATES, "total_tokens_per_sec"),
            "stage_request_rate": (*RATES, "requests_per_sec"),
        },
    ),
    "InferenceX": Reader(
        None,
        INFERENCEX,
        {
            "streams": (RESULT, "max_concurrency"),
            "model": (RESULT, "model_id"),
            "output_rate": (RESULT, "output_throughput"),
            "mean_ttft_ms": (RESULT, "mean_ttft_ms"),
            "p99_tpot_ms": (RESULT, "p99_tpot_ms"),
            "mean_tpot_ms": (RESULT, "mean_tpot_ms"),
            "start": (RESULT, "benchmark_start_time_unix"),
            "end": (RESULT, "benchmark_end_time_unix"),
            "agentic_ok": OF_AIPERF["ok"],
            "agentic_failed": OF_AIPERF["failed"],
            "agentic_mean_ttft_ms": OF_AIPERF["mean_ttft"],
        },
    ),
}
