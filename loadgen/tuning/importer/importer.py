"""Importing: results of files into a store, each as a trial of the arm that it is of."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadgen.analysis.audit.published import Published
from loadgen.errors import BadInput
from loadgen.tuning.execute.facts import IMPORTED
from loadgen.tuning.execute.store import Store, held, kept
from loadgen.tuning.execute.trial import INVALID, Failure, Ran, Trial, Wanted, now
from loadgen.tuning.importer.arms import Arms, Spot, Unplaced
from loadgen.tuning.importer.entries import Entry, Source
from loadgen.tuning.importer.restated_result import as_printed, restated
from loadgen.tuning.spec.study import Study
from loadgen.tuning.spec.study_file import StudyFile
from loadgen.version import __version__

CRASH = "crash"  # all that a page tells of the class of a failure
TOTAL = "total_token_throughput"
Numbers = frozenset[tuple[str, float]]  # as they were published


@dataclass(frozen=True, slots=True)
class Placed:
    """What an entry is of.

    Attributes:
        spot: The arm and the step.
        config: Identity of what was served, which may be another arm's.
        workload: Its name; empty for what has no result.
        note: What there is to say of that; empty: nothing.
    """

    spot: Spot
    config: str
    workload: str
    note: str


@dataclass
class Told:
    """What became of a file.

    Attributes:
        lines: Of each result what became of it.
        imported: Results, and commands that came to nothing, that were added.
        again: Those that the file had brought before.
        left: Those that could not be placed.
    """

    lines: list[str] = field(default_factory=list)
    imported: int = 0
    again: int = 0
    left: int = 0


def facts(file: StudyFile) -> dict[str, Any]:
    """What a new store of published results says of itself: as that of a study that is run, without a machine."""
    return {
        "study": file.study.model_dump(mode="json", by_alias=True),
        "text": file.text,
        "source": IMPORTED,
        "loadgen": __version__,
        "host": None,
        "builds": {name: engine.version for name, engine in file.study.engines.items()},
        "data": {},
    }


@contextmanager
def store(folder: Path, file: StudyFile) -> Iterator[Store]:
    """The store of a study's published results, held; it is made if there is none.

    Raises:
        BadInput: It is another's, or cannot be written.
    """
    as_is = facts(file)
    with held(folder):
        if not Store.there(folder):
            with Store.create(folder, as_is) as made:
                yield made
            return
        with Store.open(folder) as found:
            if found.facts["source"] != IMPORTED:
                raise BadInput(str(folder), "is of a study that was run", "name another folder with --store")
            if found.facts["study"] != as_is["study"]:
                raise BadInput(
                    str(folder), "is of another study, or it has changed", "name another folder with --store"
                )
            yield found


class Importer:
    """Puts what files have into a store.

    Args:
        store: It is held by the caller.
        arms: Those of its study.
        study: Which.
        as_: The arm and the workload, if that is said, of results that no command places or that were named.
    """

    def __init__(self, store: Store, arms: Arms, study: Study, as_: tuple[Spot, str | None] | None = None) -> None:
        self._store, self._arms, self._study, self._as = store, arms, study, as_
        self._runs: dict[Numbers, dict[str, Any]] = {}  # to where they stand
        self._failed: set[tuple[str, str]] = set()  # identities, and causes
        self._servers: dict[str, int] = {}  # by identity
        self._blocks = 0  # each trial is one of its own: nobody says what was measured side by side
        for trial in store.trials().values():
            self._note(trial)

    def add(self, source: Source) -> Told:
        """Import a file, or one result of it.

        Args:
            source: It has been read.
        """
        told = Told()
        for entry in source.entries:
            try:
                self._import(entry, source, told)
            except Unplaced as error:
                remedy = "add it to the study"
                if entry.result is not None:
                    remedy = f"say it with --as STAGE/ARM:WORKLOAD and {source.path}#{entry.number}"
                told.lines.append(f"{entry.place}: not placed: {error}; {remedy}")
                told.left += 1
        if told.again:
            told.lines.append(f"{source.path}: {told.again} of {len(source.entries)} were imported before")
        return told

    def _import(self, entry: Entry, source: Source, told: Told) -> None:
        """Import what is new.

        Raises:
            Unplaced: Nothing says what it is of.
        """
        known = self._runs.get(_numbers(as_printed(entry.result))) if entry.result else None
        if known is not None:
            same = (known["sha256"], known["result"]) == (source.sha256, entry.number)
            if same or known["place"] == str(entry.place):  # a page may grow, and a file go elsewhere
                told.again += 1
            else:
                told.lines.append(f"{entry.place}: left out: every number is that of {known['place']}: one run")
            return
        placed = self._placed(entry, named=source.is_part)
        if entry.result is not None:
            trial = self._ran(placed, entry.result, entry, source)
        elif (placed.config, entry.cause) in self._failed:
            told.again += 1
            return
        else:
            trial = self._kept(placed, failure=Failure(CRASH, entry.cause, transient=False))
        self._note(trial)
        told.imported += 1
        if placed.note:
            told.lines.append(f"{entry.place}: {placed.note}")
        told.lines.append(f"{entry.place}: {placed.spot.name}, {_shown(trial)}")

    def _placed(self, entry: Entry, *, named: bool) -> Placed:
        """What an entry is of.

        Raises:
            Unplaced: Nothing says it.
        """
        workload, note = None, ""
        if self._as is not None and (named or entry.command is None):
            spot, workload = self._as
        elif entry.command is None:
            raise Unplaced("nothing says how its server was started")
        else:
            spot, note = self._arms.started_by(entry.command, entry.stage)
        config = spot.planned.identity
        if entry.baseline and config != self._arms.baseline.planned.identity:
            note = f"is shown as the baseline's, and its command is that of {spot.name}"
            spot = self._arms.baseline
        if workload is None and entry.result is not None:
            workload = self._arms.workload(entry.result, f"{entry.title} {entry.stage}")
        return Placed(spot, config, workload or "", note)

    def _ran(self, placed: Placed, result: Published, entry: Entry, source: Source) -> Trial:
        summary = restated(result, self._arms.asked(placed.workload), source.untrue)
        own, replicas = summary["loadgen"], placed.spot.planned.arm.replicas
        wanted = self._servers.get(placed.config, own["servers"] if own["servers"] == replicas else 1)
        if own["servers"] != wanted:
            raise Unplaced(f"its servers are {own['servers']}, and those of {placed.spot.name} are {wanted}")
        own["provenance"] = {
            "file": source.path,
            "sha256": source.sha256,
            "result": entry.number,
            "place": str(entry.place),
            "command": entry.command.text if entry.command else None,
        }
        invalid = Failure(INVALID, "; ".join(own["reasons"]), transient=False) if own["verdict"] == "INVALID" else None
        return self._kept(placed, summary=summary, data=result.data, failure=invalid)

    def _kept(
        self,
        placed: Placed,
        *,
        summary: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        failure: Failure | None = None,
    ) -> Trial:
        """Add a trial to the store."""
        arm = placed.spot.planned
        wanted = Wanted(placed.spot.step.name, self._blocks, arm.name)
        began = now()
        number, folder = self._store.begin(wanted, placed.config, began)
        runs = {}
        if summary is not None:
            path = folder / f"{placed.workload}.json"
            with kept(self._store.folder):
                path.write_bytes(orjson.dumps(_whole(data or {}, summary), option=orjson.OPT_INDENT_2))
            runs[placed.workload] = Ran(summary, str(path.relative_to(self._store.folder)))
        trial = Trial(
            wanted=wanted,
            config=placed.config,
            build=self._study.engines[arm.arm.engine].version,
            began=began,
            seconds=(summary or {}).get("duration") or 0.0,
            failure=failure,
            runs=runs,
            folder=str(folder.relative_to(self._store.folder)),
        )
        self._store.end(number, trial)
        return trial

    def _note(self, trial: Trial) -> None:
        """Know what is in the store."""
        self._blocks = max(self._blocks, trial.wanted.block + 1)
        if trial.failure is not None:
            self._failed.add((trial.config, trial.failure.cause))
        for ran in trial.runs.values():
            own = ran.summary["loadgen"]
            self._runs[_numbers(own["published"])] = own["provenance"]
            self._servers[trial.config] = own["servers"]


def _numbers(printed: Mapping[str, Any]) -> Numbers:
    return frozenset(printed.items())


def _whole(data: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """A result with all that its file had."""
    own = data.get("loadgen")
    return {**data, **summary, "loadgen": {**(own if isinstance(own, dict) else {}), **summary["loadgen"]}}


def _shown(trial: Trial) -> str:
    if trial.failure is not None:
        return f"{trial.failure.kind}: {trial.failure.cause}"
    ((workload, ran),) = trial.runs.items()
    total, printed = (told.get(TOTAL) for told in (ran.summary, ran.summary["loadgen"]["published"]))
    if total is None:
        return workload
    return f"{workload}: {total:.2f} tok/s" + (f" (printed: {printed:.2f})" if printed not in (None, total) else "")
