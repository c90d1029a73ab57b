"""Imports published results into a store, each as a trial of its arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadgen.errors import BadInput, setting
from loadgen.lab.audit.published import Published
from loadgen.lab.importer.entries import Entry, Source, Unplaced
from loadgen.lab.importer.placement import Arms, find_workload, load_difference
from loadgen.lab.importer.restatement import as_printed, requests_sent, restated
from loadgen.lab.study.execute.facts import IMPORTED
from loadgen.lab.study.execute.store import Store, kept, locked
from loadgen.lab.study.execute.trial import (
    INVALID,
    Failure,
    Origin,
    Trial,
    TrialRequest,
    WorkloadRun,
    now,
)
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.spec.study import Study
from loadgen.lab.study.spec.study_file import StudyFile
from loadgen.util.number_format import fixed, plural
from loadgen.version import __version__

ENDED_EARLY = 0.99  # share of the tokens asked for below which answers ended early
CRASH = "crash"  # pages do not say the class of a failure
TOTAL = "total_token_throughput"
Numbers = frozenset[tuple[str, float]]  # as they were published


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of an entry in the study.

    Attributes:
        arm: The arm in its step.
        config: Identity of what was served, which may be another arm's.
        workload: Name of the workload; empty if there is no result.
        notes: Remarks for the user.
    """

    arm: PlannedArm
    config: str
    workload: str
    notes: list[str]


@dataclass
class ImportSummary:
    """The outcome of importing a file.

    Attributes:
        lines: The outcome of each result.
        imported: The results and failed commands that were added, as trials.
        again: Number of those that had been imported before.
        unplaced: Number of those without a matching arm or workload.
    """

    lines: list[str] = field(default_factory=list)
    imported: list[Trial] = field(default_factory=list)
    again: int = 0
    unplaced: int = 0


def facts(file: StudyFile) -> dict[str, Any]:
    """Return the facts of a new store of published results; they name no machine."""
    return {
        "study": file.study.as_json(),
        "text": file.text,
        "source": IMPORTED,
        "loadgen": __version__,
        "host": None,
        "builds": {name: engine.version for name, engine in file.study.engines.items()},
        "data": {},
    }


@contextmanager
def store(folder: Path, file: StudyFile) -> Iterator[Store]:
    """Lock and open the store of a study's published results; create it if there is none.

    A new store in which nothing is kept is removed again.

    Raises:
        BadInput: It belongs to another study, or cannot be written.
    """
    current = facts(file)
    with locked(folder):
        if not Store.exists(folder):
            try:
                with Store.create(folder, current) as created:
                    yield created
            finally:
                Store.remove_empty(folder)
            return
        with Store.open(folder) as existing:
            if existing.facts["source"] != IMPORTED:
                raise BadInput(
                    str(folder),
                    "is the store of a study that ran here",
                    f"name another folder with {setting.store}",
                )
            if existing.facts["study"] != current["study"]:
                raise BadInput(
                    str(folder),
                    "is the store of another study, or the study has changed",
                    f"name another folder with {setting.store}",
                )
            yield existing


class Importer:
    """Adds the results of files to a store.

    Args:
        store: The store, locked by the caller.
        arms: The arms and workloads of its study.
        study: The study.
        as_: Arm and, if given, workload of results that have no command or that were named by
            number.
    """

    def __init__(
        self,
        store: Store,
        arms: Arms,
        study: Study,
        as_: tuple[PlannedArm, str | None] | None = None,
    ) -> None:
        self._store = store
        self._arms = arms
        self._study = study
        self._as = as_
        self._runs: dict[Numbers, Origin] = {}
        self._filled: dict[tuple[str, str], Origin] = {}  # what has a result already, by `_keys`
        self._failed: set[tuple[str, str]] = set()  # identities, and causes
        self._servers: dict[str, int] = {}  # by identity
        self._other_loads: set[str] = set()  # workloads that the results have differently
        self._blocks = 0  # each trial gets its own: pages do not say what was measured side by side
        for trial in store.trials().values():
            self._note(trial)

    def add(self, source: Source) -> ImportSummary:
        """Import a file, or one result of it."""
        summary = ImportSummary()
        for entry in source.entries:
            try:
                self._import(entry, source, summary)
            except Unplaced as error:
                remedy = "add it to the study"
                if entry.result is not None:
                    remedy = f"say it with --as STAGE/ARM:WORKLOAD and {source.path}#{entry.number}"
                summary.lines.append(f"{entry.place}: not placed: {error}; {remedy}")
                summary.unplaced += 1
        if summary.again:
            kind = (
                "results"
                if all(entry.result for entry in source.entries)
                else "results and failed commands"
            )
            summary.lines.append(
                f"{source.path}: {summary.again} of {len(source.entries)} {kind} were imported "
                "before"
            )
        return summary

    def _import(self, entry: Entry, source: Source, summary: ImportSummary) -> None:
        """Import an entry if it is new.

        Raises:
            Unplaced: No arm or workload matches it.
        """
        origin = None
        if entry.result:
            origin = self._runs.get(frozenset(as_printed(entry.result).items()))
        if origin is not None:
            same = (origin.sha256, origin.result) == (source.sha256, entry.number)
            if same or origin.place == str(entry.place):  # a page may grow, and a file may be moved
                summary.again += 1
            else:
                summary.lines.append(
                    f"{entry.place}: left out: it has the same numbers as {origin.place}"
                )
            return
        placed = self._placed(entry, source)
        if entry.result is not None:
            for key in _keys(placed.arm, placed.config, placed.workload) & self._filled.keys():
                problem = (
                    f"{placed.arm.path} has a result on {placed.workload}, "
                    f"{self._filled[key].place}"
                )
                raise Unplaced(f"{problem}, and published results are not averaged")
            why = load_difference(entry.result, self._arms.loads[placed.workload])
            load_note = (
                [f"{placed.workload} is another load than the study's: {why}"] if why else []
            )
            trial = self._add_run(placed, entry.result, entry, source, [*placed.notes, *load_note])
            if why and placed.workload not in self._other_loads:  # printed once for a workload
                self._other_loads.add(placed.workload)
                remedy = (
                    "set dataset_rule, or compat, to the page's tool before you compare them "
                    "with runs of the study"
                )
                summary.lines.append(f"{entry.place}: {load_note[0]}; {remedy}")
        elif (placed.config, entry.cause) in self._failed:
            summary.again += 1
            return
        else:
            trial = self._add_trial(placed, failure=Failure(CRASH, entry.cause, transient=False))
        self._note(trial)
        summary.imported.append(trial)
        summary.lines += [f"{entry.place}: {note}" for note in placed.notes]
        summary.lines.append(f"{entry.place}: {placed.arm.path}, {_shown(trial)}")

    def _placed(self, entry: Entry, source: Source) -> Placement:
        """Find arm and workload of an entry.

        Raises:
            Unplaced: Nothing matches it.
        """
        workload = None
        notes = []
        if self._as is not None and (source.is_part or entry.command is None):
            arm, workload = self._as
        elif entry.command is None:
            raise Unplaced("it has no serving command")
        else:
            # One model that is unknown among known ones is misspelled; a file of unknown ones is
            # about other models.
            similar = any(
                self._arms.names_model(other.command) for other in source.entries if other.command
            )
            arm, note = self._arms.started_by(entry.command, entry.stage, similar_models=similar)
            notes += [note] if note else []
        config = arm.identity
        if entry.baseline and config != self._arms.baseline.identity:
            notes.append(
                f"the page shows it as the baseline's, but its command is that of {arm.path}"
            )
            arm = self._arms.baseline
        if workload is None and entry.result is not None:
            workload = find_workload(
                self._arms.loads, entry.result, entry.sent, f"{entry.title} {entry.stage}"
            )
            ok = entry.result.get("ok")
            requests = self._arms.loads[workload].num_prompts or 0
            if ok is not None and requests_sent(entry.result) is None and ok.value < requests:
                notes.append(
                    f"{ok.value:g} of the {requests} requests of {workload}; the others count as "
                    "failed"
                )
        if entry.result is not None and workload is not None:
            notes += self._early_end(entry.result, workload)
        return Placement(arm, config, workload or "", notes)

    def _early_end(self, result: Published, workload: str) -> list[str]:
        load = self._arms.loads[workload]
        tokens = result.per_request()
        length = load.random_output_len
        if load.dataset_name != "random" or not isinstance(length, int) or tokens is None:
            return []
        if tokens[1] >= ENDED_EARLY * length:
            return []
        ignored = f", but {workload} ignores EOS in this study" if load.implied().ignore_eos else ""
        return [f"answers ended early, after {tokens[1]:.1f} of {length} tokens{ignored}"]

    def _add_run(
        self, placed: Placement, result: Published, entry: Entry, source: Source, notes: list[str]
    ) -> Trial:
        summary = restated(
            result, self._arms.loads[placed.workload].num_prompts or 0, source.untrue
        )
        judged = summary["loadgen"]
        servers = judged["servers"]
        expected = self._servers.get(
            placed.config, servers if servers == placed.arm.spec.replicas else 1
        )
        if servers != expected:
            raise Unplaced(
                f"it has {plural(servers, 'server')}, and {placed.arm.path} has {expected}"
            )
        judged["provenance"] = {
            "file": source.path,
            "sha256": source.sha256,
            "result": entry.number,
            "place": str(entry.place),
            "command": entry.command.text if entry.command else None,
            "hardware": source.hardware,
            "notes": notes,
        }
        failure = None
        if judged["verdict"] == "INVALID":
            failure = Failure(INVALID, "; ".join(judged["reasons"]), transient=False)
        return self._add_trial(placed, summary=summary, data=result.data, failure=failure)

    def _add_trial(
        self,
        placed: Placement,
        *,
        summary: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        failure: Failure | None = None,
    ) -> Trial:
        arm = placed.arm
        request = TrialRequest(arm.step, self._blocks, arm.name)
        began = now()
        number, folder = self._store.begin(request, placed.config, began)
        runs = {}
        if summary is not None:
            path = folder / f"{placed.workload}.json"
            data = data or {}
            judged = data.get("loadgen")
            if not isinstance(judged, dict):
                judged = {}
            whole = {**data, **summary, "loadgen": {**judged, **summary["loadgen"]}}
            with kept(self._store.folder):
                path.write_bytes(orjson.dumps(whole, option=orjson.OPT_INDENT_2))
            runs[placed.workload] = WorkloadRun(summary, str(path.relative_to(self._store.folder)))
        trial = Trial(
            request=request,
            config=placed.config,
            build=self._study.engines[arm.spec.engine].version,
            began=began,
            seconds=(summary or {}).get("duration") or 0.0,
            failure=failure,
            runs=runs,
            folder=str(folder.relative_to(self._store.folder)),
        )
        self._store.end(number, trial)
        return trial

    def _note(self, trial: Trial) -> None:
        self._blocks = max(self._blocks, trial.request.block + 1)
        if trial.failure is not None:
            self._failed.add((trial.config, trial.failure.cause))
        arm, _ = self._arms.named(f"{trial.request.step}/{trial.request.arm}")
        for workload, ran in trial.runs.items():
            if (origin := ran.findings.provenance) is not None:
                self._runs[frozenset(ran.findings.published.items())] = origin
                if trial.failure is None:
                    self._filled |= dict.fromkeys(_keys(arm, trial.config, workload), origin)
            self._servers[trial.config] = ran.findings.servers


def _keys(arm: PlannedArm, config: str, workload: str) -> set[tuple[str, str]]:
    """Return what may have one result on a workload: the configuration, and the arm if another's
    result is its.
    """
    if config == arm.identity:
        return {(config, workload)}
    return {(config, workload), (arm.path, workload)}


def _shown(trial: Trial) -> str:
    if trial.failure is not None:
        return str(trial.failure)
    ((workload, ran),) = trial.runs.items()
    total, printed = (numbers.get(TOTAL) for numbers in (ran.summary, ran.findings.published))
    if total is None:
        return workload
    return f"{workload}: {fixed(total, 2, 'tok/s')}" + (
        f" (printed: {fixed(printed, 2)})" if printed not in (None, total) else ""
    )
