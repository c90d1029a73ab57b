"""Server: an engine that runs, from its start until nothing of it is left."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from loadgen.engines import processes, shared_memory, stopping
from loadgen.engines.ask import ask
from loadgen.engines.crash import Crash, EngineFailed, complaint, diagnose
from loadgen.engines.engine import Engine, Launch
from loadgen.engines.gpu_memory import GpuMemory
from loadgen.engines.keeping import Kept
from loadgen.engines.logs import Log
from loadgen.engines.ports import Reservation
from loadgen.engines.readback import Difference, differences, version_told
from loadgen.engines.ready import HEALTH_S, silence, trouble
from loadgen.errors import EngineError, Unreachable

OnProgress = Callable[[float, str], None]  # seconds since the start, the log's last line

READY_S = 600.0
GRACE_S = 30.0
FIRST_LOOK_S, LAST_LOOK_S = 0.01, 0.5  # between two looks whether it answers: at first, and at last
FIRST_TOKEN_S = 180.0
TAIL_LINES = 20
WANTS_MEMORY = {"leaked_memory", "oom_kv", "oom_load", "oom_run"}  # kinds of failure that others may have caused
FLUSH_TRIES = 20
FLUSH_AGAIN_S = 0.5


class Server:
    """A live engine, made by `Launcher`; also a context manager, which waits until it answers and stops it at the end.

    Args:
        since_s: Unix time, s, before which none of its files was made.

    Attributes:
        engine: What it is an instance of.
        launch: What was started.
        base_url: Scheme, host and port.
        model: Name that requests must use.
        tokenizer: A tokenizer that counts as the engine does; None: none is known.
        template_tokens: What its chat template adds to the tokens of a message; None: nobody knows beforehand.
        log: What it says.
        run_id: In the environment of all its processes, as LOADGEN_RUN_ID.
        usual_s: How long it has taken before until it answered; None: it has never started here.
    """

    def __init__(
        self,
        engine: Engine,
        launch: Launch,
        kept: Kept,
        *,
        run_id: str,
        since_s: float,
        log: Log,
        reservation: Reservation,
        gpu_memory: GpuMemory,
        usual_s: float | None,
        on_ready: Callable[[float], None],
        on_stopped: Callable[[bool], None],
    ) -> None:
        self.engine, self.launch, self.log, self.run_id, self.usual_s = engine, launch, log, run_id, usual_s
        self.base_url, self.model, self.tokenizer = launch.base_url, launch.model, launch.tokenizer
        self.template_tokens = launch.template_tokens
        self._kept, self._reservation, self._gpu_memory = kept, reservation, gpu_memory
        self._on_ready, self._on_stopped = on_ready, on_stopped
        self._began_s = time.monotonic()
        self._ready = self._stopping = self._stopped = self._failed = False
        self._stop_once = threading.Lock()
        self._since, self._shared = since_s, set[Path]()

    def __repr__(self) -> str:
        state = "stopped" if not self.alive() else "ready" if self._ready else "starting"
        return f"<Server {self.engine.name} {self.base_url} {state}>"

    def __enter__(self) -> "Server":
        self.ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Id of the process that was started, which leads its own session."""
        return self._kept.pid

    def alive(self) -> bool:
        """Whether the process that was started still runs."""
        return self._kept.alive

    def ready(self, timeout_s: float = READY_S, on_progress: OnProgress | None = None) -> str:
        """Wait until the server has completed a prompt as the model; returns the base URL. One that fails is stopped.

        Args:
            timeout_s: From now.
            on_progress: Called again and again meanwhile.

        Raises:
            EngineFailed: It ended, does not answer in time, or refuses the model; the message has the end of its log.
            EngineError: It was stopped meanwhile.
        """
        end_s = time.monotonic() + timeout_s
        try:
            while not self._ready:
                why = self._silence(end_s, on_progress)
                if why is None:
                    self._ready = True
                    self._on_ready(time.monotonic() - self._began_s)
                    self._look_at_shared_memory()
                elif time.monotonic() >= end_s:
                    raise self._failure(Crash("start_timeout", f"no token after {timeout_s:g} s: {why}{self._said()}"))
                else:
                    since_s = time.monotonic() - self._began_s
                    self._kept.wait_ended(min(max(since_s / 20, FIRST_LOOK_S), LAST_LOOK_S))
        except EngineError:
            self.stop()
            raise
        return self.base_url

    def trouble(self, timeout_s: float = HEALTH_S, *, token: bool = False) -> EngineFailed | None:
        """What is wrong with a server that has answered once; None if its process is the same and its health good.

        A process that lives shows nothing: engines are known that answer 503 for ever after a worker has died. Good
        health shows little: vLLM's stays good while its worker hangs.

        Args:
            timeout_s: For its health, and for the token.
            token: Ask for one real token too.
        """
        if not self.alive():
            return self._ended()
        why = trouble(self.base_url, self.engine.probes, timeout_s)
        if why is None and token:
            try:
                why = silence(self.base_url, self.model, self.engine.probes, timeout_s, int)
            except EngineError as error:
                why = str(error)
        if why is None:
            return None
        return self._ended() if not self.alive() else self._failure(Crash("hang", why))

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait until the process that was started has ended; whether it has."""
        return self._kept.wait_ended(timeout_s)

    def flush(self) -> None:
        """Empty its caches, as far as it can; again and again while it says that requests still run.

        Raises:
            EngineError: It does not.
        """
        for path in self.engine.probes.flush:
            for _ in range(FLUSH_TRIES):
                try:
                    answer = ask(self.base_url + path, post=True, timeout_s=60.0)
                except Unreachable as error:
                    raise EngineError(f"{self.engine.name}: its caches cannot be emptied: {error}") from error
                if answer.status < 300:
                    break
                self._kept.wait_ended(FLUSH_AGAIN_S)
            else:
                raise EngineError(
                    f"{self.engine.name}: POST {path} answers {answer} after {FLUSH_TRIES} tries; start it anew instead"
                )

    def version(self) -> str | None:
        """The version that it tells; None if it tells none."""
        return version_told(self._told(self.engine.probes.version))

    def resolved(self) -> Any:
        """The configuration that it tells, as JSON; None if it tells none."""
        return self._told(self.engine.probes.resolved)

    def differences(self) -> list[Difference]:
        """What it has otherwise than was asked: settings, and a version that is not the installed one."""
        installed, told = self.engine.version(), self.version()
        # What stands behind a plus names a build; not every server tells that.
        differs = installed and told and installed.partition("+")[0] not in told
        other = [Difference("version", installed, told)] if installed and told and differs else []
        return other + differences(self.launch.argv, self.resolved())

    def stop(self, grace_s: float = GRACE_S) -> None:
        """End the process and everything it started: SIGTERM, after `grace_s` SIGKILL; no-op when that is done.

        Raises:
            Leaked: Something of it is left all the same.
        """
        self._stopping = True
        with self._stop_once:
            if self._stopped:
                return
            at = self._reservation if self._ready else None
            self._look_at_shared_memory()
            stopping.put_away(self.engine.name, self._kept, self.run_id, at, self._gpu_memory, grace_s)
            shared_memory.remove(self._shared, self._since)
            self._stopped = True
            self._on_stopped(self._failed)

    def hurry(self) -> None:
        """Let a `stop` that goes on in the meantime wait no longer: what is left is killed."""
        self._kept.ask_to_end(0.0)

    def _look_at_shared_memory(self) -> None:
        """Note what its processes share: once they have ended nobody can tell whose it was."""
        self._shared |= shared_memory.segments(processes.descendants(self._kept.keeper_pid))

    def _silence(self, end_s: float, on_progress: OnProgress | None) -> str | None:
        """Why it does not answer yet."""

        def meanwhile() -> None:
            if not self.alive():
                raise EngineError("stopped while it was waited for") if self._stopping else self._ended()
            if on_progress is not None:
                on_progress(time.monotonic() - self._began_s, self.log.last_line())

        meanwhile()
        # The last look too is one that can be answered: else it would hide what the one before has seen.
        left_s = min(FIRST_TOKEN_S, max(LAST_LOOK_S, end_s - time.monotonic()))
        try:
            return silence(self.base_url, self.model, self.engine.probes, left_s, meanwhile)
        except EngineFailed:
            raise
        except EngineError as error:
            if self._stopping:
                raise
            raise self._failure(Crash("wrong_model", str(error))) from error

    def _ended(self) -> EngineFailed:
        """Why its process has ended."""
        return self._failure(diagnose(self.log.text(), self._kept.code, was_ready=self._ready))

    def _said(self) -> str:
        """What its log says is wrong with it, though its process lives."""
        said = complaint(self.log.text())
        return f"; its log says {said}" if said else ""

    def _failure(self, crash: Crash) -> EngineFailed:
        self._failed = True
        others = self._gpu_memory.in_use() if crash.kind in WANTS_MEMORY else ""
        if others:
            crash = Crash("gpu_in_use", f"{others}; {crash.cause}", crash.code)
        return EngineFailed(self.engine.name, crash, self.log.path, self.log.tail(TAIL_LINES))

    def _told(self, path: str | None) -> Any:
        if path is None:
            return None
        with contextlib.suppress(Unreachable):
            answer = ask(self.base_url + path)
            return answer.json() if answer.status == 200 else None
        return None
