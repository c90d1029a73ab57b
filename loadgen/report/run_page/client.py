"""Client: resource use of the measuring processes, and their disturbances."""

from collections.abc import Iterator

from loadgen.report import client_lines
from loadgen.report.html import Block, Items, Paragraph, Span, Table
from loadgen.report.result import RunResult
from loadgen.report.result.client import ProcessUsage, Worker
from loadgen.report.run_page.glossary import term
from loadgen.util.number_format import UNKNOWN, fixed, percent


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the resource use and the disturbances that are known, then each worker if there were several."""
    yield Items.of(client_lines.lines(result))
    client = result.client
    facts: list[tuple[Span | str, str]] = [
        ("CPU time", fixed(client.cpu_s, 1, "s")),
        ("most memory", _megabytes(client)),
        ("time of the cores that the host gave to others", percent(client.stolen_share, 1)),
        ("held back by a CPU limit for", fixed(client.throttled_s, 1, "s")),
    ]
    for name, title in (("lag", "lag"), ("loop_stall", "loop stall"), ("gc_pause", "pause of the garbage collector")):
        found = result.latency_ms.named(name)
        if found.count:
            p99, highest = fixed(found.p99_ms, unit="ms"), fixed(found.max_ms, unit="ms")
            facts.append((term(name, title), f"p99 {p99}, at most {highest}"))
    if known := [(what, value) for what, value in facts if value != UNKNOWN]:
        yield Table.of(("", ""), known, text_columns=1)
    if client.disturbance:
        yield Paragraph.of(f"Meanwhile {client.disturbance}.")
    if len(result.workers) > 1:
        yield _workers(result.workers)


def _workers(workers: list[Worker]) -> Table:
    head = ("worker", "machine", "end", "loop busy", "CPU time", "most memory")
    rows = []
    for one in workers:
        client = one.client
        end = one.lost or ("is not known" if client.wall_s is None else "came to its end")
        words = (str(one.number), one.host or "this one", end)
        numbers = (percent(client.busy_share), fixed(client.cpu_s, 1, "s"), _megabytes(client))
        rows.append((*words, *numbers))
    return Table.of(head, rows, text_columns=3)


def _megabytes(client: ProcessUsage) -> str:
    memory = client.peak_memory_bytes
    return fixed(memory and memory / 1e6, 1, "MB")
