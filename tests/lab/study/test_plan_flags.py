"""Grids and joint stages vary flags of an engine's own as they vary knobs."""

from typing import Any

import pytest

from loadgen.lab.study.spec.strict_model import AtFault
from tests.helpers.study_files import commands, planned, step

VLLM = "vllm serve Qwen/Qwen3-8B"
FLAGS = {
    "--block-size": [0, 32],
    "--enable-dbo": [True, False],
    "--hf-overrides": [{"a": 1}],
    "--middleware": [["x", "y z"]],
}


def refusal(*stages: dict[str, Any], **parts: Any) -> str:
    with pytest.raises(AtFault) as refused:
        planned(*stages, **parts)
    return str(refused.value)


def test_flags_of_an_engine_may_be_values_of_a_grid() -> None:
    grid = FLAGS | {"max_seqs": [64]}
    found = commands(step({"name": "flags", "grid": grid, "where": "max_seqs < 65"}))
    other = '--hf-overrides {"a":1} --middleware x y z'
    assert [text.removeprefix(f"{VLLM} --max-num-seqs 64 ") for text in found.values()][1:] == [
        f"--block-size 0 --enable-dbo {other}",
        f"--block-size 0 {other}",
        f"--block-size 32 --enable-dbo {other}",
        f"--block-size 32 {other}",
    ]
    assert list(found)[1].startswith("--block-size=0 --enable-dbo=true ")


def test_flags_of_an_engine_may_be_drawn() -> None:
    drawn = {"name": "flags", "joint": {"--block-size": {"log2": [16, 64]}}}
    found = commands(step(drawn | {"expect": {"--block-size": 32}}))
    assert found["--block-size=32"] == f"{VLLM} --block-size 32"


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (
            {"--max-num-seqs": [1, 2], "max_seqs": [3]},
            "stages.0.grid.--max-num-seqs: it sets the same thing as the knob max_seqs; use one",
        ),
        ({"--port": [1, 2]}, "stages.0.grid.--port: the launcher sets the port"),
        ({"--a=1": [1, 2]}, "stages.0.grid.--a=1: is not the name of a flag; give its name"),
        ({"--a b": [1, 2]}, "stages.0.grid.--a b: is not the name of a flag"),
        (
            {"--enable-dbo": [True, False]},
            "stages.0.grid.--enable-dbo: baseline has this flag, and a stage cannot take it away",
        ),
    ],
)
def test_flags_that_cannot_be_varied_are_refused(grid: dict[str, Any], message: str) -> None:
    raw = ["--enable-dbo"] if "--enable-dbo" in grid else []
    baseline = {"engine": "vllm", "model": "bf16", "raw": raw}
    assert refusal({"name": "flags", "grid": grid}, baseline=baseline).startswith(message)
