"""Touched: what a call does to the world outside its process, by the interpreter's own audit events."""

import os
import sys
from collections.abc import Callable

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    *("os.chmod", "os.chown", "os.link", "os.mkdir", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.symlink"),
    *("os.truncate", "os.unsetenv", "os.chdir", "os.fork", "os.kill", "os.posix_spawn", "os.system"),
    *("socket.bind", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "shutil.copyfile", "shutil.rmtree"),
}

_seen: list[str] | None = None
_hooked = False


def touched(call: Callable[[], object]) -> list[str]:
    """Files written, processes started, addresses asked and variables set while `call` runs in this thread or another.

    Compiled modules raise no such events. Calls cannot be nested.
    """
    global _seen, _hooked
    if not _hooked:  # a hook stays for good
        sys.addaudithook(_hook)
        _hooked = True
    seen: list[str] = []
    _seen = seen
    try:
        call()
    finally:
        _seen = None
    return seen


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _seen is None:
        return
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        _seen.append(f"opens {arguments[0]!r} to write")
    elif event in CHANGES:
        _seen.append(f"{event} {arguments!r}"[:200])
