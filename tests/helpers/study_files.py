"""What tests of studies share: a small study in YAML, with parts put in the place of its own."""

from pathlib import Path
from typing import Any

import yaml

from loadgen.lab.study.plan.plan import Plan, Step
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.strict_model import convert
from loadgen.lab.study.spec.study import Study

SMALL: dict[str, Any] = {
    "name": "small",
    "models": {"bf16": "Qwen/Qwen3-8B", "fp8": "Qwen/Qwen3-8B-FP8"},
    "hardware": {"name": "a box", "devices": 4},
    "engines": {
        "vllm": {"version": "0.17.1"},
        "sglang": {"version": "0.5.9"},
        "trtllm": {"version": "1.2.0rc1"},
    },
    "workloads": {"short": "short", "long": "long"},
    "objective": {"workload": "short"},
    "baseline": {"engine": "vllm", "model": "bf16"},
    "stages": [{"name": "seqs", "grid": {"max_seqs": [64, 128]}}],
}
# Every key that a study may have.
WHOLE: dict[str, Any] = SMALL | {
    "hardware": {"name": "a box", "devices": 4, "gpu_hour_price": 1.5},
    "engines": {
        "vllm": {"version": "1", "host": "h", "knobs": {"a": 1}, "raw": ["--a"], "env": {"A": "b"}}
    },
    "objective": {
        "metric": "max_rate_under_slo",
        "workload": "short",
        "slo": "ttft_p99<500ms",
        "success_rate": 0.9,
        "accuracy": {"file": "x", "max_loss": 0.01},
    },
    "baseline": {"engine": "vllm", "model": "bf16", "replicas": 1, "devices": ["0"]},
    "stages": [
        {
            "name": "a",
            "from": "baseline",
            "workloads": ["short"],
            "expect": ["x"],
            "choice": {"x": {}},
        },
        {"name": "b", "grid": {"max_seqs": [1, 2]}, "where": "max_seqs > 1"},
        {
            "name": "c",
            "joint": {
                "a": {"log2": [2, 4]},
                "b": {"int": [1, 3], "step": 1},
                "c": {"choice": [1, 2]},
            },
        },
        {"name": "d", "trials": 3, "sampler": "tpe", "joint": {"a": {"log2": [2, 4]}}},
        {"name": "e", "interactions": ["a", "b"]},
    ],
    "keep": 1,
    "decision": {
        "min_effect": 0.01,
        "confidence": 0.9,
        "repeats": {"least": 2, "most": 3},
        "seed": 1,
    },
    "budget": {"hours": 1, "gpu_hours": 2, "start_timeout": 3},
    "report": {"title": "x", "formats": ["html"], "layout": "stages"},
}


def study(*stages: dict[str, Any], **parts: Any) -> Study:
    """The small study with these stages, and these parts in the place of its own."""
    made = convert(SMALL | parts | ({"stages": list(stages)} if stages else {}), Study)
    made.check()
    return made


def planned(*stages: dict[str, Any], **parts: Any) -> Plan:
    """Its plan."""
    return plan(study(*stages, **parts))


def step(*stages: dict[str, Any], **parts: Any) -> Step:
    """The step of its last stage."""
    return planned(*stages, **parts).steps[-2]


def commands(step: Step) -> dict[str, str]:
    """The arms of a step with their commands as pages print them."""
    return {arm.name: " ".join(arm.launches[0].shorthand) for arm in step.arms}


def read(folder: Path, text: str) -> study_file.StudyFile:
    """A file of this text, read."""
    path = folder / "study.yaml"
    path.write_text(text)
    return study_file.read(path)


def as_yaml(**parts: Any) -> str:
    """The small study with these parts as the text of a file; None leaves a part out."""
    merged = {name: part for name, part in (SMALL | parts).items() if part is not None}
    return str(yaml.safe_dump(merged, sort_keys=False))
