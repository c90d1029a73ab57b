"""Shutdown: stop a server and verify that none of its processes, its port or its memory is left."""

import time
from collections.abc import Sequence

from loadgen.engines.launch import ports, processes
from loadgen.engines.launch.gpu_memory import GpuMemory
from loadgen.engines.launch.ports import Reservation
from loadgen.engines.launch.processes import Process
from loadgen.engines.launch.supervisor import SupervisedProcess
from loadgen.errors import EngineError

KILL_TIMEOUT_S = 10.0  # from SIGKILL to the end of a process: the kernel may have much memory to free
MEMORY_RELEASE_S = 30.0  # for a driver to free the memory of processes that have ended


class Leaked(EngineError):
    """A server that could not be stopped completely, so that it would disturb further measurements.

    Attributes:
        processes: Its processes that still run.
    """

    def __init__(self, engine: str, left: Sequence[str], survivors: Sequence[Process] = ()) -> None:
        super().__init__(f"{engine}: leaked: {'; '.join(left)}; end this before anything else is measured here")
        self.processes = tuple(survivors)


def stop_and_verify(
    engine: str,
    process: SupervisedProcess,
    run_id: str,
    reservation: Reservation | None,
    gpu_memory: GpuMemory,
    grace_s: float,
) -> None:
    """Send SIGTERM to the process group, after `grace_s` SIGKILL to every descendant, and check that nothing is left.

    Args:
        engine: The engine's name.
        process: The server's process.
        run_id: The tag of its processes.
        reservation: Its port; None if it has never answered there, since another program may hold the port.
        gpu_memory: GPU memory as it was before the start.
        grace_s: Time between the two signals, s.

    Raises:
        Leaked: Something is left.
    """
    left = []
    if not process.stop(grace_s, grace_s + KILL_TIMEOUT_S):
        left.append(f"its supervisor, process {process.supervisor_pid}, waits for a process that SIGKILL does not end")
    # A supervisor knows all descendants. If it was killed itself, only their tag tells whose they are.
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
    while (found := processes.tagged(run_id)) and time.monotonic() < end_s:
        for process in found:
            process.wait_ended(end_s - time.monotonic(), kill=True)
    return found
