"""Supervisor process: the parent of one engine, which lets no descendant outlive itself or the
loadgen process.

It runs as a script, `python -I -S supervisor_main.py PARENT LOG FOLDER TEMPORARY COMMAND...`. It
must be a process of its own, because it becomes the subreaper of all that the engine starts, and
because it must survive the loadgen process. It imports little, and only from the standard library,
because every start of an engine waits for it.

Protocol, one line each:

- stdin `stop SECONDS`: ask the engine to end, and kill what is left after that time; of several
  times the shortest counts. End of file on stdin, the end of the parent process and SIGTERM: kill
  at once.
- stdout `started PID`, then `ended CODE` when the engine's process has ended (negative: the
  signal).

The supervisor ends when it has no child left, so its end proves that no descendant of the engine
runs. Before it ends, it removes the folder TEMPORARY, which a killed loadgen process cannot remove.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time

MAX_LOG_BYTES = 64 << 20
FIRST_LOG_BYTES = 4 << 20  # kept of a longer log: causes stand at its start
POLL_MS = 200  # between two looks at the log; it may exceed its limit by what is written meanwhile
KILL_POLL_MS = 20
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None)


def main(parent: int, log: str, folder: str, command: list[str]) -> None:
    """Start the engine and supervise it; return when none of its processes is left."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    parent_fd = os.pidfd_open(parent)
    if os.getppid() != parent:
        return
    wakeup_fd, wakeup_write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup_write_fd, warn_on_full_buffer=False)
    killing = False

    def kill(*_: object) -> None:
        nonlocal killing
        killing = True

    signal.signal(signal.SIGTERM, kill)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    engine = fork_engine(command, folder)
    report(f"started {engine}")
    poll = select.poll()
    for descriptor in (parent_fd, wakeup_fd, sys.stdin.fileno()):
        poll.register(descriptor, select.POLLIN)
    running, stop_requested, kill_at_s = True, False, float("inf")
    while True:
        for pid, code in reap_children():
            if pid is None:
                return
            if pid == engine:
                running = False
                report(f"ended {code}")
        if killing or (stop_requested and not running) or time.monotonic() > kill_at_s:
            kill_descendants()
        truncate_log(log)
        for descriptor, _ in poll.poll(KILL_POLL_MS if killing or stop_requested else POLL_MS):
            if descriptor == wakeup_fd:
                os.read(wakeup_fd, 4096)
                continue
            words = os.read(descriptor, 4096).split() if descriptor != parent_fd else []
            if words:
                stop_requested = True
                kill_at_s = min(
                    kill_at_s, *(time.monotonic() + float(seconds) for seconds in words[1::2])
                )
                if running:  # not reaped yet, so its process id is still its own
                    for number in (
                        signal.SIGTERM,
                        signal.SIGCONT,
                    ):  # a stopped process handles SIGTERM after SIGCONT
                        send_signal(-engine, number)
            else:
                poll.unregister(descriptor)
                killing = True


def fork_engine(command: list[str], folder: str) -> int:
    """Start the engine in its own session, with its output on this process's stderr; return its
    process id.

    This returns once the child has called execv or has ended, so that a signal to its process group
    reaches it.
    """
    supervisor = os.getpid()
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child:
        os.close(write_fd)
        # End of file: execv, or the end of the child, has closed its copy of write_fd.
        os.read(read_fd, 1)
        os.close(read_fd)
        return child
    try:
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        for number in (
            signal.SIGINT,
            signal.SIGPIPE,
            signal.SIGTERM,
            signal.SIGCHLD,
            signal.SIGHUP,
        ):
            signal.signal(number, signal.SIG_DFL)
        # No core dump as large as a model; as many connections as the system allows.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        max_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        if folder:
            os.chdir(folder)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"error: cannot run {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def reap_children() -> list[tuple[int | None, int]]:
    """Return the ids and exit codes of children that have ended; (None, 0) comes last if no
    child is left.
    """
    reaped: list[tuple[int | None, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return [*reaped, (None, 0)]
        if not pid:
            return reaped
        reaped.append((pid, os.waitstatus_to_exitcode(status)))


def kill_descendants() -> None:
    """Send SIGKILL to every descendant of this process; the next call kills those that are
    forked meanwhile.
    """
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it has ended
            children.setdefault(parent, []).append(int(name))
    descendants = list(children.get(os.getpid(), ()))
    for pid in descendants:  # the list grows
        descendants += children.get(pid, ())
        send_signal(pid, signal.SIGKILL)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, or to the process group -`pid`, if it still exists."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def truncate_log(log: str) -> None:
    """Truncate a log that is too long; its beginning is kept in LOG.first, and writers append at
    its new start.
    """
    if os.fstat(2).st_size <= MAX_LOG_BYTES:
        return
    beginning = f"{log}.first"
    if not os.path.exists(beginning):
        first_fd = os.open(beginning, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(first_fd, os.pread(2, FIRST_LOG_BYTES, 0))
        os.close(first_fd)
    os.ftruncate(2, 0)


def report(line: str) -> None:
    """Write a line to the parent, if it still exists."""
    try:
        os.write(1, f"{line}\n".encode())
    except BrokenPipeError:
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[5:])
    import shutil  # only now: every start of an engine would wait for this import

    shutil.rmtree(sys.argv[4], ignore_errors=True)
