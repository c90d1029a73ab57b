"""Stopping: put an engine away and prove that nothing of it is left."""

import time
from collections.abc import Sequence

from loadgen.engines import ports, processes
from loadgen.engines.gpu_memory import GpuMemory
from loadgen.engines.keeping import Kept
from loadgen.engines.ports import Reservation
from loadgen.engines.processes import Process
from loadgen.errors import EngineError

KILLED_S = 10.0  # for what has been killed to be gone: the kernel may have much memory to free
GIVEN_BACK_S = 30.0  # for a driver to free what is gone


class Leaked(EngineError):
    """A server that could not be put away: the machine is no longer what it was.

    Attributes:
        processes: What still runs of it.
    """

    def __init__(self, engine: str, left: Sequence[str], survivors: Sequence[Process] = ()) -> None:
        super().__init__(f"{engine}: leaked: {'; '.join(left)}; end this before anything else is measured here")
        self.processes = tuple(survivors)


def put_away(
    engine: str, kept: Kept, run_id: str, at: Reservation | None, gpu_memory: GpuMemory, grace_s: float
) -> None:
    """SIGTERM to the group, after `grace_s` SIGKILL to every descendant; then look whether anything is left.

    Args:
        engine: Its name.
        kept: Its process.
        run_id: Its tag.
        at: Its port; None for one that has never answered there: who does may be a stranger who was faster.
        gpu_memory: As it was before the start.
        grace_s: Between the two signals.

    Raises:
        Leaked: Something is.
    """
    left = []
    if not kept.stop(grace_s, grace_s + KILLED_S):
        left.append(f"its keeper, process {kept.keeper_pid}, waits for what SIGKILL does not end")
    # A keeper knows all descendants. Where it was killed itself, only their tag tells whose they are.
    survivors = _kill_tagged(run_id)
    left += [f"process {process} survived SIGKILL" for process in survivors]
    if at is not None and not ports.is_free(at.host, at.port):
        left.append(f"port {at.port} is held by {ports.holder(at.port)}")
    left += gpu_memory.kept(GIVEN_BACK_S)
    if left:
        raise Leaked(engine, left, survivors)


def _kill_tagged(run_id: str) -> list[Process]:
    """Kill what bears the tag; returns what is still there at the end of its time."""
    end_s = time.monotonic() + KILLED_S
    while (found := processes.tagged(run_id)) and time.monotonic() < end_s:
        for process in found:
            process.wait_ended(end_s - time.monotonic(), kill=True)
    return found
