"""Server: what it said of itself beside what was measured of it, and what each of several targets did."""

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.report import server
from loadgen.report.html import Block, Paragraph, Table, cell, line
from loadgen.util.number_format import fixed, percent

SILENT = "It said nothing: --server-metrics was off, or it has no metrics that are known."
UNTOLD = "What it said, if it was asked, is not known: the run did not come to an end of its own."


def blocks(own: dict[str, Any]) -> Iterator[Block]:
    """Targets, then the server's words; that it said nothing, where it did not.

    Args:
        own: loadgen's part of the result.
    """
    if own.get("targets"):
        yield from _targets(own)
    said = own.get("server")
    if said is None:
        yield Paragraph(line(SILENT if own["client"]["wall_s"] is not None else UNTOLD))
        return
    if said.get("missing"):
        yield Paragraph(line(server.of_missing(said["missing"])))
    if said["sources"]:
        yield Paragraph(line(server.heading(said["sources"])))
        yield Table(("", "the server", "ours"), tuple(_rows(own, said)), words=1)
    if said["gpus"]:
        yield Paragraph(line(f"{server.of_gpus(said['gpu_levels'])}."))


def _rows(own: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """What both know of, then what the server alone knows; only what it told."""
    ttft, counts, levels = said["ttft_ms"], said["counts"], said["levels"]
    rows: dict[str, tuple[str, str]] = {}
    if ttft is not None:
        theirs, ours = ttft["server"], ttft["ours"]
        rows["mean TTFT, ms; ours from sent"] = (fixed(theirs["mean"]), fixed(ours["mean"]))
        for p in server.PERCENTILES:
            rows[f"p{p} TTFT, ms; ours from sent"] = (server.between(theirs[f"p{p}"]), fixed(ours[f"p{p}"]))
    tokens = own["tokens"]
    for what, theirs, ours in (
        ("requests that have ended", counts["requests"], sum(own["outcomes"].values())),
        ("input tokens", counts["prompt_tokens"], tokens["input_tokens"]),
        ("output tokens", counts["generation_tokens"], tokens["output_tokens"]),
        ("preemptions", counts["preemptions"], None),
    ):
        if theirs is not None:
            rows[what] = (f"{theirs:.0f}", "" if ours is None else f"{ours}")
    for what, level, form in (
        ("requests running, mean", "running", "{:.1f}"),
        ("requests waiting, mean", "waiting", "{:.1f}"),
        ("KV cache in use, mean", "kv_usage", "{:.1%}"),
    ):
        if levels[level]["mean"] is not None:
            rows[what] = (server.spread(levels[level], form), "")
    for what, share in (
        ("prompt tokens from the prefix cache", said["prefix_hit_rate"]),
        ("drafted tokens accepted", said["spec_acceptance"]),
    ):
        if share is not None:
            rows[what] = (percent(share, 1), "")
    return (tuple(map(cell, (what, *values))) for what, values in rows.items())


def _targets(own: Mapping[str, Any]) -> Iterator[Block]:
    balance, clock = own["provenance"]["settings"]["balance"], own["latency_from"]
    count = len(own["targets"])
    yield Paragraph(line(f"{count} targets shared the requests ({balance}); latencies are counted from {clock}."))
    head = ("target", "requests", "ok", "failed", "tok/s", "most in flight", "TTFT p50", "p99", "E2EL p50", "p99")
    rows = []
    for one in own["targets"]:
        numbers = [str(one[name]) for name in ("requests", "ok", "failed")]
        numbers += [fixed(one["output_throughput"], 2), str(one["max_concurrent_requests"])]
        latencies = [
            fixed(one["latency_ms"][f"{metric}_{clock}"][p]) for metric in ("ttft", "e2el") for p in ("p50", "p99")
        ]
        rows.append(tuple(map(cell, (one["base_url"], *numbers, *latencies))))
    yield Table(head, tuple(rows), words=1)
