"""Renders console reports, and takes them apart: the block of `vllm bench serve`, and the lines
below it.
"""

from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from tests.helpers.console_lines import unwrapped
from tests.helpers.run_facts import result, steady
from tests.helpers.saved_json import render

# As `vllm bench serve --request-rate inf --max-concurrency 4 --percentile-metrics
# ttft,tpot,itl,e2el --metric-percentiles 50,90,99` printed it, with its numbers; but for the blanks
# that fill each row up to 51.
RECORDED = """\
============ Serving Benchmark Result ============
Successful requests:                     24
Failed requests:                         0
Maximum request concurrency:             4
Benchmark duration (s):                  2.25
Total input tokens:                      1728
Total generated tokens:                  768
Request throughput (req/s):              10.65
Output token throughput (tok/s):         340.69
Peak output token throughput (tok/s):    339.00
Peak concurrent requests:                16.00
Total token throughput (tok/s):          1107.25
---------------Time to First Token----------------
Mean TTFT (ms):                          22.77
Median TTFT (ms):                        22.13
P50 TTFT (ms):                           22.13
P90 TTFT (ms):                           28.24
P99 TTFT (ms):                           30.37
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          11.32
Median TPOT (ms):                        11.31
P50 TPOT (ms):                           11.31
P90 TPOT (ms):                           11.82
P99 TPOT (ms):                           11.84
---------------Inter-token Latency----------------
Mean ITL (ms):                           11.70
Median ITL (ms):                         11.43
P50 ITL (ms):                            11.43
P90 ITL (ms):                            12.25
P99 ITL (ms):                            22.98
----------------End-to-end Latency----------------
Mean E2EL (ms):                          373.80
Median E2EL (ms):                        373.01
P50 E2EL (ms):                           373.01
P90 E2EL (ms):                           393.22
P99 E2EL (ms):                           396.57
==================================================
""".splitlines()


AS_RECORDED = RunSettings(
    max_concurrency=4,
    percentile_metrics="ttft,tpot,itl,e2el",
    metric_percentiles="50,90,99",
    backend="openai-chat",
)


RUN = [steady(i, due=i * 100, ttft=20 + i, gap=11, n=32) for i in range(24)]


def split(report):
    """The rows of the block, and the lines below it as they were before they were wrapped and
    indented.
    """
    rows = report.splitlines()
    begin = rows.index(RECORDED[0])
    end = rows.index("=" * 50) + 1
    return rows[begin:end], unwrapped(rows[end:])


def block(settings=None, records=RUN, **options):
    return split(render(result(records, settings, **options)))[0]


def below(settings=None, records=RUN, **options):
    return split(render(result(records, settings, **options)))[1]


def labels(rows):
    return [row[:40].rstrip() if row[0] not in "=-" else row for row in rows]


def value(rows, label):
    (row,) = [row for row in rows if row.startswith(label)]
    return row[41:].rstrip()


def red(group="B", **options):
    return Check(
        "rate off schedule",
        False,
        "90.00 req/s",
        "within 0.5%",
        "free a core",
        group=group,
        **options,
    )
