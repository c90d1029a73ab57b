"""What the client costs: `python -m bench.performance.cost [--quick] [--load NAME] [--rounds N]
[--output FILE]`, or `make bench`.

Clients send the same loads to the same simulator, in turn and several times: loadgen as users run
it, a plain aiohttp client, a loop in C as the limit of what can be had, and the same loop with the
system calls that loadgen makes. Only ratios within a run mean anything, since times depend on the
machine and on what else it does, which is why that is measured beside them. Nothing here passes or
fails.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.performance import startup
from bench.performance.clients import Client, Limit, Loadgen, Plain
from bench.performance.findings import Findings
from bench.performance.load import Load, serve
from bench.performance.plan import QUICK, Plan
from bench.performance.report import report
from bench.performance.sample import Sample, Watch
from loadgen.engines import Server


def measure(plan: Plan) -> Findings:
    """Carry the plan out."""
    found = Findings(plan)
    with tempfile.TemporaryDirectory(prefix="loadgen-bench-") as name:
        clients = make_clients(Path(name), plan, found.notes)
        found.clients = [client.name for client in clients]
        server = serve(plan.step_ms)
        try:
            for number in range(plan.rounds):
                for load in plan.loads:
                    take_turns(server, clients, load, number, found.samples)
            if plan.memory is not None:
                found.memory = one_run(server, clients[0], plan.memory, 0)
        finally:
            server.stop()
    if plan.repeats:
        measure_startup(found)
    return found


def make_clients(folder: Path, plan: Plan, notes: list[str]) -> list[Client]:
    """The clients that can run here; `notes` get the reason where one cannot."""
    clients: list[Client] = [Loadgen(folder)]
    if plan.ways:
        clients += [Loadgen(folder, records=True), Loadgen(folder, workers=2)]
    clients.append(Plain())
    try:
        clients += [Limit(folder), Limit(folder, same_calls=True)]
    except RuntimeError as reason:
        notes.append(f"The loops in C were left out: {reason}.")
    return clients


def take_turns(
    server: Server, clients: Sequence[Client], load: Load, number: int, samples: list[Sample]
) -> None:
    """One run of each client; in every round another one begins."""
    first = number % len(clients)
    for client in [*clients[first:], *clients[:first]]:
        samples.append(one_run(server, client, load, number))


def one_run(server: Server, client: Client, load: Load, number: int) -> Sample:
    """Run one client, and watch."""
    print(f"round {number + 1}, {load}: {client.name}", file=sys.stderr, flush=True)
    watch = Watch(server)
    told = client.run(server, load)
    return Sample.of(client.name, load, number, told, watch.end())


def measure_startup(found: Findings) -> None:
    """Time what a user waits for."""
    plan, seconds = found.plan, found.startup_s
    print("start-up", file=sys.stderr, flush=True)
    load = ("--engine", "sim", "--rate", "1000")
    seconds[f"first request of `loadgen run {' '.join(load)}`"] = startup.first_send_s(*load)
    if plan.many:
        seconds[f"first request of the same with {plan.many:,} prompts of 128 tokens"] = (
            startup.first_send_s(
                *load, "--num-prompts", str(plan.many), "--random-input-len", "128"
            )
        )
    seconds |= startup.commands_s(plan.repeats)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them to a file where one is named."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.cost", description="What the client costs."
    )
    parser.add_argument(
        "--rounds", type=int, help=f"how often the clients take turns ({Plan().rounds})"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of short loads: shows that it works, no more",
    )
    parser.add_argument(
        "--load",
        choices=[load.name for load in Plan().loads],
        help="only this load, by one process of loadgen, without memory and start-up",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="also write the tables to this file"
    )
    flags = parser.parse_args(argv)
    plan = QUICK if flags.quick else Plan()
    if flags.rounds is not None:
        plan = dataclasses.replace(plan, rounds=max(1, flags.rounds))
    if flags.load is not None:
        plan = plan.only(flags.load)
    text = report(measure(plan))
    print(text)
    if flags.output:
        flags.output.write_text(text)


if __name__ == "__main__":
    main()
