"""Classes with priorities at the simulated engine: a queue whose waiting times are known.

One request is served at a time and none is interrupted, so the engine is an M/G/1 queue with
non-preemptive priorities. Each request of the run is held to a reckoning of the same arrivals and
service times, and that reckoning to Cobham's formula over as many draws as it takes (Cobham,
Priority assignment in waiting line problems, Operations Research 2, 1954): the mean wait of class p
is R / ((1 - s[p-1]) (1 - s[p])), with R = lambda E[S^2] / 2 and s[p] the load of the classes up to
p.
"""

import heapq
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from loadgen.client.load_loop import Load
from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.engines.sim.settings import SimSettings
from loadgen.engines.sim.tokenizer import TOKENIZER
from loadgen.metrics.parted_recorder import recorder_for
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.run_data import Measurement
from loadgen.runner.preparer import PrepareOrder, prepare
from loadgen.runner.run_result import Result, conclude
from loadgen.testing import virtual
from loadgen.testing.memory import Memory
from loadgen.util.arrays import Floats, Int64s
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.target import Target
from tests.helpers import run_facts
from tests.helpers.virtual_engine import VirtualEngine
from tests.helpers.virtual_runs import MS, START_NS, S

COUNT, MANY = 30_000, 2_000_000
BASE_NS, TOKEN_NS = 1_000, 100_000
ENGINE = SimSettings(
    scheduling_policy="priority",
    max_num_seqs=1,
    step_base_ms=BASE_NS / MS,
    prefill_us_per_token=TOKEN_NS / 1000,
)
CLASSES = {  # rates in requests/s; lengths in tokens, each as frequent as the others
    "interactive": {"rate": 200, "priority": -1, "random_input_len": "1:5"},
    "default": {"rate": 150, "priority": 0, "random_input_len": "6:14"},
    "batch": {"rate": 100, "priority": 7, "random_input_len": "20:40"},
}
RATES = np.array([200.0, 150.0, 100.0])
LENGTHS = [np.arange(1, 6), np.arange(6, 15), np.arange(20, 41)]


@dataclass(frozen=True)
class Queue:
    """A run against the engine.

    Attributes:
        result: Its result.
        records: Its records, in the order of the schedule.
        service_ns: How long each request was served, ns.
    """

    result: Result
    records: list[Record]
    service_ns: Int64s


def carried_out(settings: RunSettings, folder: Path) -> Queue:
    schedule, target = (
        Schedule.from_settings(settings, settings.seed),
        Target.from_settings(settings, "sim"),
    )
    prepare(PrepareOrder(settings, target, schedule.count, folder))
    recorder, records = recorder_for(settings, START_NS, schedule.count), list[Record]()

    async def main() -> VirtualEngine:
        clock, engine = virtual.clock(), VirtualEngine(ENGINE)
        with request_store.Requests(folder) as requests:
            network = Memory(engine, clock)
            stripe = schedule.stripe(0, 1)
            await Load(
                settings, network, requests, recorder, stripe, clock, on_record=records.append
            ).run()
        return engine

    engine = virtual.run(main())
    trailer = RunTrailer(workers=(run_facts.shard(schedule),))
    result = conclude(
        run_facts.heading(settings, schedule), schedule, Measurement(recorder.snapshot(), trailer)
    )
    tokens = np.array([engine.prompt_tokens[index] for index in range(schedule.count)])
    return Queue(result, sorted(records, key=lambda record: record.index), served_ns(tokens))


def served_ns(tokens: Int64s) -> Int64s:
    return BASE_NS + TOKEN_NS * tokens


def waits(due_ns: Int64s, service_ns: Int64s, classes: Int64s) -> Int64s:
    """What each request waits, ns: a free server takes the earliest request of the first class
    that has one.
    """
    begins, waiting, free_ns, arrived = (
        np.empty(len(due_ns), dtype=np.int64),
        list[tuple[int, int]](),
        0,
        0,
    )
    due, service, order = due_ns.tolist(), service_ns.tolist(), classes.tolist()
    for _ in range(len(due)):
        if not waiting:
            free_ns = max(free_ns, due[arrived])
        while arrived < len(due) and due[arrived] <= free_ns:
            heapq.heappush(waiting, (order[arrived], arrived))
            arrived += 1
        _, index = heapq.heappop(waiting)
        begins[index] = free_ns
        free_ns += service[index]
    return begins - due_ns


def cobham_ms() -> Floats:
    """The mean wait of each class, ms."""
    served_s = [served_ns(lengths) / S for lengths in LENGTHS]
    means, squares = (
        np.array([float((each**power).mean()) for each in served_s]) for power in (1, 2)
    )
    load = np.concatenate(([0.0], np.cumsum(RATES * means)))
    return 1e3 * (RATES @ squares / 2) / ((1 - load[:-1]) * (1 - load[1:]))


@pytest.fixture(scope="module")
def queue() -> Queue:
    settings = RunSettings(
        classes=CLASSES, num_prompts=COUNT, backend="openai-chat", tokenizer=str(TOKENIZER), seed=4
    ).checked()
    with tempfile.TemporaryDirectory() as folder:
        return carried_out(settings, Path(folder))


def test_every_request_waits_as_the_priorities_say(queue: Queue) -> None:
    due, classes = (
        np.array([getattr(each, name) for each in queue.records])
        for name in ("due", "class_number")
    )
    in_system = np.array([record.last_token - record.due for record in queue.records])
    assert (in_system - queue.service_ns).tolist() == waits(due, queue.service_ns, classes).tolist()


def test_the_mean_wait_of_each_class_is_cobhams(queue: Queue) -> None:
    found = [one.latency_ms.ttft_due.mean_ms for one in queue.result.classes]
    service_ms = [float(served_ns(lengths).mean()) / MS for lengths in LENGTHS]
    assert np.subtract(found, service_ms) == pytest.approx(cobham_ms(), rel=0.05)


def test_the_classes_add_up_to_the_run(queue: Queue) -> None:
    result = queue.result
    assert sum(one.requests for one in result.classes) == result.numbers.completed == COUNT
    sums = [one.requests * one.latency_ms.ttft_due.mean_ms for one in result.classes]
    assert sum(sums) / COUNT == pytest.approx(result.ttft.mean_ms)


def test_the_reckoning_that_runs_are_held_to_is_cobhams() -> None:
    rng = np.random.default_rng(1)
    due_ns = np.cumsum(rng.exponential(S / RATES.sum(), MANY)).astype(np.int64)
    classes = rng.choice(3, MANY, p=RATES / RATES.sum())
    tokens = np.empty(MANY, dtype=np.int64)
    for number, lengths in enumerate(LENGTHS):
        tokens[classes == number] = rng.choice(lengths, int((classes == number).sum()))
    wait_ns = waits(due_ns, served_ns(tokens), classes)
    means = [wait_ns[classes == number].mean() / MS for number in range(3)]
    assert means == pytest.approx(cobham_ms(), rel=0.03)
