"""Launcher: starts engines on this machine, each at its own port, and finds servers that other
programs left behind.
"""

import contextlib
import json
import logging
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from loadgen.engines.kinds.engine import Engine, Launch, Place
from loadgen.engines.kinds.knobs import KINDS, KNOBS, Knob, own_knobs
from loadgen.engines.launch import ports, processes
from loadgen.engines.launch.crash_cause import Crash, EngineFailed, LogFile
from loadgen.engines.launch.processes import Process
from loadgen.engines.launch.server import READY_S, OnProgress, Server, ServerResources
from loadgen.engines.launch.server_registry import (
    Orphan,
    ServerEntry,
    ServerRegistry,
    StartupHistory,
)
from loadgen.engines.launch.shutdown import GpuMemory
from loadgen.engines.launch.supervisor import SupervisedProcess
from loadgen.errors import BadInput, EngineError
from loadgen.util import files
from loadgen.util.redaction import KEY_VARIABLE

_BOOLEANS = {"true": True, "false": False}
_PARSERS: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    str: str,
    bool: lambda text: _BOOLEANS[text.lower()],
    dict: json.loads,
}
LOG_NAME = "engine.log"
MAX_FAILED_LOGS = 10  # folders of failed launches that are kept
# For commands that are shown and not started, on any machine: the same folder in every script that
# reproduces a study. It is absolute, since MindIE starts in another working directory.
SHOWN_PORT = 8000
SHOWN_FOLDER = Path("/tmp/loadgen-engine")
UNSUPPORTED_SYSTEM = (
    "loadgen starts engines only on Linux, where it can stop them completely; "
    "start the server yourself, and give its --base-url"
)
logger = logging.getLogger("loadgen.engines")


def split_engine_args(
    words: Sequence[str], engine_knobs: Iterable[str] = ()
) -> tuple[dict[str, object], list[str]]:
    """Split words into knobs, `KNOB=VALUE`, and the engine's own flags, which start with a dash.

    A flag may stand in one word with its values; that word is split as a shell does.

    Args:
        words: The words.
        engine_knobs: Names of the knobs that the engine has; the values of those that engines do
            not share stay texts.

    Returns:
        The knobs, and the words of the flags.

    Raises:
        BadInput: A word is neither, names an unknown knob, or has a value of the wrong type.
    """
    knobs: dict[str, object] = {}
    raw: list[str] = []
    names = [*KNOBS, *own_knobs(engine_knobs)]
    for word in words:
        if word.startswith("-"):
            try:
                raw += shlex.split(word)
            except ValueError as error:
                problem = f"{word!r} cannot be split into words ({error})"
                raise BadInput(word.split()[0], problem, "close its quotes") from error
            continue
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in names:
            remedy = (
                f"write KNOB=VALUE, or a flag of the engine's own; the knobs are {', '.join(names)}"
            )
            raise BadInput(name, f"{word!r} is neither a knob nor a flag", remedy)
        if name in knobs:
            raise BadInput(name, "is given twice", "give it once")
        knobs[name] = _parse_value(KNOBS[name], text) if name in KNOBS else text
    return knobs, raw


def _parse_value(knob: Knob, text: str) -> Any:
    try:
        return _PARSERS[knob.kind](text)
    except (KeyError, ValueError):
        raise BadInput(
            knob.name,
            f"{text!r} is not {KINDS[knob.kind]}",
            f"give {KINDS[knob.kind]}: {knob.help}",
        ) from None


class Launcher:
    """Starts servers on this machine.

    Args:
        folder: Folder in which each launch gets a folder for its log and its files, which are kept.
            None: the user's state folder, in which only files of failed engines are kept.

    Attributes:
        given: Splits words into knobs and raw flags, as `split_engine_args`.
        knobs: Names of the engine-neutral knobs.
        never_started: Engines of which loadgen's own tests have never started a server, so that
            their commands follow the engines' sources, to where it was not started; empty: nowhere.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._registry = ServerRegistry()

    given = staticmethod(split_engine_args)
    knobs = tuple(KNOBS)
    never_started: Mapping[str, str] = {
        "vllm": "on a GPU",
        "vllm-ascend": "",
        "sglang": "",
        "trtllm": "",
        "mindie": "",
    }

    @staticmethod
    def shown(
        engine: Engine,
        model: str,
        knobs: Mapping[str, object],
        raw: Sequence[str],
        *,
        host: str = "127.0.0.1",
        port: int = SHOWN_PORT,
        devices: Sequence[str] = (),
    ) -> Launch:
        """Return what `begin` would start, with a placeholder for the port and the folder.

        Raises:
            BadInput: A knob cannot be used.
        """
        return engine.launch(model, knobs, raw, Place(port, SHOWN_FOLDER, host, tuple(devices)))

    @staticmethod
    def usual_start_s(engine: str, model: str) -> float | None:
        """Return the usual start-up time of an engine with a model, s; None if it has never
        started here.
        """
        return StartupHistory().usual_s(engine, model)

    def orphans(self) -> list[Orphan]:
        """Return the servers that programs of this user left behind and that still run."""
        return self._registry.orphans()

    def begin(
        self,
        engine: Engine,
        model: str,
        knobs: Mapping[str, object] | None = None,
        raw: Sequence[str] = (),
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        devices: Sequence[str] = (),
    ) -> Server:
        """Start a server and return at once; call its `ready()` before the first request.

        Args:
            engine: The kind of engine.
            model: A folder, a file or a hub name.
            knobs: Engine-neutral name to value.
            raw: The engine's own flags.
            host: Address to listen on.
            port: Port to listen on; None: a free one.
            devices: Ids of the accelerators that it may use.

        Raises:
            BadInput: A knob or the port cannot be used.
            EngineError: This system is not Linux, the engine is not installed, or its files cannot
                be written.
        """
        if sys.platform != "linux":
            raise EngineError(UNSUPPORTED_SYSTEM)
        for orphan in self.orphans():
            logger.warning("%s; end it, because it may hold memory and ports", orphan)
        run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{engine.name}-{os.urandom(4).hex()}"
        with contextlib.ExitStack() as undo:
            reservation = ports.reserve(host, port)
            undo.callback(reservation.release)
            folder = self._new_folder(run_id)
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            temporary = tempfile.mkdtemp(prefix="loadgen-")
            undo.callback(shutil.rmtree, temporary, ignore_errors=True)
            gpu_memory = GpuMemory(devices)
            launch = engine.launch(
                model, knobs or {}, raw, Place(reservation.port, folder, host, tuple(devices))
            )
            since_s = time.time()
            process = self._start_process(engine, launch, run_id, folder, temporary)
            log = LogFile(folder / LOG_NAME)
            resources = ServerResources(process, run_id, since_s, log, reservation, gpu_memory)
            undo.pop_all()

        def clean_up(failed: bool) -> None:
            reservation.release()
            self._registry.remove(run_id)
            shutil.rmtree(temporary, ignore_errors=True)
            if self._folder is None and not failed:
                shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # the folder has entries of other servers
                self._registry.folder.rmdir()

        history = StartupHistory()
        return Server(
            engine,
            launch,
            resources,
            usual_s=history.usual_s(engine.name, model),
            on_ready=partial(history.add, engine.name, model),
            on_stopped=clean_up,
        )

    def start(
        self,
        engine: Engine,
        model: str,
        knobs: Mapping[str, object] | None = None,
        raw: Sequence[str] = (),
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        devices: Sequence[str] = (),
        timeout_s: float = READY_S,
        on_progress: OnProgress | None = None,
    ) -> Server:
        """Start a server and return when it is ready.

        Raises:
            BadInput: As `begin`.
            EngineFailed: As `Server.ready`.
        """
        server = self.begin(engine, model, knobs, raw, host=host, port=port, devices=devices)
        try:
            server.ready(timeout_s, on_progress)
        except BaseException:
            server.stop(0.0)
            raise
        return server

    def _start_process(
        self, engine: Engine, launch: Launch, run_id: str, folder: Path, temporary: str
    ) -> SupervisedProcess:
        log = folder / LOG_NAME
        env = environment(launch, run_id, temporary)
        program = shutil.which(launch.argv[0], path=env.get("PATH"))
        if program is None:
            missing = f"command {launch.argv[0]!r} not found; install the engine, or set PATH"
            raise EngineFailed(engine.name, Crash("not_installed", missing))
        for path, text in launch.files.items():
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(path, "w", opener=files.private_opener) as file:
                    file.write(text)
            except OSError as error:
                raise EngineError(
                    f"{path} cannot be written ({error.strerror}); name another folder"
                ) from error

        def register(pid: int, supervisor_pid: int) -> None:
            owner, *started = (Process.at(number) for number in (os.getpid(), supervisor_pid, pid))
            with contextlib.suppress(OSError):  # only the report of orphans depends on it
                self._registry.write(
                    ServerEntry(run_id, engine.name, launch.base_url, str(log), owner, *started)
                )

        return SupervisedProcess(
            [program, *launch.argv[1:]], env, launch.folder, log, temporary, register
        )

    def _new_folder(self, run_id: str) -> Path:
        root = self._folder or files.state_folder() / "engines"
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = root / run_id
            # Another program may have removed root with its last server.
            folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            if self._folder is not None:
                raise EngineError(
                    f"{root} cannot be written ({error.strerror}); name another folder"
                ) from error
            return Path(tempfile.mkdtemp(prefix="loadgen-engine-"))
        if self._folder is None:
            # Servers that run have an entry; the oldest folders without one are removed.
            failed = [
                path
                for path in sorted(root.iterdir())
                if path.is_dir() and not path.with_suffix(".json").exists()
            ]
            for path in failed[: -MAX_FAILED_LOGS - 1]:
                shutil.rmtree(path, ignore_errors=True)
        return folder


def environment(launch: Launch, run_id: str, temporary: str) -> dict[str, str]:
    """Return the environment of a server: the caller's without the API key, the launch's, TMPDIR
    and the tag.

    TMPDIR is removed with the server, since engines leave sockets and files in it. What PyTorch
    compiles is kept.
    """
    inherited = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    defaults = {"TORCHINDUCTOR_CACHE_DIR": f"{tempfile.gettempdir()}/torchinductor_{os.getuid()}"}
    return defaults | inherited | {"TMPDIR": temporary} | dict(launch.env) | {processes.TAG: run_id}
