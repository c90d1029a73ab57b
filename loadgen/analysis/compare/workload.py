"""The workload of a run, which must be the same in runs that are compared, and its environment,
which may differ.

Prompts and due times are compared by their hashes. If a hash differs, the settings that determine
it are listed.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.config.load import SEED_FIELDS
from loadgen.config.option import DATA, LOAD, OUTPUT, SAMPLING, flag, options
from loadgen.config.settings import RunSettings, public
from loadgen.core.server_times import ASKED
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values
from loadgen.workload import target

GROUPS = {name: option.group for name, option in options(RunSettings).items()}
# Settings that must be the same even if the hashes are.
ALWAYS_COMPARED = (
    "extra_body",
    "max_concurrency",
    "concurrency_profile",
    "users",
    *("num_warmups", "warmup"),
    "think_time",
    "history",
    *("latency_from", "goodput", "cache"),
)
# The settings that determine each hash.
HASHED_SETTINGS = {
    "prompts": {name for name, group in GROUPS.items() if group == DATA} | {*SEED_FIELDS},
    "due times": {name for name, group in GROUPS.items() if group == LOAD}
    - {"num_prompts", "ready_check_timeout_sec"},
}
# Whether the server was asked for times of each request, which costs it time.
SERVER_TIMES = "server times"
SEED_FLAGS = {flag(name) for name in SEED_FIELDS}
# Settings that do not affect how a server is measured.
IGNORED = {"model", "endpoint", "backend", "slo", "max_error_rate", "keep_going", "strict"}
OWN = "loadgen"  # the tool of runs whose whole workload is known
MAX_WHOLE = 40  # characters of a text that is shown as a whole
# Of a server started for the run: different each time.
ADDRESS_SETTINGS = {"base_url", "host", "port"}


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting or fact that differs between two runs.

    Attributes:
        name: A flag, or a name with dots.
        one: Its value in the first run, as text.
        other: Its value in the other run, as text.
    """

    name: str
    one: str
    other: str

    def __str__(self) -> str:
        return f"{self.name} {self.one} and {self.other}"


def workload(result: RunResult) -> dict[str, Any]:
    """Return the workload of a run, by name: JSON values.

    Raises:
        KeyError, TypeError, ValueError, BadInput: It is not a result.
    """
    origin = result.provenance
    settings = origin.settings
    # Its number of requests depends on the server.
    by_time = result.closed_loop and settings.duration is not None
    values = public(settings)
    named = {
        name: value for name, value in values.items() if GROUPS[name] in (SAMPLING, LOAD, DATA)
    }
    return named | {
        "model": result.numbers.model_id,
        "endpoint": target.endpoint(settings),
        "requests": settings.num_prompts if by_time else result.numbers.num_prompts,
        "prompts": origin.saved_prompts.get("sha256"),
        "due times": origin.schedule.sha256,
        SERVER_TIMES: "on" if ASKED.intersection(result.server_times) else "off",
        **{name: values[name] for name in ALWAYS_COMPARED},
    }


def workload_differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between two workloads; none if only seeds differ: then both are draws
    of one workload.
    """
    always = (
        "model",
        "endpoint",
        "requests",
        SERVER_TIMES,
        *ALWAYS_COMPARED,
        *(name for name, group in GROUPS.items() if group == SAMPLING),
    )
    result = differences(first, other, always)
    for hashed, names in HASHED_SETTINGS.items():
        if first[hashed] != other[hashed]:
            why = differences(first, other, sorted(names - set(always)))
            if not why and first["requests"] != other["requests"]:
                continue  # the same requests, but fewer
            digests = (f"SHA-256 {str(run[hashed])[:12]}" for run in (first, other))
            result += why or [Difference(hashed, *digests)]
    return [each for each in dict.fromkeys(result) if each.name not in SEED_FLAGS]


def draw(workload: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what seeds decide of a workload: its prompts and due times, by their hashes."""
    return tuple(workload.get(hashed) for hashed in HASHED_SETTINGS)


def environment(result: RunResult) -> dict[str, Any]:
    """Return the other facts about a run, by name: settings, engine, versions, machine."""
    origin = result.provenance
    engine = dict(origin.saved_engine)
    has_own_server = "commands" in engine
    place = engine.pop("base_url", None)
    if has_own_server:  # its port was any free one
        port = str(place).rpartition(":")[2]
        engine["commands"] = [
            " ".join("PORT" if word == port else word for word in command.split())
            for command in engine["commands"]
        ]
    names = {name for name, group in GROUPS.items() if group not in (SAMPLING, LOAD, DATA, OUTPUT)}
    names -= IGNORED | {*ALWAYS_COMPARED} | (ADDRESS_SETTINGS if has_own_server else set())
    settings = {flag(name): value for name, value in origin.saved_settings.items() if name in names}
    named = {
        "engine": engine,
        "versions": to_json_values(origin.versions),
        "machine": to_json_values(origin.machine),
    }
    for part, facts in named.items():
        settings |= {f"{part}.{name}": value for name, value in facts.items()}
    return settings


def differences(
    first: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str] | None = None
) -> list[Difference]:
    """Return the differences between two runs in the settings or facts of some names; None: of
    all.
    """
    return [
        Difference(
            flag(name) if name in GROUPS else name,
            *_shortened(_text(first.get(name)), _text(other.get(name))),
        )
        for name in ({**first, **other} if names is None else names)
        if first.get(name) != other.get(name)
    ]


def _shortened(first: str, other: str) -> tuple[str, str]:
    """Return two texts; of long ones the words that differ, each with the word before it, as a
    flag in a command.
    """
    if max(len(first), len(other)) <= MAX_WHOLE:
        return first, other
    words = first.split(), other.split()
    differing: tuple[list[str], list[str]] = ([], [])
    for what, *ends in difflib.SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        if what != "equal":
            for side, side_words, (begin, end) in zip(
                differing, words, (ends[:2], ends[2:]), strict=True
            ):
                side.append(" ".join(side_words[max(0, begin - 1) : end]))
    return " ... ".join(differing[0]), " ... ".join(differing[1])


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)
