"""Study draft: the study of a published page as YAML, as far as the page shows it.

`loadgen import` places the results of the page in this study. Comments with CHECK name what only a
person can know.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.audit.command import NO_COMMAND
from loadgen.lab.audit.page import Page
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.study import PublishedStudy
from loadgen.lab.audit.workload import AnnouncedWorkload
from loadgen.lab.importer.drafted_arms import DraftedArms
from loadgen.lab.importer.entries import Entry, of_page
from loadgen.lab.importer.placement import MIN_REQUESTS, RATE_KEPT
from loadgen.lab.study.spec.study_text import given, name_of, yaml_line

VLLM_CLIENT = "vllm bench serve"
OTHER = "other configurations"  # of results that are in no stage
NUMBER = re.compile(r"^\d+\.\s*")
HEAD = """\
# The study of {page}, drafted by `loadgen import --make-study`. Lines with CHECK need a person:
# the page does not show enough. `loadgen tune plan` shows what this study would start;
# `loadgen import` with this file and the page places the published results.
"""


@dataclass
class _Stage:
    """A stage.

    Attributes:
        name: Its name.
        arms: Changes of the baseline, by the names of the arms.
        expect: The arm that was better than all before it; empty: none was.
        left_out: Commands that are no change of the baseline.
    """

    name: str
    arms: dict[str, dict[str, Any]] = field(default_factory=dict)
    expect: str = ""
    left_out: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the stage as YAML; only comments if it has no arm."""
        for command in self.left_out:
            yield f"  # CHECK: left out, since it lacks a flag of the baseline: {command}\n"
        if self.arms:
            yield f"  -{yaml_line('name', self.name, 2)[3:]}    from: baseline\n    choice:\n"
            yield from (yaml_line(name, change, 3) for name, change in self.arms.items())
        if self.expect:
            yield yaml_line("expect", self.expect, 2, "the best so far, or recommended")


def draft(path: str, text: str) -> str:
    """Return the study of a page.

    Args:
        path: The page's file.
        text: The page.

    Raises:
        BadInput: It has no result with a serving command.
    """
    page = Page(path, text)
    entries = [entry for entry in of_page(page) if entry.command]
    if not any(entry.result for entry in entries):
        problem = f"{path} has no result with a serving command"
        raise BadInput((), problem, "name a page")
    return "".join(_Draft(page, entries).lines())


class _Draft:
    def __init__(self, page: Page, entries: list[Entry]) -> None:
        self._page = page
        self._entries = entries
        self._study = PublishedStudy(page)
        staged = [entry for entry in entries if entry.stage and entry.result] or entries
        self._loads = DraftedLoads(self._study, entries)
        of_stages = Counter(self._loads.of[entry.number] for entry in staged if entry.result)
        self._deciding = of_stages.most_common(1)[0][0]
        first = next((entry for entry in entries if entry.baseline), staged[0])
        self._arms = DraftedArms(page, entries, first)

    def lines(self) -> Iterator[str]:
        """Yield the study as YAML."""
        title = self._page.sections[0].title if self._page.sections else ""
        stated, _ = self._page.titled("Hardware") or ("unknown", 0)
        devices = max(command.width for command in self._page.commands)
        hardware = {"name": stated.split("\n")[0].strip(" -*."), "devices": devices}
        yield HEAD.format(page=Path(self._page.name).name)
        yield yaml_line("name", name_of(Path(self._page.name).stem))
        yield "models:  # CHECK: variants of one model, by the names that the hub has\n"
        yield from (yaml_line(name, model, 1) for name, model in self._arms.models.items())
        yield yaml_line("hardware", hardware, check="the name that the driver has")
        yield "engines:  # CHECK: versions and hosts\n"
        yield from (yaml_line(name, base, 1) for name, base in self._arms.engines.items())
        yield "workloads:  # CHECK: data sets and lengths\n"
        yield from (yaml_line(name, load, 1) for name, load in self._loads.loads.items())
        if VLLM_CLIENT in self._page.text:
            yield yaml_line("every_workload", {"compat": "vllm-0.11"}, check="the page's release")
        objective = {"metric": "total_tps_per_box", "workload": self._deciding}
        yield yaml_line("objective", objective, check="what the page compares")
        yield yaml_line("baseline", self._arms.baseline())
        yield "# CHECK: give `from` where the page builds on an earlier winner.\nstages:\n"
        for stage in self._stages():
            yield from stage.lines()
        if title:
            yield yaml_line("report", {"title": title})

    def _stages(self) -> list[_Stage]:
        best = 0.0
        stages: list[_Stage] = []
        titles = dict.fromkeys(entry.stage for entry in self._entries if entry.stage)
        for title in titles:
            stage = _Stage(name_of(NUMBER.sub("", title)))
            for entry in self._entries:
                if entry.stage == title:
                    best = self._add(stage, entry, best)
            stages.append(stage)
        self._expect_recommended(stages)
        other = _Stage(OTHER)
        known = [{}, *(arm for stage in stages for arm in stage.arms.values())]
        for entry in self._entries:
            if not entry.stage and self._arms.change(entry.command or NO_COMMAND) not in known:
                self._add(other, entry, best)
        if not any(stage.arms for stage in (*stages, other)):
            other.arms["as the baseline"] = {}
        return [*stages, other]

    def _expect_recommended(self, stages: list[_Stage]) -> None:
        """Let the arm that the page recommends be the last that is expected to win."""
        recommended = self._study.recommended
        chosen = self._arms.change(recommended) if recommended else None
        for number, stage in enumerate(stages):
            names = [name for name, arm in stage.arms.items() if chosen and arm == chosen]
            if names:
                stage.expect = names[0]
                for later in stages[number + 1 :]:
                    later.expect = ""
                return

    def _add(self, stage: _Stage, entry: Entry, best: float) -> float:
        """Add the arm of an entry to a stage; return the best result so far."""
        command = entry.command or NO_COMMAND
        change = self._arms.change(command)
        if change is None:
            stage.left_out.append(command.text)
            return best
        name = next((name for name, arm in stage.arms.items() if arm == change), "")
        if not name:
            name = self._arm_name(entry, change, stage)
            stage.arms[name] = change
        if entry.result is None or self._loads.of[entry.number] != self._deciding:
            return best
        total = entry.result["total_per_s"].value
        if change and best and total > best:
            stage.expect = name
        return max(total, best)

    def _arm_name(self, entry: Entry, change: dict[str, Any], stage: _Stage) -> str:
        """Return the label of an entry's arm, or else what it changes, as a new name."""
        label = self._study.arms[entry.number - 1].label if entry.number else ""
        label = name_of(NUMBER.sub("", label))
        name = label if label not in ("", stage.name) else self._arms.described(change)
        if not name or name in stage.arms:
            name = f"{name or 'candidate'} {len(stage.arms) + 1}"
        return name


SHAREGPT = {
    "dataset_name": "sharegpt",
    "dataset_path": "ShareGPT_V3_unfiltered_cleaned_split.json",
}


class DraftedLoads:
    """The workloads of a page.

    Args:
        study: The page.
        entries: Its results.

    Attributes:
        loads: The settings of each, by name.
        of: The name of each result's workload, by the number of the result.
    """

    def __init__(self, study: PublishedStudy, entries: Iterable[Entry]) -> None:
        self.loads: dict[str, dict[str, Any]] = {}
        self.of: dict[int, str] = {}
        results = [
            (entry.sent or int(entry.result["ok"].value), entry, entry.result)
            for entry in entries
            if entry.result is not None
        ]
        # The most requests first: results with fewer may have lost some.
        for sent, entry, result in sorted(results, key=lambda item: -item[0]):
            announced = study.workload(study.arms[entry.number - 1])
            self.of[entry.number] = self._name(sent, result, announced)

    def _name(self, sent: int, result: Published, announced: AnnouncedWorkload | None) -> str:
        """Return the workload of a result; add it if no earlier result has it."""
        name, load = _prompts(result, announced)
        printed = result.get("rate")
        rate = printed.value if printed else announced.rate if announced else None
        load |= given(request_rate=rate)
        cap = result.get("cap")
        # Some tools print the highest number seen as the cap.
        seconds = result["duration_s"].value
        kept_up = rate is not None and result["ok"].value >= RATE_KEPT * rate * seconds
        if cap and cap.value < sent and not kept_up:
            load["max_concurrency"] = int(cap.value)
        for known, other in self.loads.items():
            requests = other["num_prompts"]
            if {**load, "num_prompts": requests} == other and sent >= MIN_REQUESTS * requests:
                return known
        requests = announced.requests if announced else None
        if requests is None or not MIN_REQUESTS * requests <= sent <= requests:
            requests = sent
        if name in self.loads and cap:
            name = f"{name} at {cap.value:g}"
        if name in self.loads:
            name = f"{name} {len(self.loads) + 1}"
        self.loads[name] = load | {"num_prompts": requests}
        return name


def _prompts(result: Published, announced: AnnouncedWorkload | None) -> tuple[str, dict[str, Any]]:
    """Return name and data set of a result's workload: replies of one length are of random
    prompts.
    """
    prompt, reply = map(round, result.per_request() or (0, 0))
    title = ""
    if announced is not None and announced.input_tokens is not None:
        title = announced.name
        prompt = announced.input_tokens
        reply = announced.output_tokens or reply
    elif not prompt or result.reply is None:
        return "sharegpt", dict(SHAREGPT)
    lengths = {"random_input_len": prompt, "random_output_len": reply}
    name = name_of(title) if title else f"{prompt} in {reply} out"
    return name, {"dataset_name": "random", **lengths}
