"""Series: several runs at one server, at one level of load after another: one JSON object, and one table of it."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from loadgen.config import slo
from loadgen.metrics.snapshot import Snapshot
from loadgen.report.distribution import number
from loadgen.report.result import judged
from loadgen.report.run_summary import brief
from loadgen.stats.percentile_interval import least_samples
from loadgen.util.number_format import fixed, percent
from loadgen.util.terminal_text import printable

SCHEMA = 1
WIDTH = 50
UNITS = {"rate": "requests/s", "concurrency": "requests in flight"}
LATENCIES = (("ttft", "p50"), ("ttft", "p99"), ("tpot", "p50"), ("tpot", "p99"), ("e2el", "mean"))
SHOWN = {"ttft_p50": "TTFT p50", "ttft_p99": "p99", "tpot_p50": "TPOT p50", "tpot_p99": "p99"}
MARK = "*"  # of a percentile of few values
OF_FEW = f"{MARK} of few values: its interval stands in the result of the run"
SAID = {True: "met", False: "MISSED"}


REPEATED = (
    "several runs had the same prompts, since the data set has no others: where the server has a prefix cache, the "
    "later ones were helped by it"
)


def is_series(data: Any) -> bool:
    """Whether what was saved is several runs together."""
    return isinstance(data, dict) and data.get("loadgen_series") == SCHEMA


def begun(kind: str, over: str, limits: str | None, latency_from: str) -> dict[str, Any]:
    """A series without points, as JSON.

    Args:
        kind: sweep or search.
        over: rate or concurrency: of what the levels are.
        limits: The SLO that runs are held against, if there is one.
        latency_from: due or sent.
    """
    return {
        "loadgen_series": SCHEMA,
        "kind": kind,
        "over": over,
        "slo": limits,
        "latency_from": latency_from,
        "partial": None,
        "found": None,
        "knee": None,
        "points": [],
        "notes": [],
    }


def conclude(data: dict[str, Any]) -> None:
    """Add to a series what follows from all of its points."""
    best = strongest(data["points"]) if data["kind"] == "sweep" else None
    data["knee"] = best["level"] if best and not _is_last(best, data["points"]) else None
    hashes = (each["result"]["loadgen"]["prompts_sha256"] for each in data["points"])
    prompts = [each for each in hashes if each is not None]
    repeated = [REPEATED] if len(set(prompts)) < len(prompts) else []
    data["notes"] = list(dict.fromkeys(data["notes"] + repeated))


def point(
    level: float, data: dict[str, Any], snapshot: Snapshot, *, limits: str | None, saved: Sequence[str]
) -> dict[str, Any]:
    """A run of the series, as JSON.

    Args:
        level: Of the load.
        data: The result.
        snapshot: The numbers it was made from.
        limits: The SLO that it is held against; `slo` has what the run itself showed of each limit, and `met` whether
            all of them hold: null where there is no SLO, or the run is INVALID or ended early.
        saved: Files of it.
    """
    own = data["loadgen"]
    clock = own["latency_from"]
    rows = judged(limits, snapshot, clock)
    tells = bool(rows) and own["verdict"] != "INVALID" and own["partial"] is None
    return {
        "level": level if math.isfinite(level) else "inf",
        "met": all(row["met"] for row in rows) if tells else None,
        "why": own["partial"],
        "slo": rows,
        "verdict": own["verdict"],
        "latency_ms": {
            f"{metric}_{name}": number(snapshot.histograms[slo.distribution(metric, clock)], name)
            for metric, name in LATENCIES
        },
        "saved": list(saved),
        "result": brief(data),
    }


def strongest(points: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The run with the most throughput for its latency: output tokens/s by mean E2EL (Kleinrock's power, ICC 1979).

    At the last level it is no knee: what comes after it is not known. None of fewer than three levels, or where one has
    neither.
    """
    found = _told(points)
    if len({each["level"] for each in found}) < 3 or not all(map(_power, found)):
        return None
    return max(found, key=_power)


def _told(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs at a level that are to be believed."""
    return [each for each in points if each["level"] != "inf" and each["verdict"] != "INVALID"]


def _is_last(best: dict[str, Any], points: Sequence[dict[str, Any]]) -> bool:
    return level_of(best) == max(map(level_of, _told(points)))


def _power(each: dict[str, Any]) -> float:
    e2el, throughput = each["latency_ms"]["e2el_mean"], each["result"]["output_throughput"]
    return throughput / e2el if e2el and throughput else 0.0


def render(data: dict[str, Any]) -> str:
    """The console's view of a series; nothing in it moves a terminal."""
    return "\n".join(map(printable, _lines(data))) + "\n"


def _lines(data: dict[str, Any]) -> Iterator[str]:
    yield f"{f' {title(data)} ':=^{WIDTH}}"
    yield from banners(data)
    heads, rows = table(data)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    yield "latencies in ms from " + data["latency_from"]
    for row in (heads, *rows):
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    if any(MARK in cell for row in rows for cell in row):
        yield OF_FEW
    yield from conclusions(data)


def title(data: dict[str, Any]) -> str:
    """What it is of, in a few words."""
    return f"{data['kind'].capitalize()} over the {'request rate' if data['over'] == 'rate' else 'concurrency'}"


def banners(data: dict[str, Any]) -> Iterator[str]:
    """What one is to know before any number."""
    if data["points"] and data["points"][0]["result"]["loadgen"]["simulated"]:
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, no real server."
    if data["partial"]:
        yield f"PARTIAL: {data['partial']}."


def conclusions(data: dict[str, Any]) -> Iterator[str]:
    """What its runs come to."""
    told = (each for each in sorted(data["points"], key=level_of) if each["why"])
    yield from dict.fromkeys(f"  at {named(each['level'])}: {each['why']}" for each in told)
    if data["found"] is not None:
        yield _found(data)
    elif judged := [each for each in sorted(data["points"], key=level_of) if each["met"] is not None]:
        yield _met(data, list(dict.fromkeys(each["level"] for each in judged if each["met"])))
    if data["kind"] == "sweep" and (best := strongest(data["points"])):
        level = in_unit(best["level"], data["over"])
        knee = f"Knee, most tokens/s for the mean E2EL: {level}"
        yield f"No knee up to {level}" if _is_last(best, data["points"]) else knee
    yield from (f"Note: {note}" for note in data["notes"])


def table(data: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """A row for each run in the order of the levels, and what stands above the columns; cells are words as printed."""
    limits = slo.parse(data["slo"]) if data["slo"] else []
    others = [limit for limit in limits if limit.name not in (*SHOWN, "ttft_median", "tpot_median", "error_rate")]
    heads = [data["over"], "req/s", "tok/s", "peak", *(f"{name} " for name in SHOWN.values())]
    heads += [*(f"{limit.name} " for limit in others), "failed", "verdict", *(["SLO"] if limits else [])]
    return heads, [_cells(each, others, judged=bool(limits)) for each in sorted(data["points"], key=level_of)]


def _cells(each: dict[str, Any], others: Sequence[slo.Limit], *, judged: bool) -> list[str]:
    result = each["result"]
    values = {row["limit"]: row["value"] for row in each["slo"]}
    cells = [named(each["level"]), fixed(result["request_throughput"], 2), fixed(result["output_throughput"], 2)]
    cells += [fixed(result["max_concurrent_requests"], 0)]
    for value, p in [
        *((each["latency_ms"][name], float(name.partition("_p")[2])) for name in SHOWN),
        *((values[limit.text], limit.percentile) for limit in others),
    ]:
        few = value is not None and p is not None and result["completed"] < least_samples(p)
        cells.append(fixed(value, 2) + (MARK if few else " "))
    ended = result["completed"] + result["failed"]  # those that were cancelled tell nothing of the server
    cells += [percent(result["failed"] / ended if ended else None, 1), each["verdict"]]
    return cells + ([SAID.get(each["met"], "-")] if judged else [])


def _found(data: dict[str, Any]) -> str:
    """What a search came to, in one line."""
    found, over = data["found"], data["over"]
    level, fails, last = (found[name] and in_unit(found[name], over) for name in ("level", "fails", "last"))
    missed = any(each["met"] is False for each in data["points"] if each["level"] == found["fails"])
    edge = f"nothing failed up to {named(found['level'])}" if level else ""
    if fails:
        edge = f"{named(found['fails'])} {'do not' if missed else 'were not shown to'}"
    match found["end"]:
        case "edge":
            return f"Highest {data['over']} that meets {data['slo']}: {level}; {edge}"
        case "floor":
            return f"At least {level} meet {data['slo']}; {edge}, and the search ended there"
        case "none":
            return f"NO {data['over'].upper()} MEETS {data['slo']}: the lowest that was tried is {fails}"
        case "client":
            beyond = f"at least {level} meet {data['slo']}" if level else "nothing is known of the server"
            return f"At {last} THE CLIENT, NOT THE SERVER, WAS THE LIMIT: {beyond}"
    beyond = f"; at least {level} meet {data['slo']}" if level else ""
    return f"The search ended early{beyond}"


def _met(data: dict[str, Any], levels: Sequence[float | str]) -> str:
    """Which levels of a sweep met its SLO, in one line."""
    if not levels:
        return f"NO LEVEL MEETS {data['slo']}"
    *others, last = levels
    return f"{data['slo']} is met at: {', '.join((*map(named, others), in_unit(last, data['over'])))}"


def level_of(each: dict[str, Any]) -> float:
    """The level of a point; "inf" is the highest."""
    return float(each["level"])


def named(level: float | str) -> str:
    """A level as it is written."""
    return level if isinstance(level, str) else f"{level:g}"


def in_unit(level: float | str, over: str) -> str:
    """A level as it is said: "4 requests/s", "1 request in flight"."""
    unit = UNITS[over]
    return f"{named(level)} {unit.replace('requests', 'request') if level == 1 else unit}"
