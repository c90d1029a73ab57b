"""Workload: what a run asked, which must be the same where runs are compared, and what else is known of it.

What is asked, and when, is told by two hashes: of the prompts, and of the due times. The settings that they follow from
say in words what is unlike where a hash is.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.config.option import DATA, LOAD, OUTPUT, SAMPLING, flag
from loadgen.config.settings import RunSettings, public
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values
from loadgen.workload import target

GROUPS = {field.name: field.metadata["group"] for field in dataclasses.fields(RunSettings)}
# Settings that matter whatever the hashes say.
ASKED = ("extra_body", "max_concurrency", "num_warmups", "think_time", "history", "latency_from", "goodput")
SEEDS = ("seed", "seed_arrivals", "seed_prompts", "seed_order")
# The settings from which each hash follows.
BEHIND = {
    "prompts": {name for name, group in GROUPS.items() if group == DATA} | {*SEEDS},
    "due times": {name for name, group in GROUPS.items() if group == LOAD} - {"num_prompts", "ready_check_timeout_sec"},
}
# Settings that say nothing of how a server was measured.
UNTOLD = {"model", "endpoint", "backend", "slo", "max_error_rate", "keep_going", "strict"}
LONG = 40  # letters
PLACES = {"base_url", "host", "port"}  # of a server that was started for the run: another one each time


@dataclass(frozen=True, slots=True)
class Difference:
    """What two runs are unlike in.

    Attributes:
        name: Of what: a flag, or a name with dots.
        one: In the one run, as text.
        other: In the other.
    """

    name: str
    one: str
    other: str

    def __str__(self) -> str:
        return f"{self.name} {self.one} and {self.other}"


def workload(result: RunResult) -> dict[str, Any]:
    """What the run of a result asked, by names: JSON.

    Raises:
        KeyError, TypeError, ValueError, BadInput: It is no result.
    """
    origin = result.provenance
    settings = origin.settings
    by_time = result.closed_loop and settings.duration is not None  # so many as the server could answer
    named = {name: value for name, value in public(settings).items() if GROUPS[name] in (SAMPLING, LOAD, DATA)}
    return named | {
        "model": result.numbers.model_id,
        "endpoint": target.endpoint(settings),
        "requests": settings.num_prompts if by_time else result.numbers.num_prompts,
        "prompts": origin.saved_prompts.get("sha256"),
        "due times": origin.schedule.sha256,
        **{name: public(settings)[name] for name in ASKED},
    }


def unlike(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """In what two workloads differ; nothing where they are the same."""
    always = ("model", "endpoint", "requests", *ASKED, *(name for name, group in GROUPS.items() if group == SAMPLING))
    found = list(_between(one, other, always))
    for hashed, names in BEHIND.items():
        if one[hashed] != other[hashed]:
            why = list(_between(one, other, sorted(names - set(always))))
            if not why and one["requests"] != other["requests"]:
                continue  # fewer of the same
            found += why or [Difference(hashed, *(f"SHA-256 {str(each[hashed])[:12]}" for each in (one, other)))]
    return list(dict.fromkeys(found))


def facts(result: RunResult) -> dict[str, Any]:
    """What else is known of the run of a result, by names: of the settings, the engine, versions, the machine."""
    origin = result.provenance
    engine = dict(origin.saved_engine)
    own = "commands" in engine
    place = engine.pop("base_url", None)
    if own:  # its port is one that was free
        port = str(place).rpartition(":")[2]
        engine["commands"] = [
            " ".join("PORT" if word == port else word for word in each.split()) for each in engine["commands"]
        ]
    told = {name for name, group in GROUPS.items() if group not in (SAMPLING, LOAD, DATA, OUTPUT)} - UNTOLD - {*ASKED}
    told -= PLACES if own else set()
    settings = {flag(name): value for name, value in origin.saved_settings.items() if name in told}
    named = {"engine": engine, "versions": to_json_values(origin.versions), "machine": to_json_values(origin.machine)}
    return settings | {f"{part}.{name}": value for part, each in named.items() for name, value in each.items()}


def otherwise(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """In which facts two runs differ."""
    return list(_between(one, other, dict.fromkeys((*one, *other))))


def _between(one: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str]) -> Iterable[Difference]:
    for name in names:
        if one.get(name) != other.get(name):
            shown = flag(name) if name in GROUPS else name
            yield Difference(shown, *_apart(_text(one.get(name)), _text(other.get(name))))


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two texts; of long ones the words that differ, each with the one before: of a command its flag."""
    if max(len(one), len(other)) <= LONG:
        return one, other
    words = one.split(), other.split()
    told: tuple[list[str], list[str]] = ([], [])
    for what, *ends in difflib.SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        if what != "equal":
            for side, each, (begin, end) in zip(told, words, (ends[:2], ends[2:]), strict=True):
                side.append(" ".join(each[max(0, begin - 1) : end]))
    return " ... ".join(told[0]), " ... ".join(told[1])


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)
