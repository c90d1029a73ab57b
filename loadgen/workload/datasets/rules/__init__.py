"""Rules of `--dataset-rule`: prompts as other tools make them, to compare with their published results.

A rule is a data set that replaces the one of its kind.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from loadgen.errors import BadInput
from loadgen.util.packages import require

if TYPE_CHECKING:
    from loadgen.workload.datasets import DatasetClass

FLAG = "--dataset-rule"
RULES: Mapping[str, Mapping[str, str]] = {
    "random": {
        "vllm-0.11": "loadgen.workload.datasets.rules.consecutive:Vllm011Random",
        "vllm-0.9": "loadgen.workload.datasets.rules.consecutive:Vllm09Random",
        "guidellm-0.5": "loadgen.workload.datasets.rules.guidellm_0_5:Guidellm05Random",
    },
    "custom": {
        "sglang": "loadgen.workload.datasets.rules.sglang:SGLangCustom",
    },
    "sharegpt": {
        "vllm-0.11": "loadgen.workload.datasets.sharegpt:ShareGPTDataset",
        "benchmark-runner": "loadgen.workload.datasets.rules.benchmark_runner:BenchmarkRunnerShareGPT",
        "sglang": "loadgen.workload.datasets.rules.sglang:SGLangShareGPT",
    },
}

PACKAGES = {"guidellm-0.5": "faker"}  # that a rule needs, and a plain installation does not have


def require_packages(rule: str | None) -> None:
    """Check that the package of a rule is installed.

    Raises:
        BadInput: It is not.
    """
    if rule in PACKAGES:
        require(FLAG, f"making texts as {rule}", PACKAGES[rule])


def find(kind: str, rule: str) -> "DatasetClass":
    """Find the data set of a kind (`--dataset-name`) and a rule.

    Raises:
        BadInput: The kind has no such rule.
    """
    rules = RULES.get(kind, {})
    if rule not in rules:
        remedy = (
            f"choose one of: {', '.join(rules)}; or leave it out"
            if rules
            else "leave it out: the data set has no rules"
        )
        raise BadInput(FLAG, f"unknown rule {rule!r} for {kind}", remedy)
    module, attribute = rules[rule].split(":")
    dataset: DatasetClass = getattr(import_module(module), attribute)
    return dataset
