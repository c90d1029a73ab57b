"""Side effects: what a call changes outside its process, by the interpreter's audit events."""

import os
import sys
from collections.abc import Callable

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    *("os.chmod", "os.chown", "os.link", "os.mkdir", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.symlink"),
    *("os.truncate", "os.unsetenv", "os.chdir", "os.fork", "os.kill", "os.posix_spawn", "os.system"),
    *("socket.bind", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "shutil.copyfile", "shutil.rmtree"),
}

_events: list[str] | None = None
_hooked = False


def side_effects(call: Callable[[], object]) -> list[str]:
    """Return the files written, processes started, addresses used and variables set while `call` runs, by any thread.

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
