"""The conformance kit for engines: every launcher, the engines that run here, and faulty
engines.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.engines import Engine, Launch, Place, Probes
from loadgen.engines.kinds import llamacpp, mindie, sglang, transformers_serve, trtllm, vllm
from loadgen.engines.kinds.simulator import engine as sim
from loadgen.errors import BadInput
from loadgen.testing.engine_conformance import Case, EngineAlive, EngineOnPaper, side_effects
from tests.helpers.fake_engine import Fake
from tests.helpers.real_llamacpp import KNOBS, RAW, gguf, real

HUB = "Qwen/Qwen3-14B"
ON_PAPER = [
    Case(
        engine=vllm.engine,
        model=HUB,
        knobs={"context_len": 2048, "speculative": {"method": "ngram"}},
    ),
    Case(engine=vllm.ascend, model=HUB, knobs={"tensor_parallel": 2}),
    Case(engine=vllm.cpu, model=HUB, raw=("--dtype", "bfloat16")),
    Case(engine=sglang.engine, model=HUB, knobs={"chunked_prefill": False}),
    Case(engine=trtllm.engine, model=HUB, knobs={"kv_dtype": "fp8"}),
    Case(engine=mindie.engine, model="/models/m", knobs={"context_len": 40000}, host="10.0.0.1"),
    Case(engine=llamacpp.engine, model="/models/m.gguf", knobs={"context_len": 2048}),
    Case(engine=transformers_serve.engine, model="/models/m"),
    Case(engine=sim, model="m", knobs={"max_seqs": 8}),
]
ALIVE = [
    pytest.param(lambda: Case(engine=sim, model="m", no_model=None, ready_s=60.0), id="sim"),
    pytest.param(
        lambda: Case(
            engine=llamacpp.engine,
            model=gguf(),
            knobs=KNOBS,
            raw=RAW,
            no_model="/no.gguf",
            grace_s=1.0,
        ),
        id="llamacpp",
        marks=real(),
    ),
]


class TestOnPaper(EngineOnPaper):
    @pytest.fixture(params=ON_PAPER, ids=[case.engine.name for case in ON_PAPER])
    def case(self, request: pytest.FixtureRequest) -> Case:
        made: Case = request.param
        return made


class TestAlive(EngineAlive):
    @pytest.fixture(scope="class", params=ALIVE)
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> Case:
        make: Callable[[], Case] = request.param
        return make()


class Wrong(Fake):
    """An engine with one fault: what it makes of a right launch, and of the knobs."""

    def __init__(
        self, fault: Callable[[Launch, Place], Launch], probes: Probes | None = None
    ) -> None:
        super().__init__(probes)
        self.fault = fault

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        if knobs:
            raise BadInput(", ".join(knobs), "unknown", "leave it out")
        return self.fault(super().launch(model, knobs, raw, place), place)


class Careless(Fake):
    """An engine that takes any knob, and has one whose name no flag can have."""

    def knobs(self) -> Mapping[str, str]:
        return {"Top Speed": "--speed"}


def as_it_is(launch: Launch, place: Place) -> Launch:
    return launch


def writes(launch: Launch, place: Place) -> Launch:
    (place.folder / "note").write_text("")
    return launch


FAULTS: list[tuple[Engine, str]] = [
    (Careless(), "a_knob_that_it_does_not_know_is_refused_by_name"),
    (Careless(), "its_knobs_have_names_that_can_be_written_everywhere"),
    (
        Wrong(lambda launch, place: replace(launch, argv=("serve", os.urandom(4).hex()))),
        "the_same_question",
    ),
    (
        Wrong(lambda launch, place: replace(launch, base_url="http://127.0.0.1:8000")),
        "it_answers_where_it_is_placed",
    ),
    (
        Wrong(lambda launch, place: replace(launch, argv=("serve",))),
        "another_port_makes_another_launch",
    ),
    (
        Wrong(lambda launch, place: replace(launch, argv=("serve", place.port))),
        "command_and_variables_are_words",
    ),  # type: ignore[arg-type]
    (Wrong(lambda launch, place: replace(launch, argv=())), "command_and_variables_are_words"),
    (
        Wrong(lambda launch, place: replace(launch, env={"A": "a\0b"})),
        "command_and_variables_are_words",
    ),
    (Wrong(lambda launch, place: replace(launch, model="")), "command_and_variables_are_words"),
    (
        Wrong(lambda launch, place: replace(launch, files={Path("/etc/engine"): ""})),
        "its_files_lie_below_its_folder",
    ),
    (Wrong(writes), "a_launch_leaves_everything_as_it_was"),
    (Wrong(as_it_is, Probes(health="health")), "its_probes_are_paths"),
]


@pytest.mark.parametrize(("engine", "test"), FAULTS)
def test_a_fault_on_paper_is_found(engine: Engine, test: str, tmp_path: Path) -> None:
    (name,) = (name for name in vars(EngineOnPaper) if name.startswith(f"test_{test}"))
    method = getattr(EngineOnPaper(), name)
    arguments = (tmp_path,) if "tmp_path" in method.__code__.co_varnames else ()
    method(Case(engine=Wrong(as_it_is), model="m"), *arguments)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        method(Case(engine=engine, model="m"), *arguments)


@pytest.mark.parametrize(
    ("raw", "test", "said"),
    [
        (("--never-listen",), "taken_port_is_reported", "start_timeout"),
        (("--exit", "1"), "unknown_flag_is_reported", "unknown"),
        ((), "missing_model_is_reported", "is ready"),
    ],
)
def test_a_server_that_fails_otherwise_than_it_should_is_found(
    raw: Sequence[str], test: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ready_s = 3.0 if said == "start_timeout" else 30.0
    case = Case(engine=Fake(), model="m", raw=raw, no_flag="--silent", ready_s=ready_s, grace_s=1.0)
    with pytest.raises(AssertionError, match=said):
        getattr(EngineAlive(), f"test_{test}")(case)


def test_side_effects_of_a_call_are_listed(tmp_path: Path) -> None:
    def touch() -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_text("")
        os.environ["LOADGEN_TOUCHED"] = "1"
        (tmp_path / "file").unlink()

    seen = side_effects(touch)
    del os.environ["LOADGEN_TOUCHED"]
    assert [what.split()[0] for what in seen] == ["os.mkdir", "opens", "os.putenv", "os.remove"]
    assert side_effects(lambda: (tmp_path / "folder").exists()) == []
