"""Keeping: an engine's process as the program that asked for it sees it, through its keeper."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loadgen.engines import keeper
from loadgen.errors import EngineError

START_S = 30.0  # until the keeper has started the engine, on a machine that has no time


class Kept:
    """An engine's process, started by a keeper; may be used from any thread.

    Args:
        argv: The command; the first item is a path.
        env: Its whole environment.
        folder: Its working directory; None: the caller's.
        log: Where its stdout and stderr go.
        temporary: A folder that is removed when nothing of the engine runs any more.
        on_started: Called once it has started with its process id and the keeper's, by a thread of its own.

    Attributes:
        code: With which the engine has ended (negative: the signal); None while it runs, or where only its keeper knew.
        keeper_pid: Of its keeper.
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
        command = [sys.executable, "-I", "-S", keeper.__file__, str(os.getpid()), *places, *argv]
        written = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                bufsize=0,
                start_new_session=True,
                env=dict(env),
            )
        finally:
            os.close(written)
        self.keeper_pid = self._process.pid
        self._listener = threading.Thread(target=self._listen, name=f"keeper {self.keeper_pid}", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """The engine's process id, which is its process group's too.

        Raises:
            EngineError: It could not be started at all.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._pid is not None or self._gone, START_S)
        if self._pid is None:
            raise EngineError("the process that keeps the engine has ended or hangs; look at the engine's log")
        return self._pid

    @property
    def alive(self) -> bool:
        """Whether the process that was started still runs."""
        return self.code is None and not self._gone

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait until the engine has ended; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.alive, timeout_s)

    def ask_to_end(self, grace_s: float) -> None:
        """What is left of the engine after `grace_s` is killed, unless a sooner end was asked for before."""
        with contextlib.suppress(BrokenPipeError, ValueError):  # it has gone, or was put away
            assert self._process.stdin is not None
            self._process.stdin.write(b"stop %f\n" % grace_s)

    def stop(self, grace_s: float, timeout_s: float) -> bool:
        """Ask the engine to end, kill what is left of it after `grace_s`; whether nothing is left after `timeout_s`."""
        self.ask_to_end(grace_s)
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
                self._on_started(int(number), self.keeper_pid)
            with self._changed:
                if word == "started":
                    self._pid = int(number)
                else:
                    self.code = int(number)
                self._changed.notify_all()
        with self._changed:
            self._gone = True
            self._changed.notify_all()
