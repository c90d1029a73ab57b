"""Faults: how the simulator fails when it is told to, so that those who start servers meet it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from loadgen.engines.sim.flags import check, knob
from loadgen.errors import BadInput

HANG, UNAVAILABLE = "hang", "unavailable"
# What vLLM or what it stands on says; named after the kinds of `loadgen.engines.crash`.
CRASHES = {
    "oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.11 GiB of which 1.02 GiB is free.",
    "oom_kv": "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
    "initializing the engine.",
    "leaked_memory": "ValueError: Free memory on device (20.11/79.11 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    "bad_checkpoint": "KeyError: 'layers.0.mlp.down_proj.weight'",
    "model_missing": "OSError: nowhere/model is not a local folder and is not a valid model identifier",
    "unsupported_hw": "RuntimeError: Unsupported SM version for FP8 block scaling GEMM",
    "unsupported_combo": "ValueError: Selected backend AttentionBackendEnum.CUTLASS_MLA is not valid for this "
    "configuration. Reason: ['head_size not supported']",
    "distributed": "RuntimeError: NCCL error: unhandled system error",
    "killed": "Worker proc VllmWorker-0 died unexpectedly, shutting down executor.",
}
IDLE = "import signal; signal.pause()"


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What goes wrong, and when; by default nothing.

    Raises:
        BadInput: There is no such fault, and no such file.
    """

    fault: str = knob(
        "",
        f"what goes wrong: {HANG} (healthy, and no token any more), {UNAVAILABLE} (503 for ever), a crash "
        f"({', '.join(CRASHES)}), or the path of a file with what a crash says",
    )
    fault_after: int = knob(0, "requests that are taken before, the one that shows that it is ready too", least=0)
    early_health: bool = knob(False, "listen and be healthy during --startup-s already, and refuse prompts with 503")
    orphan: bool = knob(False, "start a process in a session of its own, and leave it behind")
    ignore_sigterm: bool = knob(False, "go on after SIGTERM")

    def __post_init__(self) -> None:
        check(self)
        if self.fault and self.crash is None and self.fault not in (HANG, UNAVAILABLE):
            known = ", ".join((HANG, UNAVAILABLE, *CRASHES))
            raise BadInput("--fault", f"{self.fault!r} is not a usable value", f"use one of {known}, or name a file")

    @property
    def crash(self) -> str | None:
        """What is said at the end; None where it does not crash."""
        if self.fault in CRASHES:
            return log_of(CRASHES[self.fault])
        path = Path(self.fault)
        return path.read_text(errors="replace") if self.fault and path.is_file() else None


def log_of(cause: str) -> str:
    """The end of vLLM's log after an exception in its engine core: the cause, then what wraps it."""
    core, server = "(EngineCore_DP0 pid=2) ERROR 01-01 00:00:00 [core.py:708]", "(APIServer pid=1)"
    return (
        f"{core} EngineCore failed to start.\n{core} Traceback (most recent call last):\n{core} {cause}\n"
        f"{server} RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}\n"
    )


def leave_orphan() -> int:
    """Start a process that does nothing for ever and that nobody will end; return its id."""
    return subprocess.Popen([sys.executable, "-S", "-c", IDLE], start_new_session=True).pid
