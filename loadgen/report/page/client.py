"""Client: how the processes that measured fared."""

from collections.abc import Iterator
from typing import Any

from loadgen.pages import Block, Items, Paragraph, Span, Table, cell, line
from loadgen.report import console
from loadgen.report.page.terms import term
from loadgen.words import percent


def blocks(own: dict[str, Any]) -> Iterator[Block]:
    """What measuring took and met, then each worker where there were several.

    Args:
        own: loadgen's part of the result.
    """
    yield Items(tuple(line(said.strip()) for said in console.of_client(own)))
    client = own["client"]
    facts: list[tuple[Span | str, str]] = [
        (term("busy_share", "event loop busy"), percent(client["busy_share"])),
        ("CPU time", _number(client["cpu_s"], "s")),
        ("most memory", _number(client["peak_memory_bytes"] and client["peak_memory_bytes"] / 1e6, "MB")),
        ("time of the cores that the host gave to others", percent(client["stolen_share"], 1)),
        ("held back by a CPU limit for", _number(client["throttled_s"], "s")),
    ]
    for name, title in (("lag", "lag"), ("loop_stall", "loop stall"), ("gc_pause", "pause of the garbage collector")):
        found = own["latency_ms"][name]
        if found["count"]:
            facts.append((term(name, title), f"p99 {found['p99']:.3f} ms, at most {found['max']:.3f} ms"))
    yield Table(("", ""), tuple((cell(what), cell(value)) for what, value in facts), words=1)
    if client["disturbance"]:
        yield Paragraph(line(f"Meanwhile {client['disturbance']}."))
    if len(own.get("workers", ())) > 1:
        yield _workers(own["workers"])


def _workers(workers: list[dict[str, Any]]) -> Table:
    head = ("worker", "machine", "end", "loop busy", "CPU time", "most memory")
    rows = []
    for one in workers:
        client = one["client"]
        memory = client["peak_memory_bytes"]
        words = (str(one["number"]), one["host"] or "this one", one["lost"] or "came to its end")
        numbers = (percent(client["busy_share"]), _number(client["cpu_s"], "s"), _number(memory and memory / 1e6, "MB"))
        rows.append(tuple(map(cell, (*words, *numbers))))
    return Table(head, tuple(rows), words=3)


def _number(value: float | None, unit: str) -> str:
    return "n/a" if value is None else f"{value:.1f} {unit}"
