"""Converts a published result to the summary of a run: with vLLM's names, and without
inconsistent numbers.
"""

import math
from collections.abc import Iterable, Mapping, Set
from typing import Any

from loadgen.checks import Check, reasons
from loadgen.errors import BadInput
from loadgen.lab.audit.auditor import audit_result
from loadgen.lab.audit.files import KEYS
from loadgen.lab.audit.finding import KINDS, Finding
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.rules.rates import PARTS, counted
from loadgen.report.result.fields import from_json_values
from loadgen.report.result.series import JUDGED

NAMES = {name: key for key, name in reversed(KEYS.items())}  # the first of two keys is vLLM's
# Metrics that a rule of the audit removes, with all statistics of a latency.
UNTRUE = {
    "tpot": ("tpot",),
    "itl": ("itl", "tpot"),
    "itl-zero": ("itl", "tpot"),
    "itl-diluted": ("itl",),
    "itl-coalesced": ("itl",),
    "peak-throughput": ("peak_output_per_s",),
    "peak-concurrency": ("peak_in_flight",),
}
# In contrast to gaps between tokens, which may arrive together.
OF_REQUESTS = {"ttft", "e2el", "latency"}
OF_TOOL = {"tpot"}  # wrong in all results of a tool if it is wrong in one


def findings(result: Published) -> list[Finding]:
    """Return the audit's findings of numbers in a result that are inconsistent, or are not what
    they are called.
    """
    return [
        finding for finding in audit_result(result) if not finding.note or finding.rule in UNTRUE
    ]


def untrue_of_all(results: Iterable[Published]) -> set[str]:
    """Return the latencies that are wrong in all results of a file, because the tool computes
    something else.
    """
    untrue: set[str] = set()
    for result in results:
        untrue |= _untrue(findings(result)) & OF_TOOL
    return untrue


def restated(result: Published, requests: int, untrue: Set[str] = frozenset()) -> dict[str, Any]:
    """Convert a result to the summary of a run.

    A throughput that disagrees with the counts and the duration is computed from these. A number
    that the audit finds inconsistent is null. `loadgen.published` keeps all numbers as printed.

    Args:
        result: The result.
        requests: Number of requests, used if the result does not have it.
        untrue: Latencies to leave out, as `ttft`.

    Returns:
        Scalars by vLLM's names; under `loadgen` the same keys as in a run's summary, and `servers`,
        their number.
    """
    wrong = findings(result)
    printed = as_printed(result)
    untrue = untrue | _untrue(wrong) | ({"tpot"} if result.tpot_with_first else set())
    completed = int(printed.get("completed", 0))
    sent = requests_sent(result)
    sent = max(requests, completed) if sent is None else sent
    summary = {
        key: value
        for key, value in result.data.items()
        if isinstance(value, str | int | float | bool | None)
    }
    summary |= (
        {"failed": sent - completed} | printed | {"num_prompts": sent, "completed": completed}
    )
    for name in PARTS:
        rate = counted(result, name) / result["duration_s"]
        if rate and not result[name].agrees(rate):
            summary[NAMES[name]] = rate.value
    # A mean of whole requests is one of the same zeros as a statistic that is zero.
    untrue |= {
        _metric(key) for key, value in summary.items() if _is_zero_latency(key, value)
    } & OF_REQUESTS
    for key, value in summary.items():
        if key.endswith("_ms"):
            is_untrue = _is_zero_latency(key, value) or _metric(key) in untrue
        else:
            is_untrue = any(NAMES[name] == key for name in untrue & NAMES.keys())
        if is_untrue:
            summary[key] = None
    return summary | {"loadgen": _judged(result, wrong, summary)}


def requests_sent(result: Published) -> int | None:
    """Return the number of requests that were sent; None: the result does not have it."""
    ok = result.get("ok")
    failed = result.get("failed")
    sent = result.data.get("num_prompts")
    completed = int(ok.value) if ok else 0
    if type(sent) is int and sent >= completed:
        return sent
    return None if failed is None else completed + int(failed.value)


def as_printed(result: Published) -> dict[str, int | float]:
    """Return the numbers of a result as published, by the names of `restated`."""
    numbers = ((NAMES.get(name, name), number) for name, number in result.numbers.items())
    return {
        name: int(number.value) if number.low == number.high == int(number.value) else number.value
        for name, number in numbers
        if math.isfinite(number.value)
    }


def _judged(result: Published, wrong: list[Finding], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict and checks of a loadgen result; null for other tools."""
    stored = result.data.get("loadgen", {})
    sent = summary["num_prompts"]
    try:
        judged = {name: stored.get(name) for name in JUDGED} | {
            "reasons": reasons(from_json_values(stored.get("checks") or [], list[Check])),
            "slo": [
                {part: row[part] for part in ("limit", "value", "met")}
                for row in stored.get("slo") or ()
            ],
            "servers": len(stored.get("targets") or ()) or 1,
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"{result.place} is incomplete ({type(error).__name__}: {error})"
        raise BadInput((), problem, "name a result as it was saved") from error
    return judged | {
        "verdict": result.verdict or ("SUSPECT" if wrong else None),
        "reasons": [
            *judged["reasons"],
            *(f"{KINDS[finding.rule].title}: {finding.claim}" for finding in wrong),
        ],
        "simulated": bool(judged["simulated"]),
        "error_rate": stored.get("error_rate", 1 - summary["completed"] / sent if sent else None),
        "published": as_printed(result),
    }


def _untrue(wrong: Iterable[Finding]) -> set[str]:
    metrics: set[str] = set()
    for finding in wrong:
        metrics |= {*UNTRUE.get(finding.rule, ())}
    return metrics


def _is_zero_latency(key: str, value: Any) -> bool:
    """Return whether a latency was not measured: an answer takes time.

    Only a deviation may be zero.
    """
    return key.endswith("_ms") and value == 0 and not key.startswith("std_")


def _metric(key: str) -> str:
    return key.split("_")[-2]
