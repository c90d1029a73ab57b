"""The report of another tool's result: vLLM's block of it, what it is, and what an audit finds."""

from collections.abc import Iterator

from loadgen.lab.tools.tool_result import ToolResult
from loadgen.report.result.numbers import PERCENTILE_KEY
from loadgen.report.vllm_block import HEADERS, block
from loadgen.util.terminal_text import printable, wrap

WIDTH = 80
ROWS = (
    *("completed", "failed", "max_concurrency", "request_rate", "duration", "total_input_tokens"),
    *("total_output_tokens", "request_throughput", "request_goodput", "output_throughput", "max_output_tokens_per_s"),
    *("max_concurrent_requests", "total_token_throughput"),
)


def render(result: ToolResult) -> str:
    """Return the whole text; counts that the file does not have are left out, other numbers are n/a."""
    return "\n".join(map(printable, _lines(result))) + "\n"


def _lines(result: ToolResult) -> Iterator[str]:
    numbers = {name: result.number(name) for name in (*ROWS, *result.flat)}
    for count in ("completed", "failed", "max_concurrency", "total_input_tokens", "total_output_tokens"):
        if (value := numbers[count]) is not None:
            numbers[count] = int(value)
    percentiles = dict.fromkeys(name.partition("_")[0] for name in result.flat if PERCENTILE_KEY.match(name))
    metrics = [metric for metric in HEADERS if f"mean_{metric}_ms" in result.flat]
    known = {f"{name}_{metric}_ms": None for name in percentiles for metric in metrics} | numbers
    rate = result.flat.get("request_rate")
    finite = isinstance(rate, int | float) and rate < float("inf")
    yield from block(known | {"request_rate": rate if finite else "inf"}, metrics, [float(p[1:]) for p in percentiles])
    yield ""
    yield from wrap(f"{result.where} is {result.about}.", WIDTH, "    ")
    yield from wrap(result.audit, WIDTH, "    ")
