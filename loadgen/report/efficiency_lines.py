"""Efficiency: the lines of the console about speed for a user, per GPU, energy and cost."""

from collections.abc import Iterator

from loadgen.report.result import RunResult
from loadgen.util.number_format import fixed, percent, plural

FULL = 0.999  # coverage of the power's readings that needs no remark


def lines(result: RunResult) -> Iterator[str]:
    """Write what is known of them; energy and cost only where they were measured or asked for."""
    found = result.efficiency
    if found is None:
        return
    if found.output_tokens_per_s_per_user is not None:
        yield f"Interactivity: {fixed(found.output_tokens_per_s_per_user, 2)} tok/s for a user (1 / median TPOT)"
    if found.gpus is not None:
        output, total = fixed(found.output_tokens_per_s_per_gpu, 2), fixed(found.total_tokens_per_s_per_gpu, 2)
        yield f"Per GPU ({plural(found.gpus, 'GPU')}): {output} output tok/s, {total} total tok/s"
    if found.energy_j is not None:
        share = found.energy_coverage or 0.0
        covered = "" if share >= FULL else f", power read in {percent(share)} of the time"
        output, total = fixed(found.joules_per_output_token, 4), fixed(found.joules_per_token, 4)
        yield f"Energy: {fixed(found.energy_j, 1)} J; {output} J per output token, {total} J per token{covered}"
    if found.cost_per_million_output_tokens is not None:
        output, total = fixed(found.cost_per_million_output_tokens, 4), fixed(found.cost_per_million_tokens, 4)
        yield f"Cost: {output} per million output tokens, {total} per million tokens"
    elif result.provenance.settings.gpu_hour_price is not None:
        yield "Cost: not known, since the number of GPUs is not; give --gpus"
