"""Supervised process: an engine's process, started and controlled through a supervisor process."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loadgen.engines.launch import supervisor_main
from loadgen.errors import EngineError

START_S = 30.0  # until the supervisor has started the engine, on a busy machine


class SupervisedProcess:
    """An engine's process under a supervisor; all methods may be called from any thread.

    Args:
        argv: The command; the first item is a path.
        env: The whole environment of the engine.
        folder: The working directory; None: the caller's.
        log: File for the engine's stdout and stderr.
        temporary: A folder that is removed when no process of the engine is left.
        on_started: Called once, in another thread, with the process ids of the engine and the
            supervisor.

    Attributes:
        code: The engine's exit code (negative: the signal); None while it runs, or if the
            supervisor was killed.
        supervisor_pid: Process id of the supervisor.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        folder: Path | None,
        log: Path,
        temporary: str,
        on_started: Callable[[int, int], None],
    ) -> None:
        self.code: int | None = None
        self._pid: int | None = None
        self._gone = False
        self._changed = threading.Condition()
        self._on_started = on_started
        places = [str(log), str(folder or ""), temporary]
        command = [
            sys.executable,
            "-I",
            "-S",
            supervisor_main.__file__,
            str(os.getpid()),
            *places,
            *argv,
        ]
        log_fd = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_fd,
                bufsize=0,
                start_new_session=True,
                env=dict(env),
            )
        finally:
            os.close(log_fd)
        self.supervisor_pid = self._process.pid
        self._listener = threading.Thread(
            target=self._listen, name=f"supervisor {self.supervisor_pid}", daemon=True
        )
        self._listener.start()

    @property
    def pid(self) -> int:
        """Process id of the engine, which is also the id of its process group.

        Raises:
            EngineError: The engine was not started.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._pid is not None or self._gone, START_S)
        if self._pid is None:
            raise EngineError(
                "the supervisor of the engine has ended or hangs; look at the engine's log"
            )
        return self._pid

    @property
    def alive(self) -> bool:
        """Whether the engine's process still runs."""
        return self.code is None and not self._gone

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait until the engine's process has ended; return whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.alive, timeout_s)

    def request_stop(self, grace_s: float) -> None:
        """Ask the engine to end, and have it killed after `grace_s`; the shortest time of
        several requests counts.
        """
        with contextlib.suppress(
            BrokenPipeError, ValueError
        ):  # the supervisor has ended, or its pipe is closed
            assert self._process.stdin is not None
            self._process.stdin.write(b"stop %f\n" % grace_s)

    def stop(self, grace_s: float, timeout_s: float) -> bool:
        """Ask the engine to end, kill it after `grace_s`; return whether no process is left
        after `timeout_s`.
        """
        self.request_stop(grace_s)
        with self._changed:
            gone = self._changed.wait_for(lambda: self._gone, timeout_s)
        if gone:
            self._listener.join()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
        return gone

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, number = line.decode().partition(" ")
            if word == "started":
                self._on_started(int(number), self.supervisor_pid)
            with self._changed:
                if word == "started":
                    self._pid = int(number)
                else:
                    self.code = int(number)
                self._changed.notify_all()
        with self._changed:
            self._gone = True
            self._changed.notify_all()
