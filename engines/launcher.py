"""Live engine processes: start, wait until they listen, stop, leave nothing behind."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO

from loadgen.errors import EngineError
from loadgen.settings import KEY_VARIABLE

LISTENING = b"listening on "
TAIL_BYTES = 4096


class Server:
    """A running engine.

    Made by `launch`; also a context manager, which waits for readiness and stops it at the end.

    Attributes:
        model: Name that requests must use.
        tokenizer: Path of the tokenizer that counts as the engine does.
        template_tokens: What its chat template adds to the tokens of a message.
    """

    def __init__(
        self,
        name: str,
        process: subprocess.Popen[bytes],
        stderr: IO[bytes],
        model: str,
        tokenizer: str,
        template_tokens: int,
    ) -> None:
        self.model, self.tokenizer, self.template_tokens = model, tokenizer, template_tokens
        self._name, self._process, self._stderr = name, process, stderr
        assert process.stdout is not None
        self._output = process.stdout
        self._base_url: str | None = None
        self._stopped = False

    def __repr__(self) -> str:
        state = "starting" if self._base_url is None else self._base_url
        return f"<Server {self._name} pid {self.pid} {state if self._process.returncode is None else 'stopped'}>"

    def __enter__(self) -> "Server":
        self.ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Id of the process, which leads its own session."""
        return self._process.pid

    @property
    def base_url(self) -> str:
        """Scheme, host and port; waits as `ready` does."""
        return self.ready()

    def alive(self) -> bool:
        """Whether the process that was started still runs."""
        return self._process.poll() is None

    def ready(self, timeout_s: float = 30.0) -> str:
        """Wait until the server listens and return its base URL. One that does not come up is stopped.

        Raises:
            EngineError: It ended, or took longer than `timeout_s`; the message has the end of its error output.
        """
        if self._base_url is None:
            try:
                self._base_url = self._announcement(time.monotonic() + timeout_s)
            except EngineError:
                self.stop()
                raise
        return self._base_url

    def stop(self, grace_s: float = 5.0) -> None:
        """End the process and everything it started: SIGTERM, after `grace_s` SIGKILL; no-op when it is gone.

        Raises:
            EngineError: It survived even that.
        """
        if self._stopped:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        # Usually nothing is left of the group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            raise EngineError(f"{self._name}: process {self.pid} survived SIGKILL; look at it with ps") from None
        self._output.close()
        self._stderr.close()
        self._stopped = True

    def _announcement(self, deadline: float) -> str:
        """Return the URL from the line that the process prints when it listens."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        said = b""
        while b"\n" not in said:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise self._failure("did not listen in time; give it longer or look at its log")
            data = os.read(self._output.fileno(), 65536)
            if not data:
                raise self._failure(f"ended at start with code {self._process.wait()}")
            said += data
        line = said.partition(b"\n")[0]
        if not line.startswith(LISTENING):
            raise self._failure(f"printed {line[:200]!r} instead of where it listens")
        return line[len(LISTENING) :].decode().strip()

    def _failure(self, problem: str) -> EngineError:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - TAIL_BYTES))
        tail = self._stderr.read().decode(errors="replace").strip()
        return EngineError(f"{self._name}: {problem}" + (f"; its last words: {tail}" if tail else ""))


def launch(name: str, argv: Sequence[str], *, model: str, tokenizer: str, template_tokens: int = 0) -> Server:
    """Start a server process in its own session and return at once.

    Its first line on stdout must be `listening on URL`; stderr goes to an unnamed file, so that it can never block.

    Args:
        name: What error messages call it.
        argv: The command.
        model: Model name it will serve.
        tokenizer: Path of its tokenizer.
        template_tokens: What its chat template adds to the tokens of a message.

    Raises:
        EngineError: The command cannot be run.
    """
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 - the Server closes it
    environment = {variable: value for variable, value in os.environ.items() if variable != KEY_VARIABLE}
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        stderr.close()
        raise EngineError(f"{name}: cannot run {argv[0]}: {error.strerror}; is it installed?") from error
    return Server(name, process, stderr, model, tokenizer, template_tokens)
