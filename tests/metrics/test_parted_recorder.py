"""Recorders per target and class, whose counts add up to the whole run."""

import functools
import weakref

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics import parted_recorder
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.snapshot import COUNTERS, DISTRIBUTIONS, Snapshot
from tests.helpers.run_facts import MS, START, failed, in_order, steady, unsent

URLS = ("http://a:1", "http://b:1", "http://c:1")
SETTINGS = RunSettings(base_url=URLS, goodput=("ttft:25",), save_detailed=True)


def records(count=30):
    """Of requests sent in turn; every fifth fails."""
    for index in range(count):
        outcome = (Outcome.STATUS, Outcome.TRUNCATED)[index % 2]
        if index % 5 == 4:
            made = failed(index, outcome, due=index)
        else:
            made = steady(index, due=index, ttft=10 + index % 20, n=1 + index % 4)
        made.target = index % 3
        yield made
    last = unsent(count, due=count)
    last.target = 1
    yield last


def snapshot(settings=SETTINGS, partial=None):
    recorder = parted_recorder.recorder_for(settings, START, 40)
    for record in records():
        recorder.add(record)
    recorder.waits["loop_stall"].record(MS)
    recorder.counters["warm_connections"] = 6
    recorder.add_never_sent(1, 9, Outcome.CANCELLED, "interrupted")
    return recorder.snapshot(partial)


@pytest.fixture(scope="module")
def whole():
    return snapshot()


def same(one, other, *, but=()):
    one, other = in_order(one), in_order(other)
    for name in Snapshot.__struct_fields__:
        if name not in but:
            assert getattr(one, name) == getattr(other, name), name


def test_the_whole_is_what_a_single_recorder_makes_of_the_same_records(whole):
    alone = snapshot(SETTINGS.replace(base_url=URLS[0]))
    same(whole, alone, but=("targets", "examples"))
    assert alone.targets == ()


def test_the_targets_add_up_to_the_whole(whole):
    parts = whole.targets
    assert sum(part.ended for part in parts) + 9 == whole.ended == whole.scheduled
    assert sum(part.ok for part in parts) == whole.ok
    for name in COUNTERS:
        beside = 6 if name == "warm_connections" else 0
        assert sum(part.counters[name] for part in parts) + beside == whole.counters[name], name
    for name in DISTRIBUTIONS:
        if name != "loop_stall":
            total = functools.reduce(lambda a, b: a + b, (part.histograms[name] for part in parts))
            assert total == whole.histograms[name], name
    assert sum(len(part.index) for part in parts) == len(whole.index)
    assert sum(int(part.bins.sum()) for part in parts) == int(whole.bins.sum())


def test_each_target_has_its_own_requests(whole):
    assert [part.index[:3].tolist() for part in whole.targets] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert [part.scheduled for part in whole.targets] == [10, 11, 10]


def test_a_failure_says_where_its_request_was_sent(whole):
    (example,) = whole.examples["dns_error"]
    assert (example["index"], example["target"]) == (30, 1)
    assert [(e["index"], e["target"]) for e in whole.examples["truncated"]] == [
        (9, 0),
        (19, 1),
        (29, 2),
    ]
    assert "target" not in whole.examples["cancelled"][0]


def test_progress_counts_all_targets():
    recorder = parted_recorder.recorder_for(SETTINGS, START, 40)
    for record in records():
        recorder.add(record)
    alone = parted_recorder.recorder_for(SETTINGS.replace(base_url=URLS[0]), START, 40)
    for record in records():
        alone.add(record)
    assert (recorder.failed, recorder.ended) == (alone.failed, 31)
    assert (
        recorder.failed_by_class
        == alone.failed_by_class
        == {"status(503)": 3, "truncated": 3, "dns_error": 1}
    )
    for name in COUNTERS:
        assert recorder.count(name) == alone.count(name), name
    for name in DISTRIBUTIONS:
        assert recorder.sketch(name) == alone.sketch(name), name
    assert alone.failed == 7


def test_stripes_of_a_run_merge_target_by_target(whole):
    stripes = [parted_recorder.recorder_for(SETTINGS, START, 0) for _ in range(2)]
    for record in records():
        stripes[record.index // 2 % 2].add(record)
    merged = stripes[0].snapshot().merge(stripes[1].snapshot())
    for part, expected in zip(merged.targets, whole.targets, strict=True):
        same(part, expected.merge(Recorder.from_settings(SETTINGS, START, 0).snapshot()))


CLASSES = RunSettings(
    base_url=URLS[:2],
    classes=("a:goodput=ttft:15", "b:priority=1", "c:priority=2"),
    goodput=("ttft:25",),
)


def of_classes(settings=CLASSES, numbers=range(30)):
    recorder = parted_recorder.recorder_for(settings, START, 30)
    for index in numbers:
        record = (
            steady(index, due=index, ttft=10 + index % 20, n=2)
            if index % 5
            else failed(index, due=index)
        )
        record.target, record.class_number = index % 2, index % 3
        recorder.add(record)
    return recorder.snapshot()


def test_classes_are_counted_apart_whatever_their_target():
    found = of_classes()
    assert [part.ended for part in found.classes] == [10, 10, 10]
    assert [part.ended for part in found.targets] == [15, 15]
    for parts in (found.classes, found.targets):
        whole = functools.reduce(Snapshot.merge, parts)
        assert whole.counters == found.counters
        assert whole.histograms == found.histograms
        assert sorted(whole.index) == list(range(30))


def test_each_class_is_judged_by_its_own_goodput():
    alone = [
        sum(10 + index % 20 <= limit for index in range(number, 30, 3) if index % 5)
        for number, limit in enumerate((15, 25, 25))
    ]
    found = of_classes()
    assert [part.counters["good"] for part in found.classes] == alone
    assert found.counters["good"] == sum(alone)


def test_parts_of_a_run_with_classes_merge_class_by_class():
    whole, halves = of_classes(), [of_classes(numbers=range(first, 30, 2)) for first in range(2)]
    merged = halves[0].merge(halves[1])
    assert [part.histograms for part in merged.classes] == [
        part.histograms for part in whole.classes
    ]


@pytest.mark.usefixtures("no_collection")
def test_it_is_freed_with_its_last_name():
    recorder = parted_recorder.recorder_for(SETTINGS, START, 40)
    for record in records():
        recorder.add(record)
    parts = [weakref.ref(part) for part in (recorder, *recorder._parts)]
    del recorder
    assert [part() for part in parts] == [None] * 4


def test_what_has_ended_and_failed_is_the_sum_of_the_parts():
    recorder = parted_recorder.recorder_for(SETTINGS, START, 40)
    for record in records():
        recorder.add(record)
    recorder.add_never_sent(31, 9, Outcome.CANCELLED, "interrupted")
    assert (recorder.ended, recorder.failed) == (40, 7)
    assert recorder.failed_by_class["cancelled"] == 9
