"""Launcher: starts engines, each at a port of its own, and knows what earlier programs have left behind."""

import contextlib
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from loadgen.engines import ports, processes
from loadgen.engines.crash import Crash, EngineFailed
from loadgen.engines.engine import Engine, Launch, Place
from loadgen.engines.given import given
from loadgen.engines.gpu_memory import GpuMemory
from loadgen.engines.keeping import Kept
from loadgen.engines.knobs import KNOBS
from loadgen.engines.logs import Log
from loadgen.engines.processes import Process
from loadgen.engines.registry import Entry, Orphan, Registry
from loadgen.engines.server import READY_S, OnProgress, Server
from loadgen.engines.start_times import StartTimes
from loadgen.errors import EngineError
from loadgen.util import private_files
from loadgen.util.redaction import KEY_VARIABLE

LOG = "engine.log"
MOST_KEPT = 10  # logs of engines that failed
SHOWN_PORT, SHOWN_FOLDER = 8000, Path("/tmp/loadgen-engine")  # in commands that are only shown, on any machine
NOT_HERE = "engines are started on Linux alone, where nothing of them stays; start the server, and name its --base-url"

logger = logging.getLogger("loadgen.engines")


class Launcher:
    """Starts servers on this machine.

    Args:
        folder: Where each launch gets a folder for its log and its files; they stay. Without one, they lie in the
            user's state folder, and stay only where the engine failed.

    Attributes:
        given: See `loadgen.engines.given`.
        knobs: Names of the engine-neutral knobs.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._registry = Registry()

    given = staticmethod(given)
    knobs = tuple(KNOBS)

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
        """What `begin` would start, at a port and in a folder that stand for those it would choose.

        Raises:
            BadInput: A knob cannot be used.
        """
        return engine.launch(model, knobs, raw, Place(port, SHOWN_FOLDER, host, tuple(devices)))

    @staticmethod
    def usual_start_s(engine: str, model: str) -> float | None:
        """How long that engine has taken here to answer with that model; None if it has never started here."""
        return StartTimes().usual_s(engine, model)

    def orphans(self) -> list[Orphan]:
        """The servers that programs of this user have left behind, and that still run."""
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
            engine: Which.
            model: A folder, a file or a hub name.
            knobs: Engine-neutral names to values.
            raw: The engine's own flags.
            host: To listen on.
            port: To listen on; None: one that is free.
            devices: Ids of the accelerators it may use.

        Raises:
            BadInput: A knob, or the port, cannot be used.
            EngineError: This system is not Linux, the command is not installed, or its files cannot be written.
        """
        if sys.platform != "linux":
            raise EngineError(NOT_HERE)
        for orphan in self.orphans():
            logger.warning("%s; end it, it may hold memory and ports", orphan)
        run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{engine.name}-{os.urandom(4).hex()}"
        with contextlib.ExitStack() as undo:
            reservation = ports.reserve(host, port)
            undo.callback(reservation.release)
            folder = self._new_folder(run_id)
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            temporary = tempfile.mkdtemp(prefix="loadgen-")
            undo.callback(shutil.rmtree, temporary, ignore_errors=True)
            gpu_memory = GpuMemory(devices)
            launch = engine.launch(model, knobs or {}, raw, Place(reservation.port, folder, host, tuple(devices)))
            since_s = time.time()
            kept = self._keep(engine, launch, run_id, folder, temporary)
            undo.pop_all()

        def forget(failed: bool) -> None:
            reservation.release()
            self._registry.remove(run_id)
            shutil.rmtree(temporary, ignore_errors=True)
            if self._folder is None and not failed:
                shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # others are in it
                self._registry.folder.rmdir()

        times = StartTimes()
        return Server(
            engine,
            launch,
            kept,
            run_id=run_id,
            since_s=since_s,
            log=Log(folder / LOG),
            reservation=reservation,
            gpu_memory=gpu_memory,
            usual_s=times.usual_s(engine.name, model),
            on_ready=partial(times.add, engine.name, model),
            on_stopped=forget,
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
        """Start a server and return when it answers.

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

    def _keep(self, engine: Engine, launch: Launch, run_id: str, folder: Path, temporary: str) -> Kept:
        log, env = folder / LOG, environment(launch, run_id, temporary)
        found = shutil.which(launch.argv[0], path=env.get("PATH"))
        if found is None:
            missing = f"there is no command {launch.argv[0]!r}; install the engine, or set PATH"
            raise EngineFailed(engine.name, Crash("not_installed", missing))
        _write(launch)

        def enter(pid: int, keeper: int) -> None:
            owner, *kept = (Process.at(number) for number in (os.getpid(), keeper, pid))
            with contextlib.suppress(OSError):  # nothing but the report of the next start depends on it
                self._registry.write(Entry(run_id, engine.name, launch.base_url, str(log), owner, *kept))

        return Kept([found, *launch.argv[1:]], env, launch.folder, log, temporary, enter)

    def _new_folder(self, run_id: str) -> Path:
        root = self._folder or private_files.state_folder() / "engines"
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = root / run_id
            folder.mkdir(mode=0o700, parents=True)  # the last server of another program may have taken root away
        except OSError as error:
            if self._folder is not None:
                raise EngineError(f"{root} cannot be written ({error.strerror}); name another folder") from error
            return Path(tempfile.mkdtemp(prefix="loadgen-engine-"))
        if self._folder is None:
            _forget_old(root)
        return folder


def environment(launch: Launch, run_id: str, temporary: str) -> dict[str, str]:
    """The whole environment of a server: the caller's without our key, the launch's, the tag, a folder to throw away.

    Engines leave sockets and files in the folder for temporary files. What PyTorch compiles there is worth keeping.
    """
    own = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    kept = {"TORCHINDUCTOR_CACHE_DIR": f"{tempfile.gettempdir()}/torchinductor_{os.getuid()}"}
    return kept | own | {"TMPDIR": temporary} | dict(launch.env) | {processes.TAG: run_id}


def _write(launch: Launch) -> None:
    for path, text in launch.files.items():
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(path, "w", opener=private_files.opener) as file:
                file.write(text)
        except OSError as error:
            raise EngineError(f"{path} cannot be written ({error.strerror}); name another folder") from error


def _forget_old(root: Path) -> None:
    """Remove the oldest folders of failed launches; those of servers that run have an entry."""
    done = [path for path in sorted(root.iterdir()) if path.is_dir() and not path.with_suffix(".json").exists()]
    for path in done[: -MOST_KEPT - 1]:
        shutil.rmtree(path, ignore_errors=True)
