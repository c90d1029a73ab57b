"""Tool block: what `vllm bench serve` or SGLang's `bench_serving` prints of the numbers."""

from loadgen.config.output import parse_percentiles
from loadgen.document import Code
from loadgen.report import sglang_block, vllm_block
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import meaning


def tool_block(result: RunResult) -> Code:
    """Write the block of vLLM, or of SGLang where the run was asked for it."""
    settings = result.provenance.settings
    if result.sglang is not None:
        longest_ms = result.latency_ms.named(meaning(settings)["itl"]).max_ms
        rows = sglang_block.block(result.flat(), longest_ms)
    else:
        selected = settings.percentile_metrics.split(",")
        percentiles = parse_percentiles(settings.metric_percentiles)
        rows = vllm_block.block(result.flat(), selected, percentiles)
    return Code("\n".join(rows))
