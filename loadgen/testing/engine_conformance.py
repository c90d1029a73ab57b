"""What every engine must do: tests for pytest, for engines of this package and of others.

A module of tests derives a class from `EngineOnPaper`, and from `EngineAlive` where the engine can run, and gives it a
fixture `case`, of the scope "module" or "class":

    from loadgen.testing.engine_conformance import Case, EngineAlive, EngineOnPaper

    @pytest.fixture(scope="module")
    def case() -> Case:
        return Case(engine=engine, model="/models/small", knobs={"context_len": 2048})

    class TestMine(EngineOnPaper, EngineAlive): ...
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loadgen.engines import Engine, EngineFailed, Launch, Launcher, Place, Probes, Server, ports, processes
from loadgen.engines.ask import ask
from loadgen.engines.knobs import KNOBS
from loadgen.errors import BadInput, EngineError
from loadgen.testing.stream import Habits, Stream
from loadgen.testing.touched import touched

NO_KNOB = "no_such_knob"


@dataclass(frozen=True, kw_only=True)
class Case:
    """An engine, and how it is tried on this machine.

    Attributes:
        engine: The engine.
        model: What it serves: a folder, a file or a hub name.
        knobs: With which it is served.
        raw: The engine's own flags beside them.
        host: On which it listens.
        no_flag: A flag that the engine does not have.
        no_model: A model that is not there; None: the engine serves whatever it is told.
        ready_s: Most seconds from its start to its first token.
        grace_s: Seconds between SIGTERM and SIGKILL.
    """

    engine: Engine
    model: str
    knobs: Mapping[str, object] = field(default_factory=dict)
    raw: Sequence[str] = ()
    host: str = "127.0.0.1"
    no_flag: str = "--no-such-flag"
    no_model: str | None = "/nowhere/no-such-model"
    ready_s: float = 600.0
    grace_s: float = 10.0

    def launch(self, folder: Path, port: int = 20_001, **knobs: object) -> Launch:
        """What the engine would start."""
        return self.engine.launch(self.model, {**self.knobs, **knobs}, self.raw, Place(port, folder, self.host))

    def begin(self, *, model: str | None = None, more: Sequence[str] = (), engine: Engine | None = None) -> Server:
        """Start a server of it, with another model or more flags."""
        raw = (*self.raw, *more)
        return Launcher().begin(engine or self.engine, model or self.model, self.knobs, raw, host=self.host)


class EngineOnPaper:
    """What an engine must do without being started, as `Engine` promises."""

    def test_its_name_can_stand_in_a_command(self, case: Case) -> None:
        name = case.engine.name
        assert name.isprintable(), f"{name!r} has characters that cannot be typed"
        assert name, "the name is empty"
        assert name.split() == [name], f"{name!r} has spaces"

    def test_the_same_question_has_the_same_launch(self, case: Case, tmp_path: Path) -> None:
        first, second = case.launch(tmp_path), case.launch(tmp_path)
        assert first == second, "two launches of the same model at the same place differ"

    def test_it_answers_where_it_is_placed(self, case: Case, tmp_path: Path) -> None:
        for port in (20_001, 20_002):
            told = case.launch(tmp_path, port).base_url
            assert told == Place(port, tmp_path, case.host).base_url, f"placed at {case.host}:{port}, it says {told}"

    def test_another_port_makes_another_launch(self, case: Case, tmp_path: Path) -> None:
        first, second = (case.launch(tmp_path, port) for port in (20_001, 20_002))
        said = [(launch.argv, dict(launch.env), dict(launch.files)) for launch in (first, second)]
        assert said[0] != said[1], "the server is never told its port"

    def test_command_and_variables_are_words(self, case: Case, tmp_path: Path) -> None:
        launch = case.launch(tmp_path)
        assert isinstance(launch.argv, tuple), "argv is a tuple"
        assert launch.argv, "argv is empty"
        for word in (*launch.argv, *launch.shorthand, *launch.env, *launch.env.values()):
            assert isinstance(word, str), f"{word!r} is no str"
            assert "\0" not in word, f"{word!r} cannot be passed to a process"
        assert launch.model, "requests have no model to name"

    def test_its_files_lie_below_its_folder(self, case: Case, tmp_path: Path) -> None:
        for path, text in case.launch(tmp_path).files.items():
            assert path.resolve().is_relative_to(tmp_path.resolve()), f"{path} is not below {tmp_path}"
            assert isinstance(text, str), f"{path} gets no text"

    def test_a_knob_that_it_does_not_know_is_refused_by_name(self, case: Case, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=NO_KNOB):
            case.launch(tmp_path, **{NO_KNOB: 1})

    def test_its_knobs_are_those_of_all_engines(self, case: Case) -> None:
        unknown = case.engine.knobs().keys() - KNOBS.keys()
        assert not unknown, f"no engine-neutral names: {', '.join(sorted(unknown))}"

    def test_a_launch_leaves_everything_as_it_was(self, case: Case, tmp_path: Path) -> None:
        case.engine.version()  # which may start its program
        assert touched(lambda: case.launch(tmp_path)) == []

    def test_its_probes_are_paths(self, case: Case) -> None:
        probes = case.engine.probes
        assert isinstance(probes, Probes), "probes are no Probes"
        for path in (probes.health, probes.metrics, probes.version, probes.resolved, *probes.flush):
            assert path is None or path.startswith("/"), f"{path!r} does not begin with a slash"

    def test_its_version_is_text_or_unknown(self, case: Case) -> None:
        version = case.engine.version()
        assert version is None or version.strip(), f"{version!r} is no version"


class EngineAlive:
    """What an engine must do when it is started by the launcher; chat completions are asked."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _state(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Logs and entries of these servers are not among the user's own."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
            yield

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, case: Case, _state: None) -> Iterator[Server]:
        """A server that answers, for all tests of the class."""
        running = case.begin()
        running.ready(case.ready_s)
        yield running
        running.stop(case.grace_s)

    def test_it_has_what_its_command_says(self, server: Server) -> None:
        assert [str(difference) for difference in server.differences()] == []

    def test_its_version_is_known(self, case: Case, server: Server) -> None:
        if not (case.engine.version() or server.version()):
            pytest.skip("neither this machine nor the server tells it, so no result will")

    def test_its_probes_answer(self, case: Case, server: Server) -> None:
        probes = case.engine.probes
        for path in filter(None, (probes.health, probes.metrics, probes.version, probes.resolved)):
            answer = ask(server.base_url + path)
            assert answer.status == 200, f"GET {path} answers {answer}"

    def test_its_health_is_good(self, server: Server) -> None:
        trouble = server.trouble()
        assert trouble is None, str(trouble)

    def test_a_stream_has_tokens_a_finish_and_usage(self, case: Case, server: Server) -> None:
        with Stream(server.base_url, server.model, timeout_s=case.ready_s) as stream:
            habits = Habits(list(stream))
        assert habits.token_events, f"no token in {habits.events}"
        assert habits.finish_reason, f"no finish reason in {habits.events}"
        assert habits.usage, f"no usage in {habits.events}"
        assert habits.usage["completion_tokens"] >= habits.token_events, (
            f"{habits.usage} for {habits.token_events} texts"
        )

    def test_its_caches_can_be_emptied(self, server: Server) -> None:
        server.flush()

    def test_nothing_is_left_of_it(self, case: Case) -> None:
        server = case.begin()
        server.ready(case.ready_s)
        with Stream(server.base_url, server.model, max_tokens=1000, timeout_s=case.ready_s) as stream:
            stream.first()
            server.stop(case.grace_s)
        assert processes.tagged(server.run_id) == []
        assert ports.is_free(case.host, int(server.base_url.rpartition(":")[2]))
        assert not server.log.path.parent.exists(), f"{list(server.log.path.parent.iterdir())} is left"

    def test_a_port_that_is_taken_is_told(self, case: Case) -> None:
        with socket.socket() as stranger:
            failed = _failure(case, engine=_Robbed(case.engine, stranger))
        assert failed.crash.kind == "port_in_use", str(failed)

    def test_a_flag_that_it_does_not_know_is_told(self, case: Case) -> None:
        try:
            failed = _failure(case, more=(case.no_flag,))
        except BadInput:
            return  # by the engine itself, before anything is started
        assert failed.crash.kind == "bad_flag", str(failed)

    def test_a_model_that_is_not_there_is_told(self, case: Case) -> None:
        if case.no_model is None:
            pytest.skip("it serves whatever it is told")
        try:
            failed = _failure(case, model=case.no_model)
        except BadInput:
            return
        assert failed.crash.kind == "model_missing", str(failed)


def _failure(
    case: Case, *, model: str | None = None, more: Sequence[str] = (), engine: Engine | None = None
) -> EngineFailed:
    """How a server fails that cannot but fail.

    Raises:
        BadInput: The engine refuses to describe it.
    """
    server = case.begin(model=model, more=more, engine=engine)
    try:
        server.ready(case.ready_s)
    except EngineFailed as failed:
        return failed
    except EngineError as error:
        raise AssertionError(f"it fails without a crash: {error}") from error
    else:
        raise AssertionError(f"{server} answers")
    finally:
        server.stop(case.grace_s)


class _Robbed:
    """An engine whose port is taken by another server after it was chosen, and before it starts."""

    def __init__(self, engine: Engine, stranger: socket.socket) -> None:
        self._engine, self._stranger = engine, stranger
        self.name, self.probes = engine.name, engine.probes

    def version(self) -> str | None:
        return self._engine.version()

    def knobs(self) -> Mapping[str, str]:
        return self._engine.knobs()

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        self._stranger.bind((place.host, place.port))
        self._stranger.listen()
        return self._engine.launch(model, knobs, raw, place)
