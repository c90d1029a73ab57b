"""How often an ordinary run is VALID: `python -m bench.performance.ordinary [--quick] [--loadgen
COMMAND]`.

The runs are those of a user's first hours: the commands of the manual, each data set, open and
closed loops, and also overload, failures and bursts. They run one after the other, with this
installation or with another one (`--loadgen "/path/to/python -m loadgen"`). A table shows each
verdict and what failed. The exit code is 0 if the aim is met: of the ordinary runs at least three
quarters are VALID, and each SUSPECT one names a figure, its bound and a cause. `--json` saves the
runs, and `--against` shows saved ones beside these.
"""

import argparse
import csv
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import orjson

from bench.performance.ordinary_commands import COMMANDS, GROUPS, ORDINARY, Command
from bench.table import figure, table
from loadgen.config import slo
from loadgen.testing.process import started
from loadgen.util import machine
from tests.helpers.command_line import LOADGEN, environment

MIN_VALID = 0.75  # of the ordinary runs
MAX_S = 300.0  # of one run
QUICK_REQUESTS = 20

COLUMNS = ("load average", "other CPU, cores", "client at most, ms", "verdict", "what failed")
IN_QUICK = (
    "jsonl",
    "csv",
    "closed loop of 8",
    "300 at once",
    "100 % HTTP 500",
    "trace of 2 requests",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that failed and counts.

    Attributes:
        check: Its name.
        value: What was measured, with its unit.
        limit: What is allowed.
        advice: Why it failed, or what helps.
    """

    check: str
    value: str
    limit: str
    advice: str

    @property
    def is_complete(self) -> bool:
        """Whether it names a figure, a bound and a cause."""
        return bool(
            re.search(r"\d", self.value) and re.search(r"\d", self.limit) and self.advice.strip()
        )


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one command.

    Attributes:
        name, group: Those of the command.
        load_average: Of the machine in the minute before.
        verdict: VALID, SUSPECT or INVALID; empty: it has not run.
        client_ms: By how much the client can have moved a printed latency at most, ms; None: the
            result does not say.
        findings: What failed.
        others_cores: Cores that processes outside the run kept busy meanwhile; None: it has not
            run.
        note: Why it has not run.
    """

    name: str
    group: str
    load_average: float
    verdict: str = ""
    client_ms: float | None = None
    findings: tuple[Finding, ...] = ()
    others_cores: float | None = None
    note: str = ""

    @classmethod
    def of(cls, name: str, group: str, load_average: float, own: Mapping[str, Any]) -> Self:
        """Read what `loadgen` says of itself in a result."""
        failed = [check for check in own["checks"] if check["ok"] is False and check["counts"]]
        findings = (
            Finding(check["name"], check["value"], check["limit"], check["advice"])
            for check in failed
        )
        return cls(name, group, load_average, own["verdict"], max_client_ms(own), tuple(findings))

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Self:
        """Read a run that `to_json` wrote."""
        return cls(
            **{**saved, "findings": tuple(Finding(**finding) for finding in saved["findings"])}
        )

    @property
    def is_explained(self) -> bool:
        """Whether each of its findings is complete, and there is one."""
        return bool(self.findings) and all(finding.is_complete for finding in self.findings)

    @property
    def cells(self) -> list[str]:
        """What a table shows of it, as COLUMNS."""
        failed = "; ".join(f"{finding.check}: {finding.value}" for finding in self.findings)
        numbers = map(figure, (self.load_average, self.others_cores, self.client_ms))
        return [*numbers, self.verdict or "not run", text(failed or self.note) or "-"]


class Watch:
    """Watches the machine while a command runs; it begins when it is made."""

    def __init__(self) -> None:
        self._children_s, self._busy = _children_s(), machine.CpuTimes.now()

    def others_cores(self) -> float:
        """Return how many cores processes outside the command have kept busy."""
        busy, before = machine.CpuTimes.now(), self._busy
        ours_s = _children_s() - self._children_s + busy.own_s - before.own_s
        return max(0.0, (busy.used_s - before.used_s - ours_s) / (busy.at_s - before.at_s))


def _children_s() -> float:
    """Return the CPU time of all processes that have been waited for, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def max_client_ms(own: Mapping[str, Any]) -> float | None:
    """Return the greatest bound on what the client added to a latency on the clock of the run,
    ms; None: unknown.
    """
    errors = own.get("client_error_ms")
    if not errors:
        return None
    named = (slo.distribution(metric, own["latency_from"]) for metric in slo.LATENCY_METRICS)
    return max(
        (error for name in named for error in errors[name].values() if error is not None),
        default=None,
    )


def text(words: str) -> str:
    """Return words as a cell of a table."""
    return words.replace("|", "\\|").replace("\n", " ")


def shortened(commands: Sequence[Command]) -> list[Command]:
    """Return a few of the commands, each once and with few requests."""
    few = [command for command in commands if command.name in IN_QUICK]
    return [
        replace(
            each, words=re.sub(r"(--num-prompts) \d+", rf"\1 {QUICK_REQUESTS}", each.words), times=1
        )
        for each in few
    ]


def write_files(folder: Path) -> None:
    """Write the prompts and the trace that commands name into the folder in which they run."""
    prompts = [
        f"Question {number}: name {number % 7 + 2} colours, 日本語 🙂." for number in range(60)
    ]
    rows = [{"prompt": prompt, "output_tokens": 64} for prompt in prompts]
    (folder / "prompts.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with (folder / "prompts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "output_tokens"])
        writer.writerows([f"{prompt}\nIn two lines.", 64] for prompt in prompts)
    arrivals = (
        {
            "timestamp": 1200 * number,
            "input_length": 700,
            "output_length": 20,
            "hash_ids": [1, number],
        }
        for number in (2, 3)
    )
    (folder / "trace.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in arrivals))


def run_all(commands: Sequence[Command], loadgen: Sequence[str], llama: str | None) -> list[Run]:
    """Run all commands in turn.

    Args:
        commands: What to run.
        loadgen: What starts loadgen.
        llama: The URL of a server of llama.cpp; None: commands that need one are not run.
    """
    runs = []
    with (
        tempfile.TemporaryDirectory(prefix="loadgen-ordinary-") as name,
        started("loadgen.testing.faulty", "--plan", "status:429=0.4") as faulty,
    ):
        folder, urls = Path(name), {"faulty": faulty.url} | ({"llama": llama} if llama else {})
        write_files(folder)
        for command in commands:
            for number in range(command.times):
                title = (
                    f"{command.name} ({number + 1} of {command.times})"
                    if command.times > 1
                    else command.name
                )
                print(title, file=sys.stderr, flush=True)
                runs.append(run_one(command, title, loadgen, urls, folder))
    return runs


def run_one(
    command: Command, title: str, loadgen: Sequence[str], urls: Mapping[str, str], folder: Path
) -> Run:
    """Run a command in a folder, which also gets its journals and caches."""
    run = Run(title, command.group, os.getloadavg()[0])
    try:
        words = shlex.split(command.words.format(**urls))
    except KeyError as name:
        return replace(run, note=f"no --{name.args[0]}")
    if not {"--base-url", "--engine"}.intersection(words):
        words = ["--engine", "sim", *words]
    given = [*shlex.split(command.prefix), *loadgen, "run", *words, "--json", "--quiet"]
    own_folders = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")}
    watch, result, errors = Watch(), folder / "result.json", folder / "errors.txt"
    try:
        with (
            result.open("wb") as out,
            errors.open("wb") as err,
        ):  # not pipes, which a process left over would keep open
            env = environment() | own_folders
            subprocess.run(
                given, cwd=folder, env=env, stdout=out, stderr=err, timeout=MAX_S, check=False
            )
        own = orjson.loads(result.read_bytes())["loadgen"]
    except (OSError, subprocess.TimeoutExpired) as error:
        return replace(run, note=str(error))
    except orjson.JSONDecodeError:
        return replace(
            run, note=(errors.read_text(errors="replace").strip().splitlines() or ["no result"])[-1]
        )
    return replace(
        Run.of(title, command.group, run.load_average, own), others_cores=watch.others_cores()
    )


def ran(runs: Sequence[Run], group: str) -> list[Run]:
    """Return the runs of a group that have run."""
    return [run for run in runs if run.group == group and run.verdict]


def counts(runs: Sequence[Run], group: str) -> str:
    """Write how many runs of a group have each verdict."""
    found = Counter(run.verdict for run in ran(runs, group))
    named = ", ".join(f"{found[verdict]} {verdict}" for verdict in ("VALID", "SUSPECT", "INVALID"))
    skipped = sum(run.group == group and not run.verdict for run in runs)
    return f"{named} of {found.total()}" + (f", {skipped} not run" if skipped else "")


def is_met(runs: Sequence[Run]) -> bool:
    """Return whether enough ordinary runs are VALID, and each SUSPECT one says why."""
    ordinary = ran(runs, ORDINARY)
    valid = sum(run.verdict == "VALID" for run in ordinary)
    explained = all(run.is_explained for run in ordinary if run.verdict == "SUSPECT")
    return bool(ordinary) and valid >= MIN_VALID * len(ordinary) and explained


def report(runs: Sequence[Run], before: Sequence[Run] | None = None) -> str:
    """Write the tables.

    Args:
        runs: What was run.
        before: Earlier runs of the same commands, to be shown beside them; None: there are none.
    """
    about = machine.describe()
    parts = [
        "# How often an ordinary run is VALID",
        "",
        f"{time.strftime('%Y-%m-%d %H:%M %Z')}; {about['cpu']}, {about['usable_cores']} cores; "
        f"{about['system']}. The load average is that of the minute before; other CPU is what "
        "processes outside the run used.",
        "",
    ]
    earlier = {run.name: run.cells for run in before or ()}
    sides = ("before: ", "after: ") if earlier else ("",)
    head = ["run", *(f"{side}{column}" for side in sides for column in COLUMNS)]
    for group in GROUPS:
        rows = [
            [
                run.name,
                *(earlier.get(run.name, ["-"] * len(COLUMNS)) if earlier else ()),
                *run.cells,
            ]
            for run in runs
            if run.group == group
        ]
        parts += [f"## {group.capitalize()}", "", table(head, rows)]
        if earlier:
            parts += [
                f"Before: {counts(before or (), group)}.",
                "",
                f"After: {counts(runs, group)}.",
                "",
            ]
        else:
            parts += [f"{counts(runs, group)}.", ""]
    reasons = [
        f"- {run.name}: {finding.check}: {finding.value}, limit {finding.limit}: {finding.advice}"
        for run in ran(runs, ORDINARY)
        for finding in run.findings
    ]
    parts += ["## Why ordinary runs are not VALID", "", *(reasons or ["All are VALID."]), ""]
    aim = (
        f"at least {MIN_VALID:.0%} of the ordinary runs are VALID, each SUSPECT one names "
        "figure, bound and cause"
    )
    return "\n".join([*parts, f"Aim: {aim}: {'met' if is_met(runs) else 'MISSED'}."])


def to_json(runs: Sequence[Run], loadgen: Sequence[str]) -> bytes:
    """Write the runs as JSON."""
    saved = {
        "loadgen": shlex.join(loadgen),
        "machine": machine.describe(),
        "runs": [asdict(run) for run in runs],
    }
    return orjson.dumps(saved, option=orjson.OPT_INDENT_2)


def from_json(data: bytes) -> list[Run]:
    """Read the runs that `to_json` wrote."""
    return [Run.from_json(saved) for saved in orjson.loads(data)["runs"]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run all, print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.ordinary",
        description="How often an ordinary run is VALID.",
    )
    parser.add_argument(
        "--loadgen",
        metavar="COMMAND",
        type=shlex.split,
        default=LOADGEN,
        help="what starts loadgen",
    )
    parser.add_argument(
        "--llama", metavar="URL", help="a server of llama.cpp; without it its runs are left out"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also save the runs")
    parser.add_argument(
        "--against", metavar="FILE", type=Path, help="show these saved runs beside the new ones"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few short runs: shows that it works, no more"
    )
    flags = parser.parse_args(argv)
    before = from_json(flags.against.read_bytes()) if flags.against else None
    program, *rest = flags.loadgen
    loadgen = [str(Path(program).absolute()) if os.sep in program else program, *rest]
    runs = run_all(shortened(COMMANDS) if flags.quick else COMMANDS, loadgen, flags.llama)
    if flags.json:
        flags.json.write_bytes(to_json(runs, loadgen))
    print(report(runs, before))
    return 0 if is_met(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
