"""Real engines on this CPU: the time to the first token is in its parts, one request at a time; a
queue for slots is named; and more slots bring about what was predicted.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.engines.engines import ENGINES, Real
from loadgen.engines import Server
from loadgen.explanation.explainer import explain
from loadgen.explanation.request_columns import MS
from loadgen.metrics.records.file import RecordFile
from loadgen.report.result.explanation import Explanation
from tests.helpers.command_line import loadgen

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]
SLOTS = (("llamacpp", 1), ("llamacpp", 2), ("vllm", 2))  # that are too few
OVERLOAD = 1.4  # times the requests/s that this machine can serve
PROMPT, ANSWER, REQUESTS = "32:96", "12:24", 60
METRICS = {"llamacpp": "--metrics", "vllm": "--enable-per-request-metrics"}
MOST_REMAINDER_MS, SIZE = 5.0, 1.5


@contextmanager
def served(name: str, slots: int) -> Iterator[tuple[Real, Server]]:
    real = ENGINES[name]()
    case = replace(real.case, knobs={**real.case.knobs, "max_seqs": slots, "served_name": "m"})
    server = case.begin(more=(METRICS[name],))
    try:
        server.ready(case.ready_s)
        yield real, server
    finally:
        server.stop(case.grace_s)


def measured(real: Real, server: Server, records: Path, *load: str) -> RecordFile:
    flags = ["--base-url", server.base_url, "--model", "m", "--tokenizer", real.tokenizer]
    flags += ["--random-input-len", PROMPT, "--random-output-len", ANSWER, "--seed", "5"]
    flags += ["--server-metrics", f"{server.base_url}/metrics", "--records", str(records)]
    done = loadgen("run", *flags, *load, "--quiet", timeout_s=900)
    print(done.stderr[-2000:], file=sys.stderr)
    return RecordFile(records)


def explained(file: RecordFile) -> Explanation:
    assert file.trailer is not None
    explanation = explain(file, file.trailer.telemetry)
    assert explanation is not None
    return explanation


def remainder_ms(file: RecordFile, name: str) -> float:
    """What is in no part, at the median: beyond queue, prompt, and the time until the headers,
    which vLLM sends when it has read a request, and llama.cpp when it begins the prompt.
    """
    rest = []
    for record in file:
        times = record.server_times or {}
        said = times["prefill"] + (times["queue"] if name == "vllm" else 0)
        rest.append(record.first_token - record.first_byte - said)
    print(name, "remainder", [round(ms * MS, 1) for ms in np.percentile(rest, [10, 50, 90])])
    return abs(float(np.median(rest))) * MS


@pytest.mark.parametrize("name", METRICS)
def test_parts_are_the_whole_of_one_request_at_a_time(name: str, tmp_path: Path) -> None:
    with served(name, 2) as (real, server):
        load = "--max-concurrency", "1", "--num-prompts", "30"
        file = measured(real, server, tmp_path / "one.jsonl", *load)
    print(explained(file).mean_ms)
    assert remainder_ms(file, name) < MOST_REMAINDER_MS


def capacity_per_s(file: RecordFile) -> float:
    """The requests/s of a run that kept all slots busy."""
    records = list(file)
    took_ns = max(record.last_token for record in records) - min(record.due for record in records)
    return len(records) * 1e9 / took_ns


@pytest.mark.parametrize(("name", "slots"), SLOTS)
def test_a_queue_for_slots_is_named_and_more_slots_do_what_was_predicted(
    name: str, slots: int, tmp_path: Path
) -> None:
    with served(name, slots) as (real, server):
        full = "--max-concurrency", str(slots), "--num-prompts", "20"
        rate = OVERLOAD * capacity_per_s(measured(real, server, tmp_path / "full.jsonl", *full))
        load = "--rate", f"{rate:.3g}", "--num-prompts", str(REQUESTS)
        before = explained(measured(real, server, tmp_path / "before.jsonl", *load))
    print(before.answer, before.causes, before.no_steps)
    assert before.causes[0].name == "queue-slots"
    predicted = before.causes[0].predicted
    if predicted is None:  # one slot does not tell what several streams cost
        return
    with served(name, int(predicted.change.split()[0])) as (real, server):
        after = explained(measured(real, server, tmp_path / "after.jsonl", *load))
    print(predicted, before.e2el_ms, after.e2el_ms)
    now_ms, then_ms = predicted.e2el.now_ms, predicted.e2el.then_ms
    assert (then_ms < now_ms) == (after.e2el_ms < before.e2el_ms)
    assert 1 / SIZE < then_ms / after.e2el_ms < SIZE
