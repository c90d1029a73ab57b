"""Made pages and results, audited: what rules find in them."""

from functools import cache
from pathlib import Path

from loadgen.lab.audit import Finding, audit
from tests.helpers.source import ROOT

PAGES = ROOT / "tests" / "data" / "pages"
SERVE = "vllm serve acme/Foo-7B"
BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     {ok}
{cap}Benchmark duration (s):                  {duration:.2f}
Total input tokens:                      {input}
Total generated tokens:                  {output}
Request throughput (req/s):              {rate:.2f}
Output token throughput (tok/s):         {output_rate:.2f}
Peak output token throughput (tok/s):    {peak:.2f}
Peak concurrent requests:                {in_flight:.2f}
Total Token throughput (tok/s):          {total:.2f}
---------------Time to First Token----------------
Mean TTFT (ms):                          {ttft:.2f}
Median TTFT (ms):                        {ttft:.2f}
P99 TTFT (ms):                           {ttft:.2f}
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          {tpot:.2f}
Median TPOT (ms):                        {tpot:.2f}
P99 TPOT (ms):                           {tpot:.2f}
---------------Inter-token Latency----------------
Mean ITL (ms):                           {itl:.2f}
Median ITL (ms):                         {median_itl:.2f}
P99 ITL (ms):                            {itl:.2f}
{e2el}==================================================
"""


def block(**given: float) -> str:
    """A block in which everything is as it must be, but for what is given; `cap` and `e2el`
    stand in it if given.
    """
    it: dict[str, float] = {"ok": 100, "duration": 10.0, "input": 10_000, "output": 10_100}
    it |= {"ttft": 100.0, "tpot": 10.0, "itl": given.get("tpot", 10.0), "in_flight": 11} | given
    it.setdefault("median_itl", it["itl"])
    it.setdefault("rate", it["ok"] / it["duration"])
    it.setdefault("output_rate", it["output"] / it["duration"])
    it.setdefault("total", (it["input"] + it["output"]) / it["duration"])
    it.setdefault("peak", 2 * it["output_rate"])
    cap = f"Maximum request concurrency:             {it['cap']}\n" if "cap" in it else ""
    e2el = f"Mean E2EL (ms):                          {it['e2el']:.2f}\n" if "e2el" in it else ""
    return BLOCK.format_map({**it, "cap": cap, "e2el": e2el})


@cache
def published(page: str) -> tuple[Finding, ...]:
    """What is found in a page of `tests/data/pages`."""
    return tuple(audit(str(PAGES / f"{page}.md")))


def found(tmp_path: Path, text: str, name: str = "page.md") -> list[Finding]:
    """What is found in a file of this text."""
    path = tmp_path / name
    path.write_text(text)
    return audit(str(path))


def rules(findings: list[Finding]) -> set[str]:
    """The names of the rules that found something."""
    return {finding.rule for finding in findings}


def only(findings: list[Finding], rule: str) -> Finding:
    """The one finding of a rule."""
    (finding,) = (finding for finding in findings if finding.rule == rule)
    return finding


def fence(text: str, language: str = "") -> str:
    """A fence around a text."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def stage(title: str, command: str, seconds: float, **given: float) -> str:
    """A stage with one candidate."""
    return f"### {title}\n\n{fence(command, 'bash')}\n{fence(block(duration=seconds, **given))}\n"


def study(
    *stages: str,
    summary: str = "",
    other: str = "",
    best: str = SERVE,
    setup: str = "",
    cells: str = "",
) -> str:
    """A page with these stages; its comparison is of a workload that nothing else is said of."""
    rows = f"\n| Option | Gain |\n|---|---|\n{summary}\n" if summary else ""
    case = cells or "Total TPS: 1005.00 | Total TPS: 1116.67 (+11.1%)"
    return (
        f"# Tuning Foo-7B\n\n## Conclusion\n\n{fence(best, 'bash')}\n| Case | baseline | "
        "Optimized |\n|---|---|---|\n"
        f"| Chat | {case} |\n\n{setup}\n## Results\n\n{''.join(stages)}### Summary\n{rows}\n{other}"
    )
