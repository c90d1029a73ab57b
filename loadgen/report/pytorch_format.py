"""PyTorch's benchmark format: one record per metric, as `vllm bench serve` writes it for PyTorch's dashboards.

Where SAVE_TO_PYTORCH_BENCHMARK_FORMAT is set, a saved result gets such a file beside it: `NAME.pytorch.json`.
https://github.com/pytorch/pytorch/wiki/How-to-integrate-with-PyTorch-OSS-benchmark-database
"""

import os
from typing import Any

from loadgen.config.settings import RunSettings, public

VARIABLE = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT"
METRICS = [f"{statistic}_{metric}_ms" for metric in ("ttft", "tpot", "itl") for statistic in ("median", "mean", "std")]
PERCENTILES = [f"p99_{metric}_ms" for metric in ("ttft", "tpot", "itl")]
# What vLLM's records leave out as too big, and what vLLM does not know.
LEFT_OUT = {"ttfts", "itls", "generated_texts", "errors", "loadgen"}


def wanted() -> bool:
    """Tell whether the environment asks for the file."""
    return bool(os.environ.get(VARIABLE))


def records(settings: RunSettings, result: dict[str, Any]) -> list[dict[str, Any]]:
    """Make one record per measured metric, as vLLM does: arguments, model, and the result without LEFT_OUT.

    Lists that have a number for each request stay in, as in vLLM.
    """
    measured = [name for name in (*METRICS, *PERCENTILES) if result.get(name) is not None]
    extra = {
        name: value for name, value in result.items() if name not in (*METRICS, *PERCENTILES) and name not in LEFT_OUT
    }
    arguments = public(settings)
    if "tensor_parallel_size" in extra:  # out of --metadata, as vLLM takes it
        arguments["tensor_parallel_size"] = extra["tensor_parallel_size"]
    about = {
        "args": arguments,
        "compilation_config.mode": extra.get("compilation_config.mode", ""),
        "optimization_level": extra.get("optimization_level", ""),
        "use_compile": extra.get("compilation_config.mode") != "0" and "eager" not in (settings.result_filename or ""),
    }
    return [
        {
            "benchmark": {"name": "vLLM benchmark", "extra_info": about},
            "model": {"name": result["model_id"]},
            "metric": {"name": name, "benchmark_values": [result[name]], "extra_info": extra},
        }
        for name in measured
    ]
