"""What the kernel's receive stamps are worth: `python -m bench.performance.stamps [--quick]
[--rounds N]`.

`stamps.c`, a client without any of loadgen's code, reads streams of a metronome, which knows when
it wrote each token. It reads them with stamps and without, in turn. The tables show by how much its
own time and the kernel's stamp of each token are after the write, and what an event costs with
stamps and without. Nothing here passes or fails.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import numpy as np
import orjson
from numpy.typing import NDArray

from bench.performance.clients import call, compiled
from bench.performance.load import STEP_MS, Load
from bench.table import figure, spread, table
from loadgen.testing.process import Process, started
from loadgen.testing.truth import Int64s, Truth
from loadgen.util import machine
from loadgen.util.number_format import plural

STAMPS_C = Path(__file__).with_name("stamps.c")
PERCENTILES = (50, 99, 99.9)
ROUNDS = 3

# As stamps.c writes it.
EVENT = np.dtype(
    [
        ("request", "i4"),
        ("token", "i4"),
        ("read_ns", "i8"),
        ("stamp_ns", "i8"),
        ("behind", "i4"),
        ("left", "i4"),
    ],
    align=True,
)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """A load, and for how long the client is busy with each event, us."""

    load: Load
    burn_us: int = 0

    def __str__(self) -> str:
        burning = f", {self.burn_us} us of work per event" if self.burn_us else ""
        return f"{self.load.rate:,} req/s x {self.load.tokens} tokens{burning}"


LIGHT = Load("light", rate=200, count=2_000, tokens=100)
HEAVY = Load("heavy", rate=500, count=4_000, tokens=100)
CASES = tuple(Case(load, burn_us) for load in (LIGHT, HEAVY) for burn_us in (0, 10))
QUICK = tuple(replace(case, load=replace(case.load, count=40, tokens=10)) for case in CASES)


@dataclass(frozen=True)
class Lateness:
    """By how much the times of tokens are after their writes.

    Attributes:
        user_us: The times at which the client read them, less those of the writes, us; shape
            (tokens,).
        kernel_us: The same of the kernel's stamps, of the tokens that ended a read which emptied
            the socket: their stamps are their own; shape (those tokens,).
        together: How many tokens were read together with a later one.
        left: How many were read by a read that did not empty the socket.
        unstamped: How many have no stamp.
    """

    user_us: Floats
    kernel_us: Floats
    together: int
    left: int
    unstamped: int

    @classmethod
    def of(cls, events: NDArray[np.void], truth: Truth) -> Self:
        """Compare what the client logged with what the metronome wrote."""
        write_ns = written(events, truth)
        stamped, own = events["stamp_ns"] > 0, (events["behind"] == 0) & (events["left"] == 0)
        exact = stamped & own
        return cls(
            user_us=(events["read_ns"] - write_ns) / 1e3,
            kernel_us=(events["stamp_ns"] - write_ns)[exact] / 1e3,
            together=int(np.count_nonzero(events["behind"])),
            left=int(np.count_nonzero(events["left"])),
            unstamped=int(np.count_nonzero(~stamped)),
        )

    @classmethod
    def joined(cls, parts: "Sequence[Lateness]") -> "Lateness":
        """Put several runs together."""
        return cls(
            np.concatenate([part.user_us for part in parts]),
            np.concatenate([part.kernel_us for part in parts]),
            *(
                sum(getattr(part, name) for part in parts)
                for name in ("together", "left", "unstamped")
            ),
        )


@dataclass
class Findings:
    """What was found of one case, round by round.

    Attributes:
        lateness: Of each run with stamps.
        with_us, without_us: CPU time per event with stamps and without, us.
        busy: CPU time by wall time of each run with stamps.
        held_back: Writes that the metronome could not make at once, since the client did not read.
    """

    lateness: list[Lateness] = field(default_factory=list)
    with_us: list[float] = field(default_factory=list)
    without_us: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    held_back: int = 0


def written(events: NDArray[np.void], truth: Truth) -> Int64s:
    """Return when the metronome wrote each token that the client logged, ns; shape (tokens,)."""
    number = truth.number
    starts: Int64s = np.zeros(int(number.max()) + 1, dtype=np.int64)
    starts[number] = truth.starts[:-1]
    found: Int64s = truth.write_ns[starts[events["request"]] + events["token"]]
    return found


class Client:
    """`stamps.c`, compiled here.

    Args:
        folder: Where the program and its log go.

    Raises:
        RuntimeError: There is no compiler, or it refuses.
    """

    def __init__(self, folder: Path) -> None:
        self._program, self._log = compiled(STAMPS_C, folder), folder / "events"

    def run(self, url: str, case: Case, *, stamped: bool) -> tuple[NDArray[np.void], float, float]:
        """Carry a load out; return its log, its CPU time, s, and that by wall time.

        Raises:
            RuntimeError: The client failed, or lacks tokens.
        """
        load = case.load
        sizes = [
            urlsplit(url).port,
            load.rate,
            load.count,
            load.tokens,
            load.connections,
            case.burn_us,
            int(stamped),
        ]
        told = orjson.loads(call([self._program, *map(str, sizes), str(self._log)]))
        if told["events"] != load.count * load.tokens:
            raise RuntimeError(
                f"the client received {told['events']} of {load.count * load.tokens} tokens "
                f"({case})"
            )
        return np.fromfile(self._log, dtype=EVENT), told["cpu_s"], told["cpu_s"] / told["wall_s"]


def measure(cases: Sequence[Case], rounds: int) -> dict[Case, Findings]:
    """Have the client read every load with stamps and without, so many times."""
    found = {case: Findings() for case in cases}
    pace = ("--first-ms", f"{STEP_MS:g}", "--gap-ms", f"{STEP_MS:g}")
    with tempfile.TemporaryDirectory(prefix="loadgen-stamps-") as name:
        client = Client(Path(name))
        with started("loadgen.testing.metronome", *pace) as server:
            for number in range(rounds):
                for case in cases:
                    for stamped in (False, True) if number % 2 else (True, False):
                        how = "with stamps" if stamped else "without"
                        print(f"round {number + 1}, {case}: {how}", file=sys.stderr, flush=True)
                        _run(client, server, case, found[case], stamped=stamped)
    return found


def _run(client: Client, server: Process, case: Case, found: Findings, *, stamped: bool) -> None:
    Truth.forget(server.url)
    events, cpu_s, busy = client.run(server.url, case, stamped=stamped)
    us_per_event = cpu_s / len(events) * 1e6
    if not stamped:
        found.without_us.append(us_per_event)
        return
    truth = Truth.fetch(server.url)
    found.with_us.append(us_per_event)
    found.busy.append(busy)
    found.lateness.append(Lateness.of(events, truth))
    found.held_back += truth.held_back


def percentiles(values: Floats) -> str:
    """Write p50, p99 and p99.9."""
    return (
        " / ".join(map(figure, np.percentile(values, PERCENTILES).tolist()))
        if len(values)
        else "n/a"
    )


def percent(part: int, whole: int) -> str:
    """Write a share in percent."""
    return figure(100 * part / whole)


def report(found: dict[Case, Findings]) -> str:
    """Write both tables."""
    late, costs, notes = [], [], []
    for case, findings in found.items():
        every = Lateness.joined(findings.lateness)
        count = len(every.user_us)
        shares = [percent(part, count) for part in (every.together, every.left, every.unstamped)]
        late.append([str(case), percentiles(every.user_us), percentiles(every.kernel_us), *shares])
        ratios = [a / b for a, b in zip(findings.with_us, findings.without_us, strict=True)]
        busy = spread([100 * share for share in findings.busy])
        costs.append(
            [str(case), *map(spread, (findings.with_us, findings.without_us, ratios)), busy]
        )
        if findings.held_back:
            notes.append(
                f"{case}: the client read so late that the metronome had to wait "
                f"{findings.held_back} times."
            )
    about = machine.describe()
    rounds = max(len(findings.lateness) for findings in found.values())
    return "\n".join(
        [
            "# What the kernel's receive stamps are worth",
            "",
            f"{time.strftime('%Y-%m-%d %H:%M %Z')}; {about['cpu']}, {about['usable_cores']} cores "
            f"shared with the server; {about['system']}. A client in C, {plural(rounds, 'run')} "
            f"each with stamps and without, in turn; a token every {STEP_MS:g} ms for each stream.",
            "",
            *(f"{note}\n" for note in notes),
            "From the server's write to the stamp, us: p50 / p99 / p99.9 of all runs together. The "
            "user stamp is when the client read the token. The kernel's stamp is of tokens that "
            "ended a read which emptied the socket. The last columns show the tokens for which "
            "that does not hold.",
            "",
            table(
                [
                    "load",
                    "user stamp",
                    "kernel stamp",
                    "read with a later one, %",
                    "bytes left, %",
                    "no stamp, %",
                ],
                late,
            ),
            "CPU time per event of the client, us: the median of the runs, with the least and the "
            "most.",
            "",
            table(["load", "with stamps", "without", "ratio", "core busy, %"], costs),
        ]
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.stamps",
        description="What the kernel's receive stamps are worth.",
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"how often each load is sent ({ROUNDS})"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of short loads: shows that it works, no more",
    )
    flags = parser.parse_args(argv)
    cases, rounds = (QUICK, 1) if flags.quick else (CASES, max(1, flags.rounds))
    machine.raise_open_files_limit()
    print(report(measure(cases, rounds)))


if __name__ == "__main__":
    main()
