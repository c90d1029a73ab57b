"""Engine conformance: pytest tests that every engine must pass, in this package and in others.

Derive a test class from `EngineOnPaper`, and from `EngineAlive` if the engine can run, and define a
fixture `case` of scope "module" or "class":

    from loadgen.testing.engine_conformance import Case, EngineAlive, EngineOnPaper

    @pytest.fixture(scope="module")
    def case() -> Case:
        return Case(engine=engine, model="/models/small", knobs={"context_len": 2048})

    class TestMine(EngineOnPaper, EngineAlive): ...
"""

import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loadgen.engines import Engine, EngineFailed, Launch, Launcher, Place, Probes, Server
from loadgen.engines.launch import ports, processes
from loadgen.errors import BadInput, EngineError
from loadgen.testing.stream import Stream, StreamFormat
from loadgen.util.http_client import request

NO_KNOB = "no_such_knob"
# Flags of files that are opened to write, and events of a change outside the process.
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.chmod",
    "os.chown",
    "os.link",
    "os.mkdir",
    "os.putenv",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "os.unsetenv",
    "os.chdir",
    "os.fork",
    "os.kill",
    "os.posix_spawn",
    "os.system",
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
    "shutil.copyfile",
    "shutil.rmtree",
}

_events: list[str] | None = None
_hooked = False


@dataclass(frozen=True, kw_only=True)
class Case:
    """An engine, and how it is tested on this machine.

    Attributes:
        engine: The engine.
        model: The model: a folder, a file or a hub name.
        knobs: Knobs of each server.
        raw: The engine's own flags of each server.
        host: Address to listen on.
        no_flag: A flag that the engine does not have.
        no_model: A model that does not exist; None: the engine serves any name.
        ready_s: Maximum time from the start to the first token, s.
        grace_s: Time between SIGTERM and SIGKILL, s.
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
        """Return what the engine would start."""
        return self.engine.launch(
            self.model, {**self.knobs, **knobs}, self.raw, Place(port, folder, self.host)
        )

    def begin(
        self, *, model: str | None = None, more: Sequence[str] = (), engine: Engine | None = None
    ) -> Server:
        """Start a server, with another model or more flags."""
        raw = (*self.raw, *more)
        return Launcher().begin(
            engine or self.engine, model or self.model, self.knobs, raw, host=self.host
        )


class EngineOnPaper:
    """Requirements on the description of an engine, which is not started."""

    def test_its_name_can_stand_in_a_command(self, case: Case) -> None:
        name = case.engine.name
        assert name.isprintable(), f"{name!r} has characters that cannot be typed"
        assert name, "the name is empty"
        assert name.split() == [name], f"{name!r} has spaces"

    def test_the_same_question_has_the_same_launch(self, case: Case, tmp_path: Path) -> None:
        first = case.launch(tmp_path)
        second = case.launch(tmp_path)
        assert first == second, "two launches of the same model at the same place differ"

    def test_it_answers_where_it_is_placed(self, case: Case, tmp_path: Path) -> None:
        for port in (20_001, 20_002):
            url = case.launch(tmp_path, port).base_url
            assert url == Place(port, tmp_path, case.host).base_url, (
                f"placed at {case.host}:{port}, its URL is {url}"
            )

    def test_another_port_makes_another_launch(self, case: Case, tmp_path: Path) -> None:
        first, second = (case.launch(tmp_path, port) for port in (20_001, 20_002))
        parts = [(launch.argv, dict(launch.env), dict(launch.files)) for launch in (first, second)]
        assert parts[0] != parts[1], "no word, variable or file depends on the port"

    def test_command_and_variables_are_words(self, case: Case, tmp_path: Path) -> None:
        launch = case.launch(tmp_path)
        assert isinstance(launch.argv, tuple), "argv is a tuple"
        assert launch.argv, "argv is empty"
        for word in (*launch.argv, *launch.shorthand, *launch.env, *launch.env.values()):
            assert isinstance(word, str), f"{word!r} is not a str"
            assert "\0" not in word, f"{word!r} cannot be passed to a process"
        assert launch.model, "the launch names no model for requests"

    def test_its_files_lie_below_its_folder(self, case: Case, tmp_path: Path) -> None:
        for path, text in case.launch(tmp_path).files.items():
            assert path.resolve().is_relative_to(tmp_path.resolve()), (
                f"{path} is not below {tmp_path}"
            )
            assert isinstance(text, str), f"the content of {path} is not text"

    def test_a_knob_that_it_does_not_know_is_refused_by_name(
        self, case: Case, tmp_path: Path
    ) -> None:
        with pytest.raises(BadInput, match=NO_KNOB):
            case.launch(tmp_path, **{NO_KNOB: 1})

    def test_its_knobs_have_names_that_can_be_written_everywhere(self, case: Case) -> None:
        wrong = [name for name in case.engine.knobs() if not re.fullmatch("[a-z][a-z0-9_]*", name)]
        assert not wrong, f"a knob is named in lower case, with _ between words: {', '.join(wrong)}"

    def test_a_launch_leaves_everything_as_it_was(self, case: Case, tmp_path: Path) -> None:
        case.engine.version()  # which may start its program
        assert side_effects(lambda: case.launch(tmp_path)) == []

    def test_its_probes_are_paths(self, case: Case) -> None:
        probes = case.engine.probes
        assert isinstance(probes, Probes), "probes are not Probes"
        for path in (probes.health, probes.metrics, probes.version, probes.resolved, *probes.flush):
            assert path is None or path.startswith("/"), f"{path!r} does not begin with a slash"

    def test_its_version_is_text_or_unknown(self, case: Case) -> None:
        version = case.engine.version()
        assert version is None or version.strip(), f"{version!r} is not a version"


class EngineAlive:
    """Requirements on an engine that the launcher starts; requests are chat completions."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _state(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Keep logs and entries of these servers out of the user's state folder."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
            yield

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, case: Case, _state: None) -> Iterator[Server]:
        """A ready server for all tests of the class."""
        running = case.begin()
        running.ready(case.ready_s)
        yield running
        running.stop(case.grace_s)

    def test_it_has_what_its_command_says(self, server: Server) -> None:
        assert [str(difference) for difference in server.differences()] == []

    def test_its_version_is_known(self, case: Case, server: Server) -> None:
        if not (case.engine.version() or server.version()):
            pytest.skip(
                "neither the installation nor the server reports it, so no result will have it"
            )

    def test_its_probes_answer(self, case: Case, server: Server) -> None:
        probes = case.engine.probes
        for path in filter(None, (probes.health, probes.metrics, probes.version, probes.resolved)):
            response = request(server.base_url + path)
            assert response.status == 200, f"GET {path} answers {response}"

    def test_its_health_is_good(self, server: Server) -> None:
        trouble = server.trouble()
        assert trouble is None, str(trouble)

    def test_a_stream_has_tokens_a_finish_and_usage(self, case: Case, server: Server) -> None:
        with Stream(server.base_url, server.model, timeout_s=case.ready_s) as stream:
            answer = StreamFormat(list(stream))
        assert answer.token_events, f"no token in {answer.events}"
        assert answer.finish_reason, f"no finish reason in {answer.events}"
        assert answer.usage, f"no usage in {answer.events}"
        assert answer.usage["completion_tokens"] >= answer.token_events, (
            f"{answer.usage} for {answer.token_events} texts"
        )

    def test_its_caches_can_be_emptied(self, server: Server) -> None:
        server.flush()

    def test_nothing_is_left_of_it(self, case: Case) -> None:
        server = case.begin()
        server.ready(case.ready_s)
        with Stream(
            server.base_url, server.model, max_tokens=1000, timeout_s=case.ready_s
        ) as stream:
            stream.first()
            server.stop(case.grace_s)
        assert processes.tagged(server.run_id) == []
        assert ports.is_free(case.host, int(server.base_url.rpartition(":")[2]))
        assert not server.log.path.parent.exists(), (
            f"{list(server.log.path.parent.iterdir())} is left"
        )

    def test_taken_port_is_reported(self, case: Case) -> None:
        with socket.socket() as stranger:
            failed = _failure(case, engine=_PortTaken(case.engine, stranger))
        assert failed.crash.kind == "port_in_use", str(failed)

    def test_unknown_flag_is_reported(self, case: Case) -> None:
        try:
            failed = _failure(case, more=(case.no_flag,))
        except BadInput:
            return  # the engine refuses it before anything is started
        assert failed.crash.kind == "bad_flag", str(failed)

    def test_missing_model_is_reported(self, case: Case) -> None:
        if case.no_model is None:
            pytest.skip("the engine serves any name")
        try:
            failed = _failure(case, model=case.no_model)
        except BadInput:
            return
        assert failed.crash.kind == "model_missing", str(failed)


def side_effects(call: Callable[[], object]) -> list[str]:
    """Return the files written, processes started, addresses used and variables set while `call`
    runs, by any thread.

    Compiled modules raise no audit events. Calls cannot be nested.
    """
    global _events, _hooked
    if not _hooked:  # a hook cannot be removed
        sys.addaudithook(_hook)
        _hooked = True
    events: list[str] = []
    _events = events
    try:
        call()
    finally:
        _events = None
    return events


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _events is None:
        return
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        _events.append(f"opens {arguments[0]!r} to write")
    elif event in CHANGES:
        _events.append(f"{event} {arguments!r}"[:200])


def _failure(
    case: Case, *, model: str | None = None, more: Sequence[str] = (), engine: Engine | None = None
) -> EngineFailed:
    """Start a server that must fail, and return its failure.

    Raises:
        BadInput: The engine refuses the launch.
    """
    server = case.begin(model=model, more=more, engine=engine)
    try:
        server.ready(case.ready_s)
    except EngineFailed as failed:
        return failed
    except EngineError as error:
        raise AssertionError(f"the server failed without a crash: {error}") from error
    else:
        raise AssertionError(f"{server} is ready")
    finally:
        server.stop(case.grace_s)


class _PortTaken:
    """An engine whose port is taken by another server between its reservation and the start."""

    def __init__(self, engine: Engine, stranger: socket.socket) -> None:
        self._engine = engine
        self._stranger = stranger
        self.name = engine.name
        self.probes = engine.probes
        self.version = engine.version
        self.knobs = engine.knobs

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        self._stranger.bind((place.host, place.port))
        self._stranger.listen()
        return self._engine.launch(model, knobs, raw, place)
