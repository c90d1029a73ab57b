"""Every serving command of the performance lab's pages can be built with knobs and raw flags."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.engines.kinds import mindie
from loadgen.engines.kinds.engine import Place
from loadgen.engines.kinds.knob_table import KnobTable
from tests.helpers.published_workloads import COMMANDS, MINDIE

PLACE = Place(8001, Path("/runs/1"), host="10.0.0.1")


def in_folder(words: list[str], engine: Any) -> list[str]:
    """A command with its model in a folder, where the engine downloads none."""
    return [f"./{word}" if engine is MINDIE and word == model_in(words) else word for word in words]


def model_in(words: list[str]) -> str:
    return next(word for word in words[1:] if "/" in word or word.startswith("Qwen"))


@pytest.mark.parametrize(("page", "command", "engine", "knobs"), COMMANDS)
def test_a_command_of_a_page_is_said_with_knobs(
    page: str, command: str, engine: Any, knobs: dict[str, Any]
) -> None:
    words = command.split()
    words = in_folder(words, engine)
    table: KnobTable = engine.table if hasattr(engine, "table") else mindie.TABLE
    launched = engine.launch(model_in(words), knobs, (), PLACE)
    assert launched.normal == table.flag_syntax.normalize(words)
    if engine is MINDIE:
        return
    # What is run says the same, and beside it only what every server is told.
    bare = set(table.flag_syntax.normalize(engine.launch(model_in(words), {}, (), PLACE).argv))
    assert set(table.flag_syntax.normalize(launched.argv)) == bare | set(
        table.flag_syntax.normalize(words)[1:]
    )


@pytest.mark.parametrize(("page", "command", "engine", "knobs"), COMMANDS)
def test_command_can_be_built_with_raw_flags_only(
    page: str, command: str, engine: Any, knobs: dict[str, Any]
) -> None:
    words = in_folder(command.split(), engine)
    model = model_in(words)
    raw = words[words.index(model) + 1 :]
    assert list(engine.launch(model, {}, raw, PLACE).shorthand) == words


def test_every_page_is_covered() -> None:
    assert len({page for page, *_ in COMMANDS}) == 5
