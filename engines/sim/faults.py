"""Faults: failures that the simulator produces on request, to test programs that start servers."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from loadgen.engines.sim.flags import check, setting
from loadgen.errors import BadInput

HANG, UNAVAILABLE = "hang", "unavailable"
# Messages of vLLM and its libraries; the keys are kinds of `loadgen.engines.launch.crash_cause`.
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
    """The fault and when it occurs; by default there is none.

    Raises:
        BadInput: The fault is neither a known name nor a file.
    """

    fault: str = setting(
        "",
        f"the fault: {HANG} (healthy, but no more tokens), {UNAVAILABLE} (503 for ever), a crash "
        f"({', '.join(CRASHES)}), or the path of a file with the output of a crash",
    )
    fault_after: int = setting(0, "number of requests before the fault, the readiness check included", minimum=0)
    max_concurrent_requests: int = setting(
        0, "requests that it works on at once; a further one is refused with status 429 (0: no limit)", minimum=0
    )
    retry_after_s: int = setting(1, "Retry-After of these refusals (0: none)", minimum=0)
    early_health: bool = setting(False, "listen and be healthy already during --startup-s, and refuse prompts with 503")
    orphan: bool = setting(False, "start a process in its own session, and leave it behind")
    ignore_sigterm: bool = setting(False, "ignore SIGTERM")

    def __post_init__(self) -> None:
        check(self)
        if self.fault and self.crash is None and self.fault not in (HANG, UNAVAILABLE):
            known = ", ".join((HANG, UNAVAILABLE, *CRASHES))
            raise BadInput("--fault", f"unknown fault {self.fault!r}", f"use one of {known}, or name a file")

    @property
    def crash(self) -> str | None:
        """Output of the crash; None if the fault is not a crash."""
        if self.fault in CRASHES:
            return log_of(CRASHES[self.fault])
        path = Path(self.fault)
        return path.read_text(errors="replace") if self.fault and path.is_file() else None


def log_of(cause: str) -> str:
    """Return the end of vLLM's log after an exception in its engine core: the cause, then its wrapper."""
    core, server = "(EngineCore_DP0 pid=2) ERROR 01-01 00:00:00 [core.py:708]", "(APIServer pid=1)"
    return (
        f"{core} EngineCore failed to start.\n{core} Traceback (maximum recent call last):\n{core} {cause}\n"
        f"{server} RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}\n"
    )


def leave_orphan() -> int:
    """Start a process that sleeps for ever and is never stopped; return its id."""
    return subprocess.Popen([sys.executable, "-S", "-c", IDLE], start_new_session=True).pid
