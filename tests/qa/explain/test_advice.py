"""What a replay predicts of an advice is what the advice does: the change is made on the simulator,
and the same load measured again.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loadgen.explanation.explainer import explain
from loadgen.explanation.request_columns import RequestColumns
from loadgen.metrics.records.file import RecordFile
from tests.qa.explain.plants import Plant, drawn, run
from tests.qa.explain.test_plants import MINUTES, SEED

WITHIN = 0.15


def with_slots(plant: Plant, slots: int) -> Plant:
    return replace(plant, server=f"{plant.server} --max-num-seqs {slots}")


def with_chunks(plant: Plant, tokens: int) -> Plant:
    limits = f"--max-num-batched-tokens {tokens} --max-num-seqs {min(tokens, 200)}"
    return replace(plant, server=f"{plant.server} {limits}")


def with_kv_tokens(plant: Plant, tokens: int) -> Plant:
    return replace(plant, server=f"{plant.server} --num-kv-tokens {tokens}")


@pytest.mark.timeout(10 * MINUTES)
@pytest.mark.parametrize(
    ("name", "cause", "changed"),
    [
        ("slots", "queue-slots", with_slots),
        ("kv", "kv", with_kv_tokens),
        ("interfere", "prefill-others", with_chunks),
    ],
)
def test_a_predicted_change_is_what_is_measured(
    name: str, cause: str, changed: Callable[[Plant, int], Plant], tmp_path: Path
) -> None:
    print(f"EXPLAIN_SEED={SEED}")
    plant = drawn(SEED)[name]
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    run(plant, before, SEED)
    explanation = explain(RecordFile(before), None)
    assert explanation is not None
    (predicted,) = (found.predicted for found in explanation.causes if found.name == cause)
    if predicted is None and explanation.steps and explanation.steps.stream_us is None:
        pytest.skip("the slots were always full, which does not tell what a stream costs")
    assert predicted is not None
    run(changed(plant, int(predicted.change.split()[0])), after, SEED)
    requests = RequestColumns.of(RecordFile(after))
    p50_ms, p99_ms = np.percentile(requests.ttft_ms, [50, 99]).tolist()
    e2el_ms = float(requests.e2el_ms.mean())
    print(predicted, p50_ms, p99_ms, e2el_ms)
    assert predicted.e2el.then_ms == pytest.approx(e2el_ms, rel=WITHIN)
    assert predicted.ttft_p50.then_ms == pytest.approx(p50_ms, rel=WITHIN)
    assert predicted.ttft_p99.then_ms == pytest.approx(p99_ms, rel=WITHIN)
