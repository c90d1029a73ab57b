"""Crash: why an engine failed, found from its log, which may be long and may still grow, and
from its exit code.
"""

import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadgen.errors import EngineError

TAIL_BYTES = 64 << 10
MAX_LINE_CHARS = 1000  # a progress bar, or output that is not text, may be one endless line
READ_BYTES = 8 << 20  # read from the beginning and from the end, to find the cause of a crash
# From the most to the least specific: the first pattern that matches the cause names its kind.
KINDS = {
    "unsupported_hw": r"Unsupported SM version|unsupported on SM\s?\d|not supported in this "
    r"architecture"
    r"|no kernel image|compute capability",
    "leaked_memory": r"Free memory on device .* is less than desired",
    "oom_kv": r"No available memory for the cache blocks|KV cache is needed, which is larger"
    r"|Not enough memory\. Please try to increase --mem-fraction-static|failed to "
    r"(create|allocate).*(kv|KV) ?cache",
    "oom": r"out of memory|OutOfMemoryError|MemoryError|failed to allocate "
    r"(buffer|compute)|cannot allocate memory"
    r"|insufficient memory|std::bad_alloc",
    "port_in_use": r"address already in use|EADDRINUSE|[Cc]ouldn'?t bind|cannot listen on .* in "
    r"use",
    "distributed": r"\bNCCL\b|\bHCCL\b|ProcessGroup|DistBackendError|DistNetworkError",
    "model_missing": r"is not a local folder|--model: .* is not a file|Repository ?Not "
    r"?Found|GatedRepo"
    r"|failed to open GGUF|failed to load model.*No such file|model .*does not exist"
    r"|No such file or directory.*\.(gguf|safetensors|json)"
    r"|(does|do) not (appear to have|have) a file named|Can't load (the configuration|tokenizer)"
    r"|Repo id must be in the form|outgoing traffic has been disabled|couldn't find them in the "
    r"cached files",
    "bad_checkpoint": r"KeyError: '.*weight|size mismatch|(not|n't) "
    r"divisible|weight_block_size|invalid magic"
    r"|SafetensorError|tensor .*(not found|wrong shape)|corrupted or "
    r"incomplete|gguf_init_from_reader: failed to read",
    "bad_flag": r"unrecognized arguments|[Nn]o such option|invalid argument|unknown "
    r"argument|invalid choice"
    r"|is not a usable value|is out of range; give|unknown (value|fault|profile) '"
    r"|expected one argument|arguments are required",
    "unsupported_combo": r"is not valid for this configuration|does not support|unexpected "
    r"keyword argument"
    r"|NotImplementedError|(is|are) not supported|does not recognize this architecture",
    "killed": r"died unexpectedly",  # one process of several
    "not_installed": r"cannot run .*: |command not found|ModuleNotFoundError",
}
# Another try would fail in the same way; after all other kinds, one more try makes sense.
DETERMINISTIC = {
    "unsupported_hw",
    "unsupported_combo",
    "bad_checkpoint",
    "bad_flag",
    "model_missing",
    "not_installed",
}
DETERMINISTIC |= {"oom_load", "oom_kv", "oom_run", "wrong_model", "no_token", "no_network"}
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
PREFIX = re.compile(
    r"""\s*(?:
        \([A-Za-z_]\w*[^()]*\bpid=\d+[^()]*\)  # (EngineCore_0 pid=1)
      | \[[^\[\]]{1,80}\]:?(?=\s|\[|[A-Za-z])  # [rank0]:  [2025-11-21 10:00:00 TP0]  [core.py:700]
      # with or without a year
      | \d{2,4}[-/]\d\d(?:[-/]\d\d)?[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\s?[+-]\d\d:?\d\d|Z)?
      | \d\d:\d\d:\d\d(?:[.,]\d+)?
      | \d+\.\d\d\.\d{3}\.\d{3}\s[A-Z]  # llama.cpp's time since its start
      | (?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b:?(?=\s)
    )""",
    re.VERBOSE,
)
HARMLESS = re.compile(r"\b(?:DEBUG|INFO|NOTICE|WARN|WARNING)\b|^\d+\.\d\d\.\d{3}\.\d{3} [DIW] ")
SEVERE = re.compile(r"\b(?:ERROR|CRITICAL|FATAL)\b|^\d+\.\d\d\.\d{3}\.\d{3} E ")
EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Abort|Exit|Interrupt|NotFound|Died)(?:: .*|$)"
)
COMPLAINT = re.compile(
    r"(?:[\w./-]+: )*(?:error|fatal)\b.*|.*: error: .*|terminate called .*|.*failed to .*", re.I
)
# The last message of a process, though it is no exception; its parent only logs that it waits in
# vain.
DEATH = re.compile(r"Worker proc .* died unexpectedly.*")
# pydantic's exceptions name the field in the next line, and what is wrong with it in that line or
# the one after.
VALIDATION_ERROR = re.compile(r".*\bvalidation errors? for \w+")
# An error of a single request, after which the server goes on.
OF_REQUEST = re.compile(r"Exception in ASGI application")
CHAINED = re.compile(
    r"During handling of the above exception|The above exception was the direct cause"
)
QUOTED = re.compile(r"Worker failed with error (['\"])(.*)\1")
WRAPPERS = re.compile(
    r"Engine core initialization failed|EngineCore (failed|encountered)|EngineDeadError|sigquit"
    r"|Executor worker returned "
    r"error|ConnectionReset|BrokenPipe|CancelledError|SystemExit|KeyboardInterrupt"
    r"|See root cause above|See stack trace|ChildFailedError|MPI_ABORT|exiting due to"
    r"|Failed to init server, please check"
)


@dataclass(frozen=True, slots=True)
class Crash:
    """Why an engine failed.

    Attributes:
        kind: A key of `KINDS` (oom as oom_load or oom_run), or gpu_in_use, hang, killed,
            start_timeout, unknown, wrong_model.
        cause: The line of the log that names the cause, without prefixes, or what loadgen has
            observed.
        code: The exit code (negative: the signal); None while the engine runs.
    """

    kind: str
    cause: str
    code: int | None = None

    @property
    def transient(self) -> bool:
        """Whether another try may succeed."""
        return self.kind not in DETERMINISTIC


class EngineFailed(EngineError):
    """An engine that has failed, with the cause and the end of its log.

    Attributes:
        crash: The cause.
        log: The log file; None: the engine was never started.
    """

    def __init__(
        self, engine: str, crash: Crash, log: Path | None = None, tail: Sequence[str] = ()
    ) -> None:
        end = (
            f"; its log {log} ends:\n" + "\n".join(tail)
            if tail
            else f"; its log {log} is empty"
            if log
            else ""
        )
        super().__init__(f"{engine}: {crash.kind}: {crash.cause}{end}")
        self.crash, self.log, self.transient = crash, log, crash.transient
        self._arguments = (engine, crash, log, tuple(tail))

    def __reduce__(
        self,
    ) -> tuple[type["EngineFailed"], tuple[str, Crash, Path | None, tuple[str, ...]]]:
        return type(self), self._arguments


@dataclass(frozen=True, slots=True)
class LogFile:
    """The log file of one engine.

    Attributes:
        path: The file. If the supervisor has truncated it, its beginning is in a file with `.first`
            added to the name.
    """

    path: Path

    def last_line(self) -> str:
        """Return the last line that is not blank; empty if there is none yet."""
        lines = self.tail(1)
        return lines[0] if lines else ""

    def tail(self, count: int) -> list[str]:
        """Return at most the last `count` lines that are not blank, each cut to 1,000
        characters.
        """
        return [
            line[:MAX_LINE_CHARS] for line in self._end(TAIL_BYTES).splitlines() if line.strip()
        ][-count:]

    def text(self) -> str:
        """Return the log; of a long one the beginning and the end."""
        first = self.path.with_name(f"{self.path.name}.first")
        try:
            beginning = first.read_bytes() if first.exists() else b""
            if not beginning and self.path.stat().st_size > READ_BYTES:
                with open(self.path, "rb") as file:
                    beginning = file.read(READ_BYTES)
        except OSError:
            beginning = b""
        return beginning.decode(errors="replace") + self._end(READ_BYTES)

    def _end(self, most: int) -> str:
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - most))
                return file.read(most).decode(errors="replace")
        except OSError:
            return ""


def diagnose(text: str, code: int | None, *, was_ready: bool = False) -> Crash:
    """Return why an engine ended.

    The cause is the earliest exception that does not wrap another one: that of the rank that failed
    first. Among it and the exceptions raised while it was handled, the first one with a known kind
    counts. Without exceptions, the earliest error message with a known kind counts.

    Args:
        text: The engine's log, from the beginning.
        code: The exit code; negative: the signal that ended it.
        was_ready: Whether the server had been ready.
    """
    cause = complaint(text)
    ended = _describe_exit(code)
    if cause is None:
        return Crash(_kind_by(code), ended, code)
    kind = _kind(cause)
    if kind == "oom":
        kind = "oom_run" if was_ready else "oom_load"
    if kind is None:
        kind = _kind_by(code)
        cause = f"{cause} ({ended})"
    return Crash(kind, cause, code)


def complaint(text: str) -> str | None:
    """Return the line of a log that names what is wrong, without prefixes; None if there is
    none.
    """
    causes = _causes(text)
    return next(filter(_kind, causes), causes[0]) if causes else None


def stripped(line: str) -> str:
    """Return a line of a log without colours, times, levels, source locations, ranks and process
    ids.
    """
    line = ANSI.sub("", line).rstrip()
    while (prefix := PREFIX.match(line)) and prefix.end():
        line = line[prefix.end() :]
    return line.strip()


def _kind_by(code: int | None) -> str:
    """Return the kind that the exit code indicates: argparse ends with 2 at a bad flag."""
    return "killed" if code is not None and code < 0 else "bad_flag" if code == 2 else "unknown"


def _kind(cause: str) -> str | None:
    """Return the most specific kind that a line names; None if it names none."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, cause, re.I)), None)


def _causes(text: str) -> list[str]:
    """Return possible causes, the likeliest first: the earliest exception, then those raised
    while it was handled.
    """
    exceptions: list[str] = []
    complaints: list[str] = []
    chained = in_first = survived = False
    lines = text.splitlines()
    for number, raw in enumerate(lines):
        line = stripped(raw)
        quoted = QUOTED.search(line)
        if quoted:
            line = quoted[2]
        prefix = raw[: raw.find(line)] if line else raw
        if not line or (HARMLESS.search(prefix) and not quoted) or WRAPPERS.search(line):
            continue
        if OF_REQUEST.search(line):
            chained = survived = True
        elif CHAINED.match(line):
            chained = True
        elif quoted or EXCEPTION.fullmatch(line) or DEATH.fullmatch(line):
            survived = survived and chained
            in_first = not survived and (not exceptions or (in_first and chained))
            if in_first:
                if VALIDATION_ERROR.fullmatch(line):
                    messages = (
                        message
                        for message in map(stripped, lines[number + 1 : number + 3])
                        if " " in message
                    )
                    line = f"{line}: {next(messages, '')}"
                exceptions.append(line)
            chained = False
        elif SEVERE.search(prefix) or COMPLAINT.fullmatch(line):
            complaints.append(line)
    return exceptions or complaints


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "it ended, and its exit code is unknown"
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in list(signal.Signals) else str(-code)
    hint = (
        "; the kernel does this when memory runs out, see dmesg" if -code == signal.SIGKILL else ""
    )
    return f"killed by {name}{hint}"
