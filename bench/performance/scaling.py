"""What a token event costs, by how many streams there are at once and by how many events a read
brings: `python -m bench.performance.scaling [--quick] [--rounds N]`, a part of `make bench`.

loadgen and the loop in C read the same streams in turn, 10,000 events a second in all cases: of 1
stream or of 10,000, each event written by itself; and of 100 streams, of which each write brings so
many events. Each figure is the difference of two loads, of which one has streams three times as
long, so that what requests and connections cost is in none. Nothing here passes or fails.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench.performance.clients import Client, Limit, Loadgen
from bench.performance.load import Load, Served, serving
from bench.table import spread, table
from loadgen.util import machine

EVENTS_PER_S = 10_000
STREAMS = (1, 10, 100, 1_000, 10_000)
STARTS_PER_S = 2_500  # of streams, so that the last of them begins before the first has ended
EVENTS_PER_READ, GROUPED_STREAMS = (1, 2, 4, 16, 64), 100
LONGER = 3  # times as many events has the longer one of two loads


@dataclass(frozen=True, slots=True)
class Case:
    """Two loads that differ in the number of their events alone.

    Attributes:
        name: What is varied, with its value.
        server: The module and the flags of the server.
        short, long: The loads.
    """

    name: str
    server: tuple[str, ...]
    short: Load
    long: Load

    @property
    def events(self) -> int:
        """How many more events with tokens the long one has."""
        return self.long.count * self.long.tokens - self.short.count * self.short.tokens


def of_streams(streams: int, seconds: float) -> Case:
    """So many streams at once, of which the shorter load's last for so long."""
    gap_ms = 1e3 * streams / EVENTS_PER_S
    tokens = max(2, round(seconds * EVENTS_PER_S / streams))
    name, rate = f"streams at once: {streams:,}", min(streams, STARTS_PER_S)
    server = ("loadgen.testing.metronome", "--first-ms", f"{gap_ms:g}", "--gap-ms", f"{gap_ms:g}")
    short, long = (
        Load(name, rate, streams, count, warm=streams) for count in (tokens, LONGER * tokens)
    )
    return Case(name, server, short, long)


def of_reads(events: int, seconds: float) -> Case:
    """So many events in every write, and so in every read of a client that keeps up."""
    streams, gap_ms = GROUPED_STREAMS, 1e3 * GROUPED_STREAMS * events / EVENTS_PER_S
    tokens = events * max(1, round(seconds * 1e3 / gap_ms))
    name = f"events per read: {events}"
    server = ("bench.performance.grouped", "--together", str(events), "--gap-ms", f"{gap_ms:g}")
    short, long = (
        Load(name, streams, streams, count, warm=streams) for count in (tokens, LONGER * tokens)
    )
    return Case(name, server, short, long)


@dataclass
class Findings:
    """Microseconds per event, by case and client, in every round.

    Attributes:
        costs: Of each.
        notes: What was left out, and why; what else kept the machine busy.
    """

    costs: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def measure(cases: list[Case], rounds: int) -> Findings:
    """Have every client carry out both loads of every case, so many times."""
    machine.raise_open_files_limit()
    found = Findings()
    with tempfile.TemporaryDirectory(prefix="loadgen-scaling-") as name:
        clients = _clients(Path(name), found.notes)
        for number in range(rounds):
            for case in cases:
                module, *flags = case.server
                command = [sys.executable, "-m", module, *flags]
                with serving(command, module.rpartition(".")[2]) as server:
                    for client in (
                        clients[number % len(clients) :] + clients[: number % len(clients)]
                    ):
                        print(
                            f"round {number + 1}, {case.name}: {client.name}",
                            file=sys.stderr,
                            flush=True,
                        )
                        costs = found.costs.setdefault((case.name, client.name), [])
                        costs.append(_us_per_event(client, server, case))
    return found


def _clients(folder: Path, notes: list[str]) -> list[Client]:
    clients: list[Client] = [Loadgen(folder)]
    try:
        clients.append(Limit(folder))
    except RuntimeError as reason:
        notes.append(f"The limit in C was left out: {reason}.")
    return clients


def _us_per_event(client: Client, server: Served, case: Case) -> float:
    """What one of the events costs by which the loads differ.

    Raises:
        RuntimeError: The client did not receive what it asked for.
    """
    cpu_s = []
    for load in (case.short, case.long):
        told = client.run(server, load)
        if told["tokens"] != load.count * load.tokens:
            raise RuntimeError(
                f"{client.name} received {told['tokens']} of {load.count * load.tokens} tokens "
                f"({load})"
            )
        cpu_s.append(told["cpu_s"])
    return (cpu_s[1] - cpu_s[0]) / case.events * 1e6


def report(found: Findings) -> str:
    """The table: a row for each case, a column for each client, and what loadgen costs in times
    the limit.
    """
    names = list(dict.fromkeys(case for case, _ in found.costs))
    clients = list(dict.fromkeys(client for _, client in found.costs))
    rows = []
    for name in names:
        costs = [found.costs[name, client] for client in clients]
        ratios = [a / b for a, b in zip(*costs, strict=True) if b > 0] if len(costs) == 2 else []
        rows.append([name, *map(spread, costs), *([spread(ratios)] if len(clients) == 2 else [])])
    head = ["us per event", *clients, *([" / ".join(clients)] if len(clients) == 2 else [])]
    return "\n".join(
        [
            "# What a token event costs",
            "",
            *(f"{note}\n" for note in found.notes),
            table(head, rows),
        ]
    )


def cases(*, quick: bool) -> list[Case]:
    """All that is measured; quick ones show that it works, no more."""
    seconds, most = (0.2, 100) if quick else (5.0, STREAMS[-1])
    streams = [of_streams(count, seconds) for count in STREAMS if count <= most]
    return streams + [of_reads(events, seconds) for events in EVENTS_PER_READ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.scaling", description="What an event costs."
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often the clients take turns (3)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of short loads: shows that it works, no more",
    )
    flags = parser.parse_args()
    print(report(measure(cases(quick=flags.quick), 1 if flags.quick else max(1, flags.rounds))))


if __name__ == "__main__":
    main()
