"""Findings: what in a result and its records does not agree, and what cannot be checked."""

import hashlib
import itertools
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from loadgen.lab.verify.figures import course, figures
from loadgen.lab.verify.records import Line, Record, Run

ROUNDING = Decimal("1e-6")  # of floats, relative
BUCKET = Decimal("1e-3")  # percentiles are from histograms, whose buckets are half as wide
NS_OF_MS = Decimal("1e-6")  # one ns, in ms: counts of ns are divided without a rest
FAR = 8
PERCENTILE = re.compile(r"p\d+(\.\d+)?")
INTERACTIVITY = "output_tokens_per_s_per_user"  # of a median
UNCHECKED = {
    "client": "what the client itself used",
    "client_error_ms": "needs the arrivals' bounds, which records have in part",
    "checks": "compared with their limits, not measured again",
    "histograms": "of waits of the event loop",
    "provenance": "compared with the records, not computed",
    "steady_state": "the window of a closed loop",
    "intervals_ms": "drawn by block bootstrap",
    "latency_ms": "waits of the event loop, and latencies of answers with tokens in no event",
    "server": "metrics of the server",
    "timeline": "latencies by time, in coarse buckets",
    "tokens": "counters of how tokens were counted",
    "workers": "what the client's processes used",
}
OTHERWISE = "no function of the records, or not computed here"


@dataclass(frozen=True)
class Verified:
    """What came out.

    Attributes:
        problems: What does not agree, in words.
        computed: How many numbers of the result were computed again.
        unchecked: How many numbers were not, by the reason and the part of the result; the reason
            with the most first.
    """

    problems: list[str]
    computed: int
    unchecked: Mapping[str, Mapping[str, int]]


def verified(run: Run, result: Line) -> Verified:
    """Compare a result with its records, and both with themselves."""
    own = result["loadgen"]
    saved = dict(_numbers(result))
    timeline = own.get("timeline") or {}
    computed = figures(run, _percentiles(result)) | course(run, timeline.get("width_s"))
    problems = list(_records(run))
    checked = 0
    for path, value in computed.items():
        if path not in saved:
            if value and path.startswith("loadgen.outcomes."):
                problems.append(f"{path}: missing in the result, computed {value}")
            continue
        checked += 1
        if not _same(path, saved[path], value):
            problems.append(f"{path}: saved {saved[path]}, computed {_short(value)}")
    problems += [
        f"{path}: saved {number}, no record has it"
        for path, number in saved.items()
        if path.startswith("loadgen.outcomes.") and path not in computed and number
    ]
    problems += [*_schedule(run, own), *_provenance(run, own), *_verdict(own)]
    rest = Counter(_part(path) for path in saved if path not in computed)
    return Verified(problems, checked, _by_reason(rest))


def _by_reason(parts: Counter[str]) -> dict[str, dict[str, int]]:
    reasons: dict[str, dict[str, int]] = {}
    for part, count in parts.most_common():
        reasons.setdefault(UNCHECKED.get(part, OTHERWISE), {})[part] = count
    return dict(sorted(reasons.items(), key=lambda each: -sum(each[1].values())))


def _percentiles(result: Line) -> dict[str, list[str]]:
    names = {
        name: [key for key in row if PERCENTILE.fullmatch(key)]
        for name, row in result["loadgen"]["latency_ms"].items()
    }
    for short in ("ttft", "tpot", "itl", "e2el"):
        # A block without an own distribution of that name keeps the one of the result.
        keys = [key.removesuffix(f"_{short}_ms") for key in result if key.endswith(f"_{short}_ms")]
        names[short] = [*{*names.get(short, []), *(key for key in keys if key[0] == "p")}]
    return names


def _records(run: Run) -> Iterator[str]:
    """Yield what a record contradicts within itself."""
    numbers = Counter(record.index for record in run.records)
    missing = [number for number in range(int(run.head["scheduled"])) if number not in numbers]
    if len(missing) != run.never_sent:
        yield f"requests {missing[:FAR]}: scheduled, in no record, and not among those never sent"
    yield from (f"request {n}: {count} records" for n, count in numbers.items() if count > 1)
    for record in run.records:
        yield from (f"request {record.index}: {problem}" for problem in _record(record))


def _record(record: Record) -> Iterator[str]:
    line = record.line
    times = line["token_times"]
    if list(times) != sorted(times):
        yield "its token times are not in order"
    if times and (times[0], times[-1]) != (line["first_token"], line["last_token"]):
        yield "its first or last token is none of its token times"
    order = ("ready", "sent", "first_byte", "first_token", "last_token", "closed")
    stamps = [(name, line[name]) for name in order if line.get(name) is not None]
    for (earlier, before), (later, after) in itertools.pairwise(stamps):
        if after < before:
            yield f"{later} is before {earlier}"
    events = sum(line[f"{kind}_events"] for kind in ("content", "reasoning", "other"))
    if events > len(times) and not line.get("whole"):
        yield f"{events} events with tokens, {len(times)} times"
    if record.ok and not (line.get("finish_reason") or line.get("done")):
        yield "ok, without a finish reason and [DONE]"
    if record.ok and not times and not line.get("whole") and not line.get("results"):
        yield "ok, without a token"
    total = line.get("total_tokens")
    counted = (line.get("prompt_tokens"), line.get("completion_tokens"))
    if total is not None and None not in counted and total < sum(map(int, filter(None, counted))):
        yield f"{total} tokens in total, fewer than {counted[0]} + {counted[1]}"


def _schedule(run: Run, own: Line) -> Iterator[str]:
    """Yield where due times, their hash and their seed disagree."""
    hashed = own["provenance"]["schedule"]["sha256"]
    for worker in own["workers"]:
        if worker.get("schedule_sha256") != hashed:
            yield f"worker {worker['number']}: another schedule than the run's"
    due = due_times(run, own)
    if due is not None and hashlib.sha256(struct.pack(f"={len(due)}q", *due)).hexdigest() != hashed:
        yield "schedule: the due times of the records do not have its SHA-256"
    drawn = redrawn(run, own)
    if drawn is not None and hashlib.sha256(drawn).hexdigest() != hashed:
        yield "schedule: the seed of the arrivals does not draw it"


def due_times(run: Run, own: Line) -> list[int] | None:
    """Return the due times that were drawn; None: records do not have all of them."""
    schedule = own["provenance"]["schedule"]
    if not schedule.get("duration_s"):
        return [0] * schedule["requests"] if schedule["sessions"] == schedule["requests"] else None
    if len(run.records) != schedule["requests"]:
        return None
    return [
        -1 if record.line.get("turn", 1) > 1 else int(record.line["due"]) for record in run.records
    ]


def redrawn(run: Run, own: Line) -> bytes | None:
    """Draw the schedule of a constant rate with a count of requests again; None: another kind."""
    settings, schedule = run.settings, own["provenance"]["schedule"]
    rate = settings.get("request_rate")
    other = ("rate_profile", "ramp_up_strategy", "duration")
    if rate in (None, "inf") or any(settings.get(name) is not None for name in other):
        return None
    if schedule["sessions"] != schedule["requests"] or run.head.get("asked_due"):
        return None
    import numpy as np  # the generator of the draws is NumPy's

    count = schedule["requests"]
    burstiness = settings.get("burstiness")
    if burstiness in ("inf", None):
        points = np.arange(count, dtype=np.float64)
    else:
        generator = np.random.default_rng(
            [int(own["provenance"]["seeds"]["arrivals"]), *b"arrivals"]
        )
        points = np.cumsum(generator.standard_gamma(float(burstiness), count))
        points = points / points[-1] * count
    return bytes((points / float(rate) * 1e9).astype(np.int64).tobytes())


def _provenance(run: Run, own: Line) -> Iterator[str]:
    """Yield where the result describes another run than the records."""
    saved, recorded = own["provenance"], run.head["heading"]["provenance"]
    for part in ("settings", "seeds", "prompts", "schedule"):
        for key in sorted({*saved[part], *recorded[part]}):
            theirs, ours = saved[part].get(key), recorded[part].get(key)
            if theirs != ours:
                yield f"provenance.{part}.{key}: saved {theirs!r}, in the records {ours!r}"
    seed = run.settings["seed"]
    for name, value in saved["seeds"].items():
        wanted = run.settings.get(f"seed_{name}")
        if value != (seed if wanted is None else wanted):
            yield f"provenance.seeds.{name}: {value}, by the settings {wanted or seed}"


def _verdict(own: Line) -> Iterator[str]:
    """Yield where a verdict does not follow from its checks."""
    for check in own["checks"]:
        measured, allowed, ok = map(check.get, ("measured", "allowed", "ok"))
        if None in (measured, allowed, ok):
            continue
        comparisons = {
            "<=": measured <= allowed,
            "<": measured < allowed,
            ">=": measured >= allowed,
            ">": measured > allowed,
        }
        expected = comparisons.get(check.get("comparison", ""))
        if expected is not None and expected != ok:
            yield (
                f"check {check['name']!r}: saved as {'met' if check['ok'] else 'missed'}, but "
                f"{measured} {check['comparison']} {allowed} says otherwise"
            )
    failed = {
        check["group"] for check in own["checks"] if check.get("ok") is False and check["counts"]
    }
    verdict = "INVALID" if "A" in failed else "SUSPECT" if failed else "VALID"
    if own["verdict"] != verdict:
        yield f"verdict: saved {own['verdict']}, by its checks {verdict}"


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, Decimal | int]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _numbers(item, f"{path}.{place}")
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        yield path, value


def _same(path: str, saved: Decimal | int, computed: Decimal | int | None) -> bool:
    if computed is None:
        return False
    if isinstance(saved, int) and isinstance(computed, int):
        return saved == computed
    names = path.split(".")
    if "request_sample" in names:  # rounded
        share, rounding = ROUNDING, Decimal("5.1e-4")
    elif (
        names[-1] == INTERACTIVITY
        or names[-1].startswith("median")
        or (names[-1][0] == "p" and names[-1][1:2].isdigit())
    ):
        share, rounding = BUCKET, NS_OF_MS * 2
    else:
        share, rounding = ROUNDING, NS_OF_MS * 2
    return abs(Decimal(saved) - computed) <= share * abs(Decimal(computed)) + rounding


def _part(path: str) -> str:
    names = path.split(".")
    return names[1] if names[0] == "loadgen" and len(names) > 1 else names[0]


def _short(value: Decimal | int | None) -> str:
    return str(value) if value is None or isinstance(value, int) else f"{value:.9g}"
