"""What a check says by its state, in numbers and in words is the same."""

import operator
import re
from array import array
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from msgspec import structs

from loadgen.checks import Check, examine
from loadgen.checks.check import Bound
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import DAY_NS
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics import parted_recorder
from loadgen.metrics.records.trailer import ServerCall
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.series import PromHistogram
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.streamed_tokens import sampled
from loadgen.report.result.fields import from_json_values
from loadgen.util.number_format import SHARE
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import FOLLOWS
from tests.checks.test_prefix_cache import known
from tests.helpers.run_facts import (
    MS,
    START,
    answered,
    failed,
    measured,
    run_data,
    shard,
    steady,
    unsent,
)
from tests.helpers.server_scrapes import telemetry
from tests.helpers.source import ROOT

PAGE = ROOT / "docs" / "checks.md"
NUMBER = re.compile(r"(-?[\d.]+(?:e[-+]\d+)?|inf)(%| \S+|$)")
COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
WORDS = {"<=": "", ">=": "at least ", "<": "below ", ">": "above "}
# They compare several numbers, each with a bound of its own, or none.
WITHOUT_NUMBER = {
    "engine lost",
    "run cut short",
    "loadgen took CPU time from the server",
    "other programs used the CPU",
    "client unseen",
    "requests pile up",
    "slower targets",
    "several tokens per event",
    "profiler not started",
}
OPEN = RunSettings(
    request_rate=20.0,
    ignore_eos=True,
    slo="ttft_p90<1s",
    profile=True,
    profile_batch_threshold=1,
)
CLIENT = {
    "engine_runs": True,
    "engine_cpu_s": 1.0,
    "machine_cpu_s": 2.0,
    "idle_share": 0.5,
    "others_cores": 0.1,
    "cores": 2,
}
CALLS = (ServerCall("during", "http://a/start_profile", 2.0, "it answers 500"),)
CACHE = known(50)


def said(mean_ms: float = 19) -> Telemetry:
    """What a server said that served the 400 requests, with this mean TTFT."""
    first = {"requests": 0, "generation_tokens": 0, "ttft": PromHistogram(0, 0.0, {0.05: 0})}
    ttft = PromHistogram(400, 0.4 * mean_ms, {0.05: 400})
    last = {"requests": 400, "generation_tokens": 1200, "ttft": ttft}
    return telemetry(first, last, {"running": 1, "waiting": 0})


SAID = said()


def reply(index: int, **sending: Any) -> Record:
    counts = {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    begin = index * 50
    tokens = [begin + 20, begin + 30, begin + 40]
    record = answered(index, due=begin, tokens=tokens, counts=counts, **sending)
    record.add_times({"by": "vllm", "queue": MS})
    return record


def whole(**facts: Any) -> RunData:
    """A run of 400 requests of which everything is known."""
    snapshot = measured(map(reply, range(400)))
    for _ in range(1000):
        snapshot.histograms["loop_stall"].record(MS // 10)
    snapshot.histograms["gc_pause"].record(MS)
    known_of_prompts = CACHE | {"requests": 400, "distinct": 400}
    of_run = {"client": CLIENT, "prompts": known_of_prompts, "telemetry": SAID, "calls": CALLS}
    return run_data(snapshot, OPEN, Schedule.constant(20, 400), **of_run | facts)


def with_counts(run: RunData, **counts: int) -> RunData:
    """The run with other numbers in its counters."""
    snapshot = structs.replace(run.snapshot, counters=run.snapshot.counters | counts)
    return structs.replace(run, snapshot=snapshot)


def with_other_counts() -> Iterator[RunData]:
    """The run with another number in one of its counters, each in turn."""
    run = whole()
    for name, count in run.snapshot.counters.items():
        for other in (1, count // 2 + 1, 3 * count + 700):
            yield with_counts(run, **{name: other})


def with_other_values() -> Iterator[RunData]:
    """The run with a value in one of its histograms that does not belong there, each in turn."""
    for name in whole().snapshot.histograms:
        for value in (9 * MS, DAY_NS + 1):
            run = whole()
            for _ in range(300):
                run.snapshot.histograms[name].record(value)
            yield run


def with_other_facts() -> Iterator[RunData]:
    """Runs of a busy client, of one that was killed, and of servers that say something else."""
    busy = {"busy_share": 0.9, "throttled_s": 0.5, "stolen_share": 0.5, "starved_requests": 3}
    yield whole(client=CLIENT | busy)
    yield whole(client=dict.fromkeys(("wall_s", "busy_share", "engine_runs")))
    yield whole(prompts={"requests": 300, "distinct": 100, "sent_before": 7, "sha256": ""})
    yield whole(telemetry=structs.replace(SAID, missing=("http://b:2",)))
    yield whole(telemetry=telemetry({}, {}, {"running": 9, "waiting": 0}))
    yield whole(telemetry=telemetry({"requests": 9}, {"requests": 1}))
    for mean_ms in (3, 60):
        yield whole(telemetry=said(mean_ms))
    schedule = Schedule.constant(20, 400)
    for lost in ("was killed", ""):
        yield whole(shards=[shard(schedule), structs.replace(shard(schedule, 1), lost=lost)])
    yield whole(shards=[structs.replace(shard(schedule), schedule_sha256="another")])
    for hung in (False, True):
        yield whole(facts={"silences": [{"since_s": 1.0, "for_s": 61.0, "hung": hung}]})


def of_other_requests() -> Iterator[RunData]:
    """Runs whose requests were late, doubled, given up, never sent, in sessions, or in bundles."""
    late = measured(
        [*(reply(i, sent=i * 50 + i % 2 * 19) for i in range(150)), failed(150), failed(150)]
    )
    yield run_data(late, RunSettings(disconnect="1%@tokens=2"), Schedule.constant(20, 160))
    yield run_data(measured([failed(0, Outcome.DISCONNECTED)], partial="interrupted"))
    yield run_data([failed(0, Outcome.TIMEOUT), unsent(1, Outcome.CLIENT_ERROR)])
    yield run_data([answered(tokens=[20, 20, 20, 30])], RunSettings(slo="ttft_p99<1s"))
    counted = steady(counts={"prompt_tokens": 10, "completion_tokens": 30})
    texts = structs.replace(measured([counted]), sample=(sampled(counted, 1),))
    yield run_data(texts)
    followed = Schedule(array("q", [0, FOLLOWS]), 10**9)
    sessions = run_data([steady(0), steady(1)], RunSettings(session_token="x"), followed)
    yield from (sessions, with_counts(sessions, turns_without_token=1))


def of_caches() -> Iterator[RunData]:
    """Runs that found more in a prefix cache than they asked for, less, or as much."""
    for cache, warm_requests in (("cold", 0), ("warm", 0), ("warm", 9)):
        for shared in (0, 20, 100):
            prompts = known(shared)
            prompts["prefix_cache"] |= {"warm_requests": warm_requests}
            yield run_data(map(reply, range(10)), RunSettings(cache=cache), prompts=prompts)


def of_targets() -> Iterator[RunData]:
    """Runs of two servers, of which one fails, or gets what it should not."""
    for balance in ("round-robin", "least-outstanding"):
        for is_bad in (False, True):
            settings = RunSettings(base_url=("http://a:1", "http://b:1"), balance=balance)
            recorder = parted_recorder.recorder_for(settings, START, 190)
            for index in range(190):
                fails = is_bad and index % 4 == 1
                record = failed(index, due=index) if fails else steady(index, due=index)
                record.target = int(index % 4 == 1) if is_bad else index % 2
                recorder.add(record)
            yield run_data(recorder.snapshot(), settings, Schedule.constant(1000, 190))


def all_checks() -> Iterator[Check]:
    runs = (with_other_counts(), with_other_values(), with_other_facts(), of_other_requests())
    for run in chain([whole()], *runs, of_caches(), of_targets()):
        yield from examine(run)


def disagreement(check: Check) -> str:
    """In what the state, the numbers and the texts of a check differ; empty: in nothing."""
    if check.measured is None:
        return "" if (check.allowed, check.unit) == (None, "") else "a half of a number"
    assert check.allowed is not None
    if check.ok is not COMPARE[check.comparison](check.measured, check.allowed):
        return "the state"
    words = WORDS[check.comparison]
    if not check.limit.startswith(words):
        return "the words of the limit"
    texts = (check.value, check.measured), (check.limit.removeprefix(words), check.allowed)
    for text, number in texts:
        read = NUMBER.match(text)
        if read is None:
            return f"no number in {text!r}"
        is_share = check.unit == SHARE
        if (read[2] == "%") is not is_share or not (is_share or read[2][1:].startswith(check.unit)):
            return f"the unit of {text!r}"
        size, grain = (100.0, 5.1e-7) if is_share else (1.0, 1e-12)
        if float(read[1]) / size != pytest.approx(number, rel=5.1e-4, abs=grain):
            return f"{text!r} is not {number}"
    return ""


def test_state_numbers_and_texts_of_every_check_agree() -> None:
    seen = {True: set[str](), False: set[str]()}
    for check in all_checks():
        assert disagreement(check) == "", check
        if check.ok is not None and check.measured is not None:
            seen[check.ok].add(check.name)
    documented = set(re.findall("^#### (.+)$", PAGE.read_text(), re.MULTILINE))
    assert documented - seen[True] - seen[False] == WITHOUT_NUMBER
    assert documented - seen[False] - WITHOUT_NUMBER == set()


CHANGES: dict[str, Any] = {
    "measured": lambda check: check.measured * 1.01 + 0.02,
    "allowed": lambda check: check.allowed * 1.01 + 0.01,
    "unit": lambda check: "s",
    "comparison": lambda check: {"<=": ">", ">": "<=", ">=": "<", "<": ">="}[check.comparison],
    "ok": lambda check: not check.ok,
    "value": lambda check: f"1{check.value}",
    "limit": lambda check: check.limit.replace(" ", " 1") if " " in check.limit else "0.123",
}


@pytest.mark.parametrize("part", CHANGES)
def test_part_of_a_check_that_differs_from_the_others_is_noticed(part: str) -> None:
    checks = [check for check in examine(whole()) if check.measured is not None]
    assert len(checks) > 40
    for check in checks:
        assert disagreement(check) == ""
        assert disagreement(replace(check, **{part: CHANGES[part](check)})), check


@pytest.mark.parametrize(
    ("bound", "measured", "ok", "value", "limit"),
    [
        (Bound(), 0, True, "0 of 9", "0"),
        (Bound(), 12_345, False, "12345 of 9", "0"),
        (Bound(0.01, SHARE), 0.01, True, "1% of 9", "1%"),
        (Bound(0.01, SHARE), 0.123456, False, "12.35% of 9", "1%"),
        (Bound(0.999, SHARE, ">="), 0.999, True, "99.9% of 9", "at least 99.9%"),
        (Bound(0.999, SHARE, ">="), 0.99899, False, "99.9% of 9", "at least 99.9%"),
        (Bound(0.05, SHARE, "<", "(why)"), 0.05, False, "5% of 9", "below 5% (why)"),
        (Bound(0, "ms", ">"), 0, False, "0 ms of 9", "above 0 ms"),
        (Bound(2.5, "ms"), 2.49999, True, "2.5 ms of 9", "2.5 ms"),
        (Bound(0.05), 0.00012, True, "0.00012 of 9", "0.05"),
    ],
)
def test_texts_are_of_four_digits_and_the_state_is_not(
    bound: Bound, measured: float, ok: bool, value: str, limit: str
) -> None:
    check = bound.check("name", measured, "of 9", "do this", counts=False)
    assert (check.ok, check.value, check.limit) == (ok, value, limit)
    assert (check.measured, check.comparison, check.allowed) == (
        measured,
        bound.comparison,
        bound.allowed,
    )
    assert (check.unit, check.advice, check.counts) == (bound.unit, "do this", False)
    assert disagreement(check) == ""


def test_result_of_a_version_without_numbers_is_read() -> None:
    (check, *_) = examine(whole())
    old = {
        name: value
        for name, value in check.to_dict().items()
        if name not in ("measured", "comparison", "allowed", "unit")
    }
    assert from_json_values(old, Check) == replace(check, measured=None, allowed=None)
    assert from_json_values(check.to_dict(), Check) == check
