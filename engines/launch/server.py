"""Server: a running engine, from its start until it is stopped and nothing of it is left."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadgen.engines.kinds.engine import Engine, Launch
from loadgen.engines.launch import processes
from loadgen.engines.launch.crash_cause import Crash, EngineFailed, LogFile, complaint, diagnose
from loadgen.engines.launch.ports import Reservation
from loadgen.engines.launch.readiness import (
    HEALTH_S,
    BadHealth,
    Difference,
    NoNetwork,
    NoToken,
    differences,
    health_problem,
    readiness_problem,
    reported_version,
)
from loadgen.engines.launch.shutdown import (
    GpuMemory,
    remove_shared_memory,
    shared_memory_segments,
    stop_and_verify,
)
from loadgen.engines.launch.supervisor import SupervisedProcess
from loadgen.errors import EngineError, Unreachable
from loadgen.util.http_client import request

# Called with the seconds since the start and the log's last line.
OnProgress = Callable[[float, str], None]

READY_S = 600.0
GRACE_S = 30.0
MIN_POLL_S, MAX_POLL_S = 0.01, 0.5  # between two checks of readiness: at first, and later
FIRST_TOKEN_S = 180.0
# Of bad health after a good one, or of answers without a token: a server that still warms up may
# give some.
FAILING_S = 10.0
TAIL_LINES = 20
# Kinds of crash that other users of the GPU may cause.
MEMORY_FAILURES = {"leaked_memory", "oom_kv", "oom_load", "oom_run"}
FLUSH_TRIES = 20
FLUSH_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class ServerResources:
    """The process of a server, and what the launcher reserved for it.

    Attributes:
        process: The engine's process, with its supervisor.
        run_id: Value of LOADGEN_RUN_ID in the environment of all its processes.
        since_s: Unix time before the start, s; its files are not older.
        log: The log file.
        reservation: The port.
        gpu_memory: The use of GPU memory before the start.
    """

    process: SupervisedProcess
    run_id: str
    since_s: float
    log: LogFile
    reservation: Reservation
    gpu_memory: GpuMemory


class Server:
    """A running engine, created by `Launcher`; as a context manager it waits until the server is
    ready, and stops it.

    Args:
        resources: Its process, port, log and GPU memory.
        on_ready: Called once with the start-up time, s.
        on_stopped: Called once after the stop, with whether the server failed.

    Attributes:
        engine: The kind of engine.
        launch: The command that was started.
        base_url: URL of the server: scheme, host and port.
        model: Model name for requests.
        tokenizer: A tokenizer that counts as the engine does; None: unknown.
        template_tokens: Tokens that the chat template adds to a message; None: unknown before the
            start.
        log: The log file.
        run_id: Value of LOADGEN_RUN_ID in the environment of all its processes.
        usual_s: Usual start-up time, s; None: this engine has never started with this model here.
    """

    def __init__(
        self,
        engine: Engine,
        launch: Launch,
        resources: ServerResources,
        *,
        usual_s: float | None,
        on_ready: Callable[[float], None],
        on_stopped: Callable[[bool], None],
    ) -> None:
        self.engine, self.launch, self.usual_s = engine, launch, usual_s
        self.log, self.run_id = resources.log, resources.run_id
        self.base_url, self.model, self.tokenizer = launch.base_url, launch.model, launch.tokenizer
        self.template_tokens = launch.template_tokens
        self._resources, self._process = resources, resources.process
        self._on_ready, self._on_stopped = on_ready, on_stopped
        self._started_s = time.monotonic()
        self._healthy = self._ready = self._stopping = self._stopped = self._failed = False
        self._failing_since_s: float | None = None
        self._stop_once = threading.Lock()
        self._shared = set[Path]()

    def __repr__(self) -> str:
        state = "stopped" if not self.alive() else "ready" if self._ready else "starting"
        return f"<Server {self.engine.name} {self.base_url} {state}>"

    def __enter__(self) -> "Server":
        self.ready()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the engine, which leads its own session."""
        return self._process.pid

    def alive(self) -> bool:
        """Return whether the engine's process still runs."""
        return self._process.alive

    def ready(
        self,
        timeout_s: float = READY_S,
        on_progress: OnProgress | None = None,
        *,
        chat: bool | None = None,
    ) -> str:
        """Wait until the server has answered a prompt, and return its URL; a server that fails is
        stopped.

        Args:
            timeout_s: Maximum time from now, s.
            on_progress: Called repeatedly meanwhile.
            chat: Whether to ask a chat, or a completion; None: what the server has.

        Raises:
            EngineFailed: It ended, is not ready in time, refuses the model, or answers without a
                token time after time; the message has the end of its log.
            EngineError: It was stopped meanwhile.
        """
        end_s = time.monotonic() + timeout_s
        try:
            while not self._ready:
                problem = self._readiness_problem(end_s, on_progress, chat)
                if problem is None:
                    self._ready = True
                    self._on_ready(time.monotonic() - self._started_s)
                    self._note_shared_memory()
                elif time.monotonic() >= end_s:
                    raise self._failure(
                        Crash(
                            "start_timeout",
                            f"no token after {timeout_s:g} s: {problem}{self.log_complaint}",
                        )
                    )
                else:
                    since_s = time.monotonic() - self._started_s
                    self._process.wait_ended(min(max(since_s / 20, MIN_POLL_S), MAX_POLL_S))
        except EngineError:
            self.stop()
            raise
        return self.base_url

    def trouble(self, timeout_s: float = HEALTH_S, *, token: bool = False) -> EngineFailed | None:
        """Return what is wrong with a server that has been ready; None if it runs and its health is
        good.

        A running process proves nothing: some engines answer 503 for ever after a worker has died.
        Good health proves little: vLLM's stays good while its worker hangs.

        Args:
            timeout_s: Timeout of the health request and of the token, s.
            token: Whether to request one real token too.
        """
        if not self.alive():
            return self._ended()
        try:
            problem = health_problem(self.base_url, self.engine.probes, timeout_s)
            if problem is None and token:
                problem = readiness_problem(self.base_url, self.model, timeout_s, int)
        except EngineError as error:
            problem = str(error)
        if problem is None:
            return None
        return self._ended() if not self.alive() else self._failure(Crash("hang", problem))

    @property
    def log_complaint(self) -> str:
        """The error in the log of a server that still runs, as the end of a message; or empty."""
        line = complaint(self.log.text())
        return f"; its log says {line}" if line else ""

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait until the engine's process has ended; return whether it has."""
        return self._process.wait_ended(timeout_s)

    def flush(self) -> None:
        """Empty the server's caches, if it can; retried while it reports that requests still run.

        Raises:
            EngineError: The caches cannot be emptied.
        """
        for path in self.engine.probes.flush:
            for _ in range(FLUSH_TRIES):
                try:
                    response = request(self.base_url + path, post=True, timeout_s=60.0)
                except Unreachable as error:
                    raise EngineError(
                        f"{self.engine.name}: its caches cannot be emptied: {error}"
                    ) from error
                if response.status < 300:
                    break
                self._process.wait_ended(FLUSH_RETRY_S)
            else:
                tried = f"POST {path} answers {response} after {FLUSH_TRIES} tries"
                raise EngineError(f"{self.engine.name}: {tried}; restart the server instead")

    def version(self) -> str | None:
        """Return the version that the server reports; None if it reports none."""
        return reported_version(self._get_json(self.engine.probes.version))

    def resolved(self) -> Any:
        """Return the configuration that the server reports, as JSON; None if it reports none."""
        return self._get_json(self.engine.probes.resolved)

    def differences(self) -> list[Difference]:
        """Return the settings for which the server reports other values than requested, and
        another version.
        """
        installed, reported = self.engine.version(), self.version()
        # A suffix after a plus names a build; not every server reports it.
        differs = installed and reported and installed.partition("+")[0] not in reported
        version = (
            [Difference("version", installed, reported)]
            if installed and reported and differs
            else []
        )
        return version + differences(self.launch.argv, self.resolved())

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Stop the server and all its processes: SIGTERM, after `grace_s` SIGKILL; does nothing if
        it is stopped.

        Raises:
            Leaked: Something of the server is left.
        """
        self._stopping = True
        with self._stop_once:
            if self._stopped:
                return
            port = self._resources.reservation if self._ready else None
            self._note_shared_memory()
            stop_and_verify(
                self.engine.name,
                self._process,
                self.run_id,
                port,
                self._resources.gpu_memory,
                grace_s,
            )
            remove_shared_memory(self._shared, self._resources.since_s)
            self._stopped = True
            self._on_stopped(self._failed)

    def hurry(self) -> None:
        """End the grace time of a `stop` in another thread or below a signal handler: what is
        left is killed now.
        """
        self._process.request_stop(0.0)

    def _note_shared_memory(self) -> None:
        """Note the shared memory of the server's processes; after their end it is unknown whose
        it was.
        """
        self._shared |= shared_memory_segments(processes.descendants(self._process.supervisor_pid))

    def _readiness_problem(
        self, end_s: float, on_progress: OnProgress | None, chat: bool | None
    ) -> str | None:
        def on_wait() -> None:
            if not self.alive():
                raise (
                    EngineError("the server was stopped while it was starting")
                    if self._stopping
                    else self._ended()
                )
            if on_progress is not None:
                on_progress(time.monotonic() - self._started_s, self.log.last_line())

        on_wait()
        # The last check must leave time for an answer: else it would hide what the check before has
        # found.
        left_s = min(FIRST_TOKEN_S, max(MAX_POLL_S, end_s - time.monotonic()))
        try:
            problem = health_problem(self.base_url, self.engine.probes, on_wait=on_wait)
            if problem is None:
                self._healthy = True
                problem = readiness_problem(self.base_url, self.model, left_s, on_wait, chat)
        except EngineFailed:
            raise
        except (BadHealth, NoToken) as error:
            if not self._healthy:
                return str(error)
            now_s = time.monotonic()
            self._failing_since_s = self._failing_since_s or now_s
            if now_s - self._failing_since_s < FAILING_S:
                return str(error)
            raise self._failure(self._crash_while_starting(error)) from error
        except NoNetwork as error:
            raise self._failure(Crash("no_network", str(error))) from error
        except EngineError as error:
            if self._stopping:
                raise
            raise self._failure(Crash("wrong_model", str(error))) from error
        self._failing_since_s = None
        return problem

    def _ended(self) -> EngineFailed:
        return self._failure(diagnose(self.log.text(), self._process.code, was_ready=self._ready))

    def _crash_while_starting(self, error: BadHealth | NoToken) -> Crash:
        """Return why a server that still runs will not be ready: its process runs on where only
        a worker has died.
        """
        observed = f"for {FAILING_S:g} s, {error}"
        if isinstance(error, NoToken):
            return Crash("no_token", observed + self.log_complaint)
        crash = diagnose(self.log.text(), None)
        if crash.kind == "unknown":
            return Crash("hang", observed + self.log_complaint)
        return replace(crash, cause=f"{crash.cause}; {observed}")

    def _failure(self, crash: Crash) -> EngineFailed:
        self._failed = True
        others = self._resources.gpu_memory.in_use() if crash.kind in MEMORY_FAILURES else ""
        if others:
            crash = Crash("gpu_in_use", f"{others}; {crash.cause}", crash.code)
        return EngineFailed(self.engine.name, crash, self.log.path, self.log.tail(TAIL_LINES))

    def _get_json(self, path: str | None) -> Any:
        if path is None:
            return None
        with contextlib.suppress(Unreachable):
            response = request(self.base_url + path)
            return response.json() if response.status == 200 else None
        return None
