"""What tests of engines share: a place, and the words that a launch says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadgen.engines.kinds.engine import Engine, Launch, Place

FOLDER = Path("/runs/1")
PLACE = Place(8001, FOLDER)
MODEL = "Qwen/Qwen3-14B"


def launch(
    engine: Engine, *raw: str, place: Place = PLACE, model: str = MODEL, **knobs: Any
) -> Launch:
    return engine.launch(model, knobs, raw, place)


def said(
    engine: Engine, knobs: Mapping[str, Any], raw: Sequence[str] = (), place: Place = PLACE
) -> list[str]:
    """The words that knobs and raw flags add to the command that pages print."""
    bare = engine.launch(MODEL, {}, (), place).shorthand
    full = engine.launch(MODEL, knobs, raw, place).shorthand
    assert full[: len(bare)] == bare
    return list(full[len(bare) :])
