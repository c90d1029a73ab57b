"""Drafted loads: the workloads that the results of a published page come from."""

from collections.abc import Iterable
from typing import Any

from loadgen.lab.audit.published import Published
from loadgen.lab.audit.study import PublishedStudy
from loadgen.lab.audit.workload import AnnouncedWorkload
from loadgen.lab.importer.entries import Entry
from loadgen.lab.importer.placement import MIN_REQUESTS, RATE_KEPT
from loadgen.lab.study.spec.study_text import given, name_of

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
            (_sent(entry, entry.result), entry, entry.result)
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


def _sent(entry: Entry, result: Published) -> int:
    return entry.sent or int(result["ok"].value)


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
