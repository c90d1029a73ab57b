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
