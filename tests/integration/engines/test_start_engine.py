"""An engine for one run: started, checked, probed and stopped, with one restart where it may
help.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.engines import EngineFailed, Launch, Launcher, Place
from loadgen.engines.launch import processes
from loadgen.engines.launch.server_registry import ServerRegistry
from loadgen.errors import BadInput, setting
from loadgen.metrics.progress import Progress
from loadgen.runner import start_engine as module
from loadgen.runner.start_engine import start_engine_server
from tests.helpers.fake_engine import Fake

SETTINGS = RunSettings(engine="fake", model="m", engine_timeout=60)


class Failing(Fake):
    """Says something and ends, the first `times` that it is started."""

    def __init__(self, said: str, times: int) -> None:
        super().__init__()
        self.said, self.times, self.launches = said, times, list[Launch]()

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        failing = ["--say", self.said, "--exit", "1"] if len(self.launches) < self.times else []
        self.launches.append(super().launch(model, knobs, [*raw, *failing], place))
        return self.launches[-1]


@pytest.fixture
def serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Fake], None]:
    """Lets an engine be the one that is found."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def put(engine: Fake) -> None:
        monkeypatch.setattr(
            module, "find", lambda group, name: engine if group == "engines" else Launcher
        )

    return put


def nothing(settings: RunSettings) -> None:
    pass


def silent(progress: Progress) -> None:
    pass


def nothing_is_left() -> bool:
    return not list(ServerRegistry().folder.glob("*.json"))


async def test_engine_serves_inside_the_session_and_is_gone_after(
    serves: Callable[[Fake], None],
) -> None:
    serves(Fake())
    async with start_engine_server(
        SETTINGS.replace(engine_arg=("max_seqs=3",)), nothing, silent
    ) as server:
        assert server.model == "m"
        (process,) = server.processes
        assert server.settings.base_url == process.base_url
        assert server.settings.engine is None
        assert server.about["name"] == "fake"
        assert not server.simulated
        assert process.launch.env["max_seqs"] == "3"
        run_id = process.run_id
        assert processes.tagged(run_id)
    assert not processes.tagged(run_id)
    assert nothing_is_left()


async def test_a_failure_that_may_pass_is_tried_once_more(
    serves: Callable[[Fake], None], caplog: pytest.LogCaptureFixture
) -> None:
    engine = Failing("RuntimeError: NCCL error: unhandled system error", times=1)
    serves(engine)
    async with start_engine_server(SETTINGS, nothing, silent) as server:
        assert server.processes[0].alive()
    assert len(engine.launches) == 2
    (said,) = caplog.messages
    assert said.startswith(
        "starting the engine once more, since this may pass: fake: distributed: "
    ), "before the log, not in it"


@pytest.mark.parametrize(
    ("said", "launches"),
    [("RuntimeError: NCCL error: unhandled system error", 2), ("KeyError: 'weight'", 1)],
)
async def test_lasting_failure_is_raised_after_a_retry_if_useful(
    serves: Callable[[Fake], None], said: str, launches: int
) -> None:
    engine = Failing(said, times=9)
    serves(engine)
    with pytest.raises(EngineFailed, match=r"NCCL|weight"):
        async with start_engine_server(SETTINGS, nothing, silent):
            pass
    assert len(engine.launches) == launches
    assert nothing_is_left()


class Placed(Fake):
    """Remembers where it was put."""

    def __init__(self) -> None:
        super().__init__()
        self.devices = list[tuple[str, ...]]()

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        self.devices.append(place.devices)
        return super().launch(model, knobs, raw, place)


async def test_replicas_have_own_ports_and_devices(serves: Callable[[Fake], None]) -> None:
    engine = Placed()
    serves(engine)
    async with start_engine_server(
        SETTINGS.replace(replicas=2, devices="0,1,2,3"), nothing, silent
    ) as server:
        urls = [process.base_url for process in server.processes]
        assert len(set(urls)) == 2
        assert server.settings.urls == tuple(urls)
        assert sorted(engine.devices) == [("0", "1"), ("2", "3")]
        ids = [process.run_id for process in server.processes]
    assert not any(map(processes.tagged, ids))
    assert nothing_is_left()


async def test_where_one_replica_fails_none_is_left(serves: Callable[[Fake], None]) -> None:
    serves(Failing("KeyError: 'weight'", times=1))
    with pytest.raises(EngineFailed, match="weight"):
        async with start_engine_server(SETTINGS.replace(replicas=2), nothing, silent):
            pass
    assert nothing_is_left()


async def test_bad_settings_are_refused_while_the_engine_starts(
    serves: Callable[[Fake], None],
) -> None:
    seen: list[RunSettings] = []

    def check(settings: RunSettings) -> None:
        seen.append(settings)
        raise BadInput(setting.dataset_path, "there is no such file", "name one")

    serves(Fake())
    never = SETTINGS.replace(engine_arg=("--no-token",))
    with pytest.raises(BadInput, match="--dataset-path"):
        async with start_engine_server(never, check, silent):
            pass
    assert seen[0].model == "m"
    assert seen[0].base_url is not None
    assert nothing_is_left()


@pytest.mark.parametrize(
    ("given", "field"), [(None, "--model: its tokenizer"), ("t.json", "--tokenizer")]
)
async def test_tokenizer_error_names_model_unless_tokenizer_is_given(
    serves: Callable[[Fake], None], given: str | None, field: str
) -> None:
    def check(settings: RunSettings) -> None:
        raise BadInput(setting.tokenizer, "it cannot be read", "name another")

    serves(Fake())
    with pytest.raises(BadInput) as refused:
        async with start_engine_server(SETTINGS.replace(tokenizer=given), check, silent):
            pass
    assert refused.value.field == field
    assert "it cannot be read" in refused.value.problem


async def test_installed_version_is_reported_if_server_reports_none(
    serves: Callable[[Fake], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fake, "version", lambda self: "1.2.3")
    serves(Fake())
    async with start_engine_server(SETTINGS, nothing, silent) as server:
        assert (server.about["installed"], server.about["version"]) == ("1.2.3", None)


async def test_a_knob_is_named_as_its_user_gave_it(serves: Callable[[Fake], None]) -> None:
    serves(Fake())
    with pytest.raises(BadInput) as refused:
        async with start_engine_server(
            SETTINGS.replace(engine_arg=("max_seqs=many",)), nothing, silent
        ):
            pass
    assert refused.value.field == "--engine-arg max_seqs"


class Choosy(Fake):
    """Serves nothing, for a reason that it names."""

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        raise BadInput(raw[0].removeprefix("--bad-"), "not usable", "give another")


@pytest.mark.parametrize(
    ("field", "flag"),
    [
        ("model", "--model"),
        ("served_name", "--served-model-name"),
        ("host", "--host"),
        ("devices", "--devices"),
        ("--its-own", "--its-own"),
    ],
)
async def test_bad_engine_option_is_named_by_its_own_flag(
    serves: Callable[[Fake], None], field: str, flag: str
) -> None:
    serves(Choosy())
    with pytest.raises(BadInput) as refused:
        async with start_engine_server(
            SETTINGS.replace(engine_arg=(f"--bad-{field}",)), nothing, silent
        ):
            pass
    assert refused.value.field == flag


async def test_engine_listens_on_the_given_host(serves: Callable[[Fake], None]) -> None:
    serves(Fake())
    async with start_engine_server(
        SETTINGS.replace(host="127.0.0.2").checked(), nothing, silent
    ) as server:
        assert str(server.settings.base_url).startswith("http://127.0.0.2:")
        assert server.settings.checked().host is None


def test_unknown_engine_is_refused_with_list_of_engines() -> None:
    with pytest.raises(BadInput, match=r"choose from .*llamacpp.*vllm"):
        module.find("engines", "nope")
