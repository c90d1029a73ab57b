"""Foreign code reads the files that loadgen writes in its place: each tool from its wheel."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.engines.environments import made
from bench.peers import recipes
from loadgen.cli.main import dispatch
from tests.helpers.counted_run import counted_run

pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]

AIPERF = """
import json, sys
from pathlib import Path
from aiperf.common.models.export_models import JsonExportData
from aiperf.plot.core.data_loader import DataLoader

folder = Path(sys.argv[1])
summary = JsonExportData.model_validate_json((folder / "profile_export_aiperf.json").read_bytes())
run = DataLoader().load_run(folder)
failed = run.requests["error"].notna().sum() if "error" in run.requests else 0
print(json.dumps({
    "ttft_p99": summary.time_to_first_token.p99,
    "count": summary.request_count.avg,
    "errors": sum(each.count for each in summary.error_summary),
    "rows": len(run.requests),
    "failed": int(failed),
    "mean_ttft": run.requests["time_to_first_token"].mean(),
}))
"""


def read_by(programs: Path, script: str, *arguments: str) -> dict[str, Any]:
    """Run a script with the Python of an environment; return the object that it prints last."""
    done = subprocess.run(
        [programs / "python", "-c", script, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_aiperf_reads_its_files(tmp_path: Path) -> None:
    records, folder = counted_run(tmp_path / "run.jsonl"), tmp_path / "artifacts"
    assert dispatch(["report", str(records), "--as", "aiperf", "--to", str(folder)]) == 0
    summary = json.loads((folder / "profile_export_aiperf.json").read_text())
    told = read_by(made(recipes.aiperf, recipes.FOLDER), AIPERF, str(folder))
    assert told["ttft_p99"] == summary["time_to_first_token"]["p99"]
    assert told["mean_ttft"] == pytest.approx(summary["time_to_first_token"]["avg"])
    assert told["count"] == summary["request_count"]["avg"]
    assert told["errors"] == told["failed"] == summary["error_request_count"]["avg"]
    assert told["rows"] == told["count"] + told["failed"]


KNEEBENCH = """
import json, sys
from pathlib import Path
from kneebench.loadgen.aiperf.parse import parse_point

point = parse_point(Path(sys.argv[1]))
ok = [each for each in point.profiling_requests() if each.ok]
print(json.dumps({
    "ok": len(ok),
    "failed": len(point.requests) - len(ok),
    "ttft_p99": point.stat("time_to_first_token", "p99"),
    "mean_ttft": sum(each.ttft_ms for each in ok) / len(ok),
}))
"""


def test_kneebench_reads_the_files_of_aiperf(tmp_path: Path) -> None:
    records, folder = counted_run(tmp_path / "run.jsonl"), tmp_path / "artifacts"
    assert dispatch(["report", str(records), "--as", "aiperf", "--to", str(folder)]) == 0
    summary = json.loads((folder / "profile_export_aiperf.json").read_text())
    told = read_by(made(recipes.kneebench, recipes.FOLDER), KNEEBENCH, str(folder))
    assert told["ok"] == summary["request_count"]["avg"]
    assert told["failed"] == summary["error_request_count"]["avg"]
    assert told["ttft_p99"] == summary["time_to_first_token"]["p99"]
    assert told["mean_ttft"] == pytest.approx(summary["time_to_first_token"]["avg"])


INFERENCE_PERF = """
import json, sys
from pathlib import Path
from inference_perf.reportgen.per_stage.validation import PerStageLifecycleValidator
from inference_perf.reportgen.summary.validation import SummaryLifecycleValidator
from inference_perf.reportgen.validation import run_validators
from inference_perf.utils import ReportFile

paths = Path(sys.argv[1]).iterdir()
files = [ReportFile(path.stem, json.loads(path.read_text())) for path in paths]
result = run_validators([SummaryLifecycleValidator(), PerStageLifecycleValidator()], files)
print(json.dumps({
    "files": sorted(file.get_filename() for file in files),
    "findings": [each.message for each in result.all_errors() + result.all_warnings()],
}))
"""


def test_validators_of_inference_perf_find_nothing_in_its_files(tmp_path: Path) -> None:
    records, folder = counted_run(tmp_path / "run.jsonl"), tmp_path / "reports"
    assert dispatch(["report", str(records), "--as", "inference-perf", "--to", str(folder)]) == 0
    told = read_by(made(recipes.inference_perf, recipes.FOLDER), INFERENCE_PERF, str(folder))
    assert told == {
        "files": ["stage_0_lifecycle_metrics.json", "summary_lifecycle_metrics.json"],
        "findings": [],
    }
