"""Shutdown: stop a server and verify that none of its processes, its port or its memory is left.

Memory is that of its GPUs, and its segments of shared memory, which can outlive its processes.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from loadgen.engines.launch import ports, processes
from loadgen.engines.launch.ports import Reservation
from loadgen.engines.launch.processes import Process, command, process_ids
from loadgen.engines.launch.supervisor import SupervisedProcess
from loadgen.errors import EngineError
from loadgen.util.accelerators import MemoryUse, Nvml

POLL_S = 0.2
TOLERANCE_BYTES = 256 << 20  # drivers and displays allocate and free as much at any time
MIN_USED_SHARE = 0.05  # of a GPU's memory; less is not worth mentioning
GIB = 1 << 30
SHARED_MEMORY = Path("/dev/shm")
KILL_TIMEOUT_S = (
    10.0  # from SIGKILL to the end of a process: the kernel may have much memory to free
)
MEMORY_RELEASE_S = 30.0  # for a driver to free the memory of processes that have ended


class Leaked(EngineError):
    """A server that could not be stopped completely, so that it would disturb further measurements.

    Attributes:
        processes: Its processes that still run.
    """

    def __init__(self, engine: str, left: Sequence[str], survivors: Sequence[Process] = ()) -> None:
        super().__init__(
            f"{engine}: leaked: {'; '.join(left)}; end this before anything else is measured here"
        )
        self.processes = tuple(survivors)


class GpuMemory:
    """Memory of the GPUs that a server may use, measured before its start; without NVML, of no GPU.

    Args:
        devices: Numbers of the GPUs; if there are none, or one is not a number, all GPUs are
            measured.
    """

    def __init__(self, devices: Sequence[str] = ()) -> None:
        numbers = [int(device) for device in devices if device.isdecimal()]
        self._numbers = numbers if len(numbers) == len(devices) else []
        with Nvml.opened() as nvml:
            self._before = self._measure(nvml)

    def in_use(self) -> str:
        """Return a text on the GPUs of which others used more than 5 % before the start; empty
        if there are none.
        """
        texts = []
        for number, memory in self._before.items():
            if memory.used > MIN_USED_SHARE * memory.total:
                holders = ", ".join(
                    f"process {pid} ({command(pid)})" for pid in sorted(memory.holders)
                )
                texts.append(
                    f"GPU {number}: {memory.used / GIB:.1f} of {memory.total / GIB:.1f} GiB were "
                    f"in use before the start, by {holders or 'processes of other users'}"
                )
        return "; ".join(texts)

    def not_released(self, timeout_s: float) -> list[str]:
        """Return the GPUs that have more memory in use than before the start, after at most
        `timeout_s`.

        A GPU that a new process uses is left out: its memory cannot be distinguished from memory
        that was not released.
        """
        before = self._before
        end_s = time.monotonic() + timeout_s
        with Nvml.opened() as nvml:
            while True:
                more = {
                    number: memory.used - before[number].used
                    for number, memory in self._measure(nvml).items()
                    if number in before and memory.holders <= before[number].holders
                }
                left = [
                    f"GPU {number} has {grown / GIB:.1f} GiB more in use than before the start"
                    for number, grown in more.items()
                    if grown > TOLERANCE_BYTES
                ]
                if not left or time.monotonic() >= end_s:
                    return left
                time.sleep(POLL_S)

    def _measure(self, nvml: Nvml | None) -> dict[int, MemoryUse]:
        memories = enumerate(nvml.memory() if nvml else ())
        return {
            n: memory
            for n, memory in memories
            if memory is not None and (not self._numbers or n in self._numbers)
        }


def stop_and_verify(
    engine: str,
    process: SupervisedProcess,
    run_id: str,
    reservation: Reservation | None,
    gpu_memory: GpuMemory,
    grace_s: float,
) -> None:
    """Send SIGTERM to the process group, after `grace_s` SIGKILL to every descendant, and check
    that nothing is left.

    Args:
        engine: The engine's name.
        process: The server's process.
        run_id: The tag of its processes.
        reservation: Its port; None if it has never answered there, since another program may hold
            the port.
        gpu_memory: GPU memory as it was before the start.
        grace_s: Time between the two signals, s.

    Raises:
        Leaked: Something is left.
    """
    left = []
    if not process.stop(grace_s, grace_s + KILL_TIMEOUT_S):
        left.append(
            f"its supervisor, process {process.supervisor_pid}, waits for a process that SIGKILL "
            "does not end"
        )
    # A supervisor knows all descendants. If it was killed itself, only their tag tells whose they
    # are.
    survivors = _kill_tagged(run_id)
    left += [f"process {survivor} survived SIGKILL" for survivor in survivors]
    if reservation is not None and not ports.is_free(reservation.host, reservation.port):
        left.append(f"port {reservation.port} is held by {ports.holder(reservation.port)}")
    left += gpu_memory.not_released(MEMORY_RELEASE_S)
    if left:
        raise Leaked(engine, left, survivors)


def _kill_tagged(run_id: str) -> list[Process]:
    """Kill the processes with the tag; return those that still run after `KILL_TIMEOUT_S`."""
    end_s = time.monotonic() + KILL_TIMEOUT_S
    while (survivors := processes.tagged(run_id)) and time.monotonic() < end_s:
        for process in survivors:
            process.wait_ended(end_s - time.monotonic(), kill=True)
    return survivors


def shared_memory_segments(pids: Iterable[int]) -> set[Path]:
    """Return the shared-memory files that processes map and that are not deleted."""
    mapped = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
                path = line[line.find("/") :] if "/" in line else ""
                if path.startswith(f"{SHARED_MEMORY}/") and not path.endswith(" (deleted)"):
                    mapped.add(Path(path))
    return mapped


def remove_shared_memory(paths: Iterable[Path], since: float) -> None:
    """Remove segments of this user that were created after `since` and that no process maps.

    Args:
        paths: Segments that the ended processes had mapped; some may be removed already.
        since: Unix time, s; older segments belong to others.
    """
    segments = set()
    for path in paths:
        with contextlib.suppress(OSError):  # it is removed already
            status = path.stat()
            if status.st_uid == os.getuid() and status.st_ctime >= since:
                segments.add(path)
    if segments:
        segments -= shared_memory_segments(process_ids())
    for path in segments:
        path.unlink(missing_ok=True)
