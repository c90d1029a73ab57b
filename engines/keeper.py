"""Keeper: the parent of one engine, which lets none of its descendants outlive it or those who asked for it.

It runs as a script of its own (`python -I -S keeper.py PARENT LOG FOLDER TEMPORARY COMMAND...`), because what it does
to itself cannot be asked of somebody's program: it is the subreaper of all that the engine starts, however often that
forks, and it must not die with the program. Only the standard library, and little of it: every start waits for it.

stdin: `stop SECONDS`: ask the engine to end, and kill what is left after so long, of several times the shortest. Its
end, the end of the parent process and SIGTERM: kill at once. stdout: `started PID`, then `ended CODE` (negative: the
signal) once the engine itself has. The keeper ends when it has no child any more: its end is the proof that nothing is
left, nor the folder TEMPORARY, which a program that was killed cannot remove.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time

MOST_LOG_BYTES = 64 << 20
FIRST_LOG_BYTES = 4 << 20  # kept of a longer log: causes stand at its start
LOOK_EVERY_MS = 200  # at the log: what can be written in between comes on top of its bound
KILL_EVERY_MS = 20
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None)


def main(parent: int, log: str, folder: str, command: list[str]) -> None:
    """Start the engine and keep it; returns when nothing of it is left."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    program = os.pidfd_open(parent)
    if os.getppid() != parent:
        return
    bell, ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    killing = False

    def kill(*_: object) -> None:
        nonlocal killing
        killing = True

    signal.signal(signal.SIGTERM, kill)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    engine = start(command, folder)
    tell(f"started {engine}")
    poll = select.poll()
    for descriptor in (program, bell, sys.stdin.fileno()):
        poll.register(descriptor, select.POLLIN)
    running, asked, give_up_s = True, False, float("inf")
    while True:
        for pid, code in reaped():
            if pid is None:
                return
            if pid == engine:
                running = False
                tell(f"ended {code}")
        if killing or (asked and not running) or time.monotonic() > give_up_s:
            kill_descendants()
        limit(log)
        for descriptor, _ in poll.poll(KILL_EVERY_MS if killing or asked else LOOK_EVERY_MS):
            if descriptor == bell:
                os.read(bell, 4096)
                continue
            asks = os.read(descriptor, 4096).split() if descriptor != program else []
            if asks:
                asked = True
                give_up_s = min(give_up_s, *(time.monotonic() + float(number) for number in asks[1::2]))
                if running:  # not reaped: the number is still its own
                    for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process would not hear the first
                        send(-engine, number)
            else:
                poll.unregister(descriptor)
                killing = True


def start(command: list[str], folder: str) -> int:
    """Start the engine in a session of its own, all its output going to this process's stderr; returns its id."""
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # No core as large as a model; as many connections as the system allows.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        if folder:
            os.chdir(folder)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"error: cannot run {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def reaped() -> list[tuple[int | None, int]]:
    """The children that have ended, with their exit codes; (None, 0) comes last when none is left at all."""
    found: list[tuple[int | None, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return [*found, (None, 0)]
        if not pid:
            return found
        found.append((pid, os.waitstatus_to_exitcode(status)))


def kill_descendants() -> None:
    """SIGKILL everything below this process; what forks meanwhile is met the next time."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it has ended
            children.setdefault(parent, []).append(int(name))
    below = list(children.get(os.getpid(), ()))
    for pid in below:  # grows
        below += children.get(pid, ())
        send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    """A signal to a process, or below 0 to a process group, if it is still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def limit(log: str) -> None:
    """Cut a log that has grown too long; its beginning is kept beside it. Writers append: they go on at its start."""
    if os.fstat(2).st_size <= MOST_LOG_BYTES:
        return
    beginning = f"{log}.first"
    if not os.path.exists(beginning):
        kept = os.open(beginning, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(kept, os.pread(2, FIRST_LOG_BYTES, 0))
        os.close(kept)
    os.ftruncate(2, 0)


def tell(line: str) -> None:
    """A line to the parent, if it is still there."""
    try:
        os.write(1, f"{line}\n".encode())
    except BrokenPipeError:
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[5:])
    import shutil  # only now: every start would wait for it

    shutil.rmtree(sys.argv[4], ignore_errors=True)
