"""Client: the state of the measuring processes and their disturbances."""

from collections.abc import Iterator

from loadgen.config.target import AIOHTTP
from loadgen.document import Block, Items, Span, Table
from loadgen.metrics.statistic import NO_BOUND
from loadgen.report.result import RunResult
from loadgen.report.result.client import ProcessUsage
from loadgen.report.sections import said, term
from loadgen.util.number_format import UNKNOWN, fixed, in_table, percent, plural


def _remarks(result: RunResult) -> Iterator[str]:
    """Write how busy the client was, its connections, and whether its files are complete."""
    client, tokens, settings = result.client, result.tokens, result.provenance.settings
    if settings.users is not None:
        yield (
            "Closed loop: each request was due when its user had thought; no user has two "
            "requests in flight"
        )
    elif result.closed_loop:
        yield (
            "Closed loop: each request was due when a slot was free; no wait in front of the "
            "server is measured"
        )
    workers, late = len(result.workers), plural(client.late_connections, "request")
    loop = f"{workers} workers, the busiest loop" if workers > 1 else "loop"
    # How busy a killed process was, and what it had opened, is unknown.
    busy = "" if client.busy_share is None else f"{loop} {percent(client.busy_share)} busy, "
    opened, waited = "", f"{late} waited for a connection"
    if client.warm_connections is not None:
        opened = f"{plural(client.warm_connections, 'connection')} opened before the clock, "
        waited = f"{late} waited for one"
    yield f"Client: {busy}{opened}{waited}"
    if settings.transport == AIOHTTP:
        yield "Transport: aiohttp, so times are those of reading"
    if tokens.unbounded_events:
        yield f"Arrival times: {NO_BOUND}"
    elif events := tokens.token_events:
        what = "tokens" if result.streams else "answers"
        yield from said(
            "Arrival times: {:.1%} of the {} stamped by the kernel, {:.1%} exact",
            1 - tokens.user_stamped_events / events,
            what,
            1 - tokens.inexact_events / events,
        )
        waiting = "The network lost or reordered segments: {:.1%} of the {} waited for them"
        yield from said(waiting, tokens.reordered_events / events or None, what)
    engine = result.provenance.saved_engine
    for about in (engine, *engine.get("targets", ())):
        yield from map("Before the load: {}.".format, about.get("preflight", {}).get("changes", ()))
    if engine.get("continuous_usage") == "refused":
        yield (
            "The server refuses to count tokens with every event (--continuous-usage): it was "
            "not asked to"
        )
    if client.connections_reused is False and not result.outcomes.get("refused"):
        yield "No connection was used twice: each request opened its own"
    yield from said("Meanwhile {}", client.disturbance or None)
    yield from said("The records are not complete: {}", client.records_error or None)
    if (capture := client.capture) is not None:
        left_out = f", {capture.left_out} left out for lack of room" if capture.left_out else ""
        yield f"Captured {plural(capture.responses, 'response')}{left_out}"
        yield from said("The capture is not complete: {}", capture.error or None)


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the resource use and the disturbances that are known, then each worker if there were
    several.
    """
    yield Items.of(_remarks(result))
    client = result.client
    facts: list[tuple[Span | str, str]] = [
        ("CPU time", fixed(client.cpu_s, 1, "s")),
        ("most memory", _megabytes(client)),
        ("time of the cores that the host gave to others", percent(client.stolen_share, 1)),
        ("held back by a CPU limit for", fixed(client.throttled_s, 1, "s")),
    ]
    pauses = {"loop_stall": "loop stall", "gc_pause": "pause of the garbage collector"}
    for name, title in pauses.items():
        distribution = result.latency_ms.named(name)
        if distribution.count:
            p99, highest = (in_table(distribution[of], "ms") for of in ("p99", "max"))
            facts.append((term(name, title), f"p99 {p99}, max {highest}"))
    if rows := [(what, value) for what, value in facts if value != UNKNOWN]:
        yield Table.of(("", ""), rows)
    if len(result.workers) > 1:
        head = ("worker", "machine", "end", "loop busy", "CPU time", "most memory")
        workers = []
        for worker in result.workers:
            usage = worker.client
            end = worker.lost or ("is not known" if usage.wall_s is None else "came to its end")
            words = (str(worker.number), worker.host or "this one", end)
            numbers = (percent(usage.busy_share), fixed(usage.cpu_s, 1, "s"), _megabytes(usage))
            workers.append((*words, *numbers))
        yield Table.of(head, workers, text_columns=3)


def _megabytes(client: ProcessUsage) -> str:
    memory = client.peak_memory_bytes
    return fixed(memory and memory / 1e6, 1, "MB")
