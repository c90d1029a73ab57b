"""Report: the findings of a bench as Markdown, with the machine and the date."""

import time
from collections.abc import Sequence

from bench.performance.clients import C_LIMIT, C_SAME_CALLS
from bench.performance.findings import Findings
from bench.performance.load import PROMPT_TOKENS
from bench.performance.ratios import Cost, Costs
from bench.performance.sample import Sample
from bench.performance.startup import BARE, COMMANDS
from bench.table import figure, median, spread, table
from loadgen.util import machine

DISTURBED_CORES = 0.2
# Tokens. What shorter answers cost is told by request, else by token.
SHORT_ANSWER = 10


def report(found: Findings) -> str:
    """All tables."""
    parts = [
        _heading(found),
        "## What it costs\n",
        _costs(found),
        "## Whether they keep up\n",
        _heavy(found),
        *workers_shared(found),
        *_startup(found),
        "## Every run\n",
        _runs(found),
    ]
    return "\n".join(parts)


def _heading(found: Findings) -> str:
    about = machine.describe()
    loads = "; ".join(map(str, found.plan.loads))
    return "\n".join(
        [
            "# What the client costs",
            "",
            f"{time.strftime('%Y-%m-%d %H:%M %Z')}; {about['cpu']}, {about['usable_cores']} cores "
            f"shared with the server; {about['system']}; Python {about['python']}.",
            "",
            f"{loads}. Prompts of {PROMPT_TOKENS} tokens, constant arrivals, a token every "
            f"{found.plan.step_ms:g} ms for all streams at once. All clients speak to the same "
            "simulator and open as many connections before they start.",
            "",
            "CPU is user and system time, of the measuring process alone and between the first "
            "send and the last end unless a row says otherwise. Cells are medians over rounds, "
            "with the least and the most; ratios are taken within each round. Only ratios can be "
            f"compared between machines. Both loops in C read with stamps of the kernel; "
            f"`{C_SAME_CALLS}` also takes the stamp of what it sent, asks for TCP_INFO, peeks "
            "before a send, reads the body from a file, and asks what can be read before it "
            "waits, as loadgen does.",
            "",
            *(f"{note}\n" for note in found.notes),
        ]
    )


def _costs(found: Findings) -> str:
    costs = Costs(found.samples)
    loads = found.plan.loads
    rows: list[tuple[str, Cost]] = [
        (f"us per request of {load.tokens} tokens, {load.name}", costs.by_request(load.name))
        if load.tokens < SHORT_ANSWER
        else (f"us per token, {load.name}", costs.by_token(load.name))
        for load in loads
    ]
    rows += [(f"CPU s of all its processes, {load.name}", costs.tree(load.name)) for load in loads]
    ours, *others = found.clients
    pairs = [(other, ours) for other in others if other == "plain aiohttp"]
    pairs += [(ours, other) for other in others if other in (C_LIMIT, C_SAME_CALLS)]
    head = ["", *found.clients, *(f"{a} / {b}" for a, b in pairs)]
    cells = []
    for name, cost in rows:
        values = [costs.over_rounds(cost, client) for client in found.clients]
        ratios = [costs.ratio(cost, a, b) for a, b in pairs]
        cells.append([name, *map(spread, [*values, *ratios])])
    return table(head, cells)


def _heavy(found: Findings) -> str:
    heavy = found.plan.loads[-1]
    rows = []
    for client in found.clients:
        samples = [
            sample for sample in found.samples if sample.client == client and sample.load is heavy
        ]
        rows.append(
            [
                client,
                median([sample.achieved_rps for sample in samples]),
                median([sample.late_p99_ms for sample in samples]),
                median([sample.late_max_ms for sample in samples]),
                median([sample.ttft_p50_ms for sample in samples]),
                median([sample.ttft_p99_ms for sample in samples]),
                median([100 * sample.busy_share for sample in samples]),
                median([sample.peak_mb for sample in samples]),
                ", ".join(sample.verdict for sample in samples if sample.verdict) or "-",
            ]
        )
    head = [
        "client",
        "req/s",
        "late p99 ms",
        "late max ms",
        "TTFT p50 ms",
        "TTFT p99 ms",
        "core busy %",
        "peak MB",
    ]
    return f"{heavy}, {heavy.count:,} requests.\n\n" + table([*head, "says of itself"], rows)


def workers_shared(found: Findings) -> list[str]:
    """What a second worker adds; nothing where none took part."""
    one, two = found.clients[0], f"{found.clients[0]} --workers 2"
    if two not in found.clients:
        return []
    heavy, costs = found.plan.loads[-1], Costs(found.samples)
    rows = []
    for workers, client in (("1", one), ("2", two)):
        samples = [
            sample for sample in found.samples if sample.client == client and sample.load is heavy
        ]
        rows.append(
            [
                workers,
                median([sample.achieved_rps for sample in samples]),
                median(
                    [100 * sample.loop_busy for sample in samples if sample.loop_busy is not None]
                ),
                median([sample.late_p99_ms for sample in samples]),
                spread(costs.over_rounds(costs.by_token(heavy.name), client)),
                spread(costs.ratio(costs.by_token(heavy.name), client, one)),
            ]
        )
    head = [
        "workers",
        "req/s",
        "busiest loop %",
        "late p99 ms",
        "us per token, all of them",
        "of one worker's",
    ]
    return ["## Workers\n", f"{heavy}, shared.\n\n" + table(head, rows)]


def _startup(found: Findings) -> list[str]:
    """What is measured of loadgen alone; nothing where the plan leaves it out."""
    if not found.startup_s:
        return []
    rows = []
    if found.memory is not None:
        memory = found.memory
        what = (
            f"peak MB of the measuring process, {memory.load.count:,} requests of "
            f"{PROMPT_TOKENS} + "
        )
        what += f"{memory.load.tokens} tokens at {memory.load.rate:,}/s ({memory.verdict})"
        rows.append([what, figure(memory.peak_mb)])
    rows += [[f"seconds, {name}", figure(seconds)] for name, seconds in found.startup_s.items()]
    bare_s = found.startup_s[BARE]
    rows += [
        [f"{name} / {BARE}", figure(found.startup_s[name] / bare_s)]
        for name in COMMANDS
        if name != BARE
    ]
    return ["## Memory and start-up\n", table(["", "loadgen"], rows)]


def _runs(found: Findings) -> str:
    head = [
        "run",
        "CPU s",
        "of all its processes",
        "other CPU, cores",
        "server, cores",
        "server late, ms",
        "",
    ]
    samples = [*found.samples, *([found.memory] if found.memory else [])]
    return (
        "Other CPU is what processes outside the bench used, in cores; the server is late when it "
        "falls behind its "
        "own plan, and then it is what was measured.\n\n" + table(head, map(_run, samples))
    )


def _run(sample: Sample) -> Sequence[str]:
    around = sample.around
    return [
        f"{sample.round + 1} {sample.load.name} {sample.client}",
        figure(sample.cpu_s),
        figure(around.tree_cpu_s),
        figure(around.others_cores),
        figure(around.server_cores),
        figure(around.overrun_ms),
        "disturbed" if around.others_cores > DISTURBED_CORES else "",
    ]
