"""What loadgen says to an engine, held against the flags that releases of the engine declare in
their own source.

`tests/data/engines` keeps the names of the flags, and how they were got.
"""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from loadgen.engines.kinds import sglang, transformers_serve, trtllm, vllm
from loadgen.engines.kinds.engine import CommandEngine
from loadgen.engines.kinds.flag_syntax import is_flag
from loadgen.errors import BadInput
from tests.engines.test_commands_of_engines import SGLANG, TRANSFORMERS, TRTLLM, VLLM
from tests.helpers.engine_launch import launch
from tests.helpers.source import ROOT

ROWS: dict[CommandEngine, list[Any]] = {
    vllm.engine: VLLM,
    sglang.engine: SGLANG,
    trtllm.engine: [row[:2] for row in TRTLLM],
    transformers_serve.engine: TRANSFORMERS,
}


@cache
def versions(engine: str) -> dict[str, list[list[str]]]:
    """Of each version, the flags: each a list of its names."""
    found = json.loads((ROOT / f"tests/data/engines/{engine}.json").read_text())["versions"]
    return {
        version: [names.split("=") for names in text.split()] for version, text in found.items()
    }


RELEASES = [
    pytest.param(engine, version, flags, id=f"{engine.name}-{version}")
    for engine in ROWS
    for version, flags in versions(engine.name).items()
]
NUMBERED = [item for item in RELEASES if item.values[0] is not trtllm.engine]


def spoken_to(engine: CommandEngine, version: str) -> CommandEngine:
    return engine if engine is trtllm.engine else replace(engine, release=version)


@pytest.mark.parametrize(("engine", "version", "flags"), RELEASES)
def test_the_release_declares_every_flag_that_a_knob_comes_to(
    engine: CommandEngine, version: str, flags: list[list[str]]
) -> None:
    declared = {name for names in flags for name in names}
    told = 0
    for knobs, _ in ROWS[engine]:
        try:
            argv = launch(spoken_to(engine, version), **knobs).argv
        except BadInput:
            continue
        unknown = {word for word in argv[3:] if is_flag(word)} - declared - {"-m"}
        assert not unknown, knobs
        told += 1
    assert told >= len(ROWS[engine]) - 1, "one knob, at most, is newer than the oldest release"


@pytest.mark.parametrize(("engine", "version", "flags"), RELEASES)
def test_a_name_that_is_taken_for_an_alias_is_one(
    engine: CommandEngine, version: str, flags: list[list[str]]
) -> None:
    for names in flags:
        for name in names:
            meant = engine.table.flag_syntax.canonical_name(name)
            assert meant == name or meant in names, f"{name} is taken for {meant}"


@pytest.mark.parametrize(("engine", "version", "flags"), RELEASES)
def test_every_alias_of_a_flag_that_loadgen_says_is_known_as_one(
    engine: CommandEngine, version: str, flags: list[list[str]]
) -> None:
    flag_syntax = engine.table.flag_syntax
    for names in flags:
        said = [name for name in names if name in flag_syntax.known]
        for name in names if said else ():
            assert flag_syntax.canonical_name(name) == said[0]


@pytest.mark.parametrize(("engine", "version", "flags"), NUMBERED)
def test_since_and_until_are_what_the_releases_show(
    engine: CommandEngine, version: str, flags: list[list[str]]
) -> None:
    declared = {name for names in flags for name in names}
    for forms in engine.table.forms.values():
        for form in forms:
            for name in form.flags():
                assert form.supported_by(version) == (name in declared), f"{name} in {version}"


def test_knob_of_newer_version_is_refused_with_that_version() -> None:
    old = replace(vllm.engine, release="0.16.0")
    with pytest.raises(
        BadInput,
        match=r"performance_mode: vllm 0.16.0 does not support it; .*performance-mode` since "
        r"0.17.0",
    ):
        launch(old, performance_mode="throughput")
    with pytest.raises(BadInput, match=r"--performance-mode: vllm 0.16.0 does not support it"):
        launch(old, "--performance-mode", "throughput")


@pytest.mark.parametrize(
    ("version", "words", "variable"),
    [
        ("0.9.1", [], "FLASHINFER"),
        ("0.11.0", [], "FLASHINFER"),
        ("0.12.0.post2", [], "FLASHINFER"),
        ("0.13.0", ["--attention-backend", "FLASHINFER"], None),
        ("0.32.0+cpu", ["--attention-backend", "FLASHINFER"], None),
        (None, ["--attention-backend", "FLASHINFER"], None),
    ],
)
def test_old_attention_backend_is_an_environment_variable(
    version: str | None, words: list[str], variable: str | None
) -> None:
    launched = launch(replace(vllm.engine, release=version), attention_backend="FLASHINFER")
    assert list(launched.shorthand[3:]) == words
    assert launched.env.get("VLLM_ATTENTION_BACKEND") == variable
