"""GPUStack's side of the contract: the command lines that it composes, and what its reader makes
of a summary.
"""

import json
from typing import Any

from tests.helpers.source import ROOT

DATA = ROOT / "tests" / "data" / "benchmark_runner"
SCHEMA = json.loads((DATA / "schema.json").read_text())
GUIDELLM = json.loads((DATA / "guidellm-0.6.0.json").read_text())
COMMAND_LINES = {
    line["name"]: line["argv"]
    for line in json.loads((DATA / "arguments.json").read_text())["command_lines"]
}


def argv(name: str, **values: object) -> list[str]:
    """A command line with what depends on the job, without `benchmark run`."""
    filled = []
    for part in COMMAND_LINES[name][2:]:
        for key, value in values.items():
            part = part.replace("{" + key + "}", str(value))
        filled.append(part)
    return filled


def at(summary: Any, path: str) -> Any:
    """What stands at a path as `benchmarks.0.metrics`."""
    for key in path.split("."):
        summary = summary[int(key)] if isinstance(summary, list) else summary[key]
    return summary


def refusals(summary: dict[str, Any]) -> list[str]:
    """Every place at which GPUStack's reader would refuse a summary: it takes no null, and
    misses no number.
    """
    found = []

    def number(holder: dict[str, Any], key: str, where: str, kind: type = float) -> None:
        value = holder.get(key)
        good = isinstance(value, int if kind is int else int | float) and not isinstance(
            value, bool
        )
        if not good or value != value:
            found.append(f"{where}.{key}: {value!r}")

    for benchmark in summary["benchmarks"]:
        for key in SCHEMA["numbers_of_a_benchmark"]:
            number(benchmark, key, "benchmark")
        for key in SCHEMA["numbers_of_scheduler_metrics"]:
            number(benchmark["scheduler_metrics"], key, "scheduler_metrics")
        metrics = benchmark["metrics"]
        for status in SCHEMA["statuses"]:
            number(metrics["request_totals"], status, "request_totals", int)
        optional = [name for name in SCHEMA["optional_distributions"] if name in metrics]
        for name in SCHEMA["distributions"] + optional:
            if "successful" not in metrics.get(name, {}):
                found.append(f"{name}.successful: missing")
            for status, one in metrics.get(name, {}).items():
                for key in SCHEMA["statistics"]:
                    number(one, key, f"{name}.{status}")
                for key in SCHEMA["percentiles"]:
                    number(one["percentiles"], key, f"{name}.{status}.percentiles")
        for requests in benchmark.get("requests_truncated", {}).values():
            for request in requests:
                found += [
                    f"request.{key}: missing"
                    for key in SCHEMA["keys_of_a_request"]
                    if key not in request
                ]
                if request["info"]["status"] not in SCHEMA["statuses_of_a_request"]:
                    found.append(f"request.info.status: {request['info']['status']}")
    return found
