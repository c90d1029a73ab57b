"""Block: the console block of vLLM's and SGLang's benchmarks and of those that print as they do, found in any text."""

import re
from collections.abc import Callable, Iterator

from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.number import Number
from loadgen.lab.audit.published import Published

ROWS = {
    "Successful requests": "ok",
    "Failed requests": "failed",
    "Maximum request concurrency": "cap",
    "Max request concurrency": "cap",
    "Request rate configured (RPS)": "rate",
    "Traffic request rate": "rate",
    "Benchmark duration (s)": "duration_s",
    "Total input tokens": "input_tokens",
    "Total generated tokens": "output_tokens",
    "Request throughput (req/s)": "requests_per_s",
    "Output token throughput (tok/s)": "output_per_s",
    "Peak output token throughput (tok/s)": "peak_output_per_s",
    "Peak concurrent requests": "peak_in_flight",
    "Total Token throughput (tok/s)": "total_per_s",
    "Total token throughput (tok/s)": "total_per_s",
    "Total throughput (tok/s)": "total_per_s",
    "Input token throughput (tok/s)": "input_per_s",
    "Concurrency": "mean_in_flight",
}
COUNTS = {"ok", "failed", "cap", "input_tokens", "output_tokens"}
LATENCIES = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "E2EL": "e2el", "Latency": "e2el", "E2E Latency": "e2el"}

# A block may lack its first line; the end of one that was cut off is that of the fence around it, or the next block.
BLOCK = re.compile(
    r"(?:(?<!=)={5,} Serving Benchmark Result ={5,}|^[ \t]*(?=Successful requests:))"
    r"(.*?)(?:={20,}|(?=```)|(?==+ Serving Benchmark Result)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
ROW = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, ROWS))})\s*:\s*({_NUMBER})")
LATENCY = re.compile(
    rf"(Mean|Median|P\d+(?:\.\d+)?)\s+({'|'.join(map(re.escape, LATENCIES))})\s*\((ms|s)\)\s*:\s*({_NUMBER})"
)
COMMENT = re.compile(r"#[ \t]*([^\n#]*)\n\s*\Z|(?:\n[ \t]*){2}([^\n=`:|#\"]{3,80})\n[ \t]*\Z")
# What a fence is called in which a block stands: the workload, and of how many starts it is one.
CAPTION = re.compile(
    r"(?i)(?:benchmark results?(?: on (?P<workload>[^\n\"(]+?))?"
    r"(?: \((?:(?:lower )?median|mean) of (?P<starts>\d+) starts\))?\"\s+```\w*\s*)\Z"
)


def blocks(text: str, place: Callable[[int, str], Place]) -> Iterator[Published]:
    """Every block of a text.

    Args:
        text: The text of a page, a log or a terminal; a block may stand on one line.
        place: What says where an offset of the text lies; its second argument is the name of the block.
    """
    for number, found in enumerate(BLOCK.finditer(text), 1):
        name = f"block {number}"
        numbers: dict[str, Number] = {}
        places: dict[str, Place] = {}
        for row in ROW.finditer(text, *found.span(1)):
            label = ROWS[row[1]]
            exact = label in COUNTS and "." not in row[2]
            numbers[label] = Number.exact(float(row[2].replace(",", ""))) if exact else Number.printed(row[2])
            places[label] = place(row.start(1), name)
        for row in LATENCY.finditer(text, *found.span(1)):
            label = f"{row[1].lower()}_{LATENCIES[row[2]]}_ms"
            numbers[label] = Number.printed(row[4]) * (1000 if row[3] == "s" else 1)
            places[label] = place(row.start(1), name)
        above = COMMENT.search(text, max(0, found.start() - 200), found.start())
        caption = CAPTION.search(text, max(0, found.start() - 200), found.start())
        workload = (caption["workload"] or "").strip() if caption else ""
        title = (above[1] or above[2] or "").strip() if above else workload
        starts = int(caption["starts"] or 1) if caption else 1
        is_guidellms = "Latency(s)" in found[1]  # the only such tool that prints it
        at = found.start()
        yield Published(numbers, places, place(at, name), title, at, over_guidellm=is_guidellms, starts=starts)
