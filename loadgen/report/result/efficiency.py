"""Efficiency: speed for a user and per GPU, energy and cost of tokens."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from msgspec import Struct

from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.telemetry import Gpu
from loadgen.util.clock import NS_PER_S

MAX_GAP_S = 5.0  # between two readings of the power; a longer gap is not covered
S_PER_HOUR, MILLION = 3600, 1e6


class Efficiency(Struct, frozen=True, kw_only=True):
    """What users and operators compare servers by."""

    output_tokens_per_s_per_user: Annotated[
        float | None, "Interactivity: 1000 / median TPOT (as vLLM divides, ms); null: no TPOT was measured."
    ]
    gpus: Annotated[int | None, "GPUs of the servers: `--gpus`, else those that NVML read; null: neither is known."]
    total_tokens_per_s_per_gpu: Annotated[
        float | None, "Input and output tokens per second and GPU; null: the GPUs are not known."
    ]
    output_tokens_per_s_per_gpu: Annotated[float | None, "Output tokens per second and GPU."]
    energy_j: Annotated[
        float | None,
        "Energy of the GPUs that NVML read, J: their power integrated from the first send until the last request "
        "ended; null: no power was read.",
    ]
    energy_coverage: Annotated[
        float | None,
        "Share of that time between two readings of the power at most 5 s apart, of the GPU with the least.",
    ]
    joules_per_output_token: Annotated[float | None, "That energy by output tokens, J."]
    joules_per_token: Annotated[float | None, "That energy by input and output tokens, J."]
    cost_per_million_output_tokens: Annotated[
        float | None, "`--gpu-hour-price` x GPUs x hours, by million output tokens; null without a price."
    ]
    cost_per_million_tokens: Annotated[float | None, "The same by million input and output tokens."]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Compute it; None where answers have no tokens, or none came."""
        snapshot, settings = run.snapshot, run.settings
        seconds, output = throughput.wall_ns(snapshot) / NS_PER_S, snapshot.counters["output_tokens"]
        if not settings.generates or not seconds or not output:
            return None
        total = output + snapshot.counters["input_tokens"]
        tpot = snapshot.histograms["tpot_n1"].percentile(50) if snapshot.histograms["tpot_n1"].count else None
        gpus = settings.gpus or len(run.telemetry.gpus) or None
        first_s = int(snapshot.sent[snapshot.sent >= 0].min()) / NS_PER_S
        energies = [energy(gpu, first_s, first_s + seconds) for gpu in run.telemetry.gpus]
        known = [each for each in energies if each is not None]
        joules = sum(each for each, _ in known) if known and len(known) == len(energies) else None
        cost = gpu_seconds = None
        if gpus is not None:
            gpu_seconds = seconds * gpus
            cost = None if settings.gpu_hour_price is None else settings.gpu_hour_price * gpu_seconds / S_PER_HOUR
        return cls(
            output_tokens_per_s_per_user=NS_PER_S / tpot if tpot else None,
            gpus=gpus,
            total_tokens_per_s_per_gpu=_ratio(total, gpu_seconds),
            output_tokens_per_s_per_gpu=_ratio(output, gpu_seconds),
            energy_j=joules,
            energy_coverage=min(covered for _, covered in known) if joules is not None else None,
            joules_per_output_token=_ratio(joules, output),
            joules_per_token=_ratio(joules, total),
            cost_per_million_output_tokens=_ratio(cost, output / MILLION),
            cost_per_million_tokens=_ratio(cost, total / MILLION),
        )


def _ratio(value: float | None, by: float | None) -> float | None:
    return None if value is None or by is None else value / by


def energy(gpu: Gpu, start_s: float, end_s: float) -> tuple[float, float] | None:
    """Integrate the power of a GPU over a time, by trapezoids; in gaps by the mean power of what is covered.

    Returns:
        J, and the share of the time that is covered; None if nothing is.
    """
    readings = [
        (at_s, power) for at_s, power in zip(gpu.at_s, gpu.series.get("power_w", ()), strict=False) if power is not None
    ]
    covered_s = joules = 0.0
    for (before_s, before), (after_s, after) in pairwise(readings):
        begin, end = max(before_s, start_s), min(after_s, end_s)
        if end <= begin or after_s - before_s > MAX_GAP_S:
            continue
        slope = (after - before) / (after_s - before_s)
        joules += (before + slope * ((begin + end) / 2 - before_s)) * (end - begin)
        covered_s += end - begin
    if not covered_s:
        return None
    return joules / covered_s * (end_s - start_s), covered_s / (end_s - start_s)
