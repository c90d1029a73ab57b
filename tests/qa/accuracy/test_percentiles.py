"""Percentiles: what the run reports beside the same percentiles of what the server wrote."""

from collections.abc import Callable

import numpy as np
import pytest

from loadgen.testing.process import Process
from tests.qa.accuracy.measuring import Finding, Int64s, Run, best_of, compared

FLOOR_NS, SHARE, TPOT_SHARE = 500_000, 0.01, 0.002
PERCENTILES = (50, 90, 95, 99)
BOUND = "p50 to p99 within max(0.5 ms, 1 %), mean TPOT 0.2 %"
TOKENS = 20


def truths(run: Run) -> dict[str, Int64s]:
    """The latencies as they were when the tokens were written, by histogram."""
    written = run.written_ns.reshape(-1, TOKENS)
    first, last = written[:, 0], written[:, -1]
    return {
        "ttft_due": first - run.due_ns,
        "ttft_sent": first - run.sent_ns,
        "e2el_due": last - run.due_ns,
        "e2el_sent": last - run.sent_ns,
        "tpot": (last - first) // (TOKENS - 1),
        "icl": np.diff(written, axis=1).ravel(),
    }


@pytest.mark.parametrize(
    ("shape", "requests"),
    [
        pytest.param("constant", 4_000, marks=pytest.mark.accuracy),
        pytest.param("lognormal", 200),
        pytest.param("lognormal", 4_000, marks=pytest.mark.accuracy),
        pytest.param("bimodal", 4_000, marks=pytest.mark.accuracy),
    ],
)
async def test_percentiles_are_those_of_the_truth(
    metronome: Process, row: Callable[..., None], shape: str, requests: int
) -> None:
    async def attempt() -> Finding:
        plan = {"shape": shape, "first_ms": 50.0, "gap_ms": 10.0}
        run = await compared(metronome, tokens=TOKENS, plan=plan, request_rate=200, num_prompts=requests)
        assert len(run.records) == requests
        worst, worst_share, where = 0.0, 0.0, ""
        for name, truth in truths(run).items():
            for p in PERCENTILES:
                reported = run.result.snapshot.histograms[name].percentile(p)
                assert reported is not None
                true = float(np.percentile(truth, p))
                allowed = max(FLOOR_NS, SHARE * true)
                share = abs(reported - true) / allowed
                if share >= worst_share:
                    worst, worst_share, where = reported - true, share, f"{name} p{p}"
        mean = run.result.snapshot.histograms["tpot"].mean
        assert mean is not None
        tpot_error = abs(mean / float(np.mean(truths(run)["tpot"])) - 1)
        seen = f"worst {where}: {worst / 1e6:+.3f} ms, {worst_share:.0%} of its bound; mean TPOT {tpot_error:.3%}"
        best = float(np.percentile(run.errors_ns, 1))
        return Finding(seen, worst_share <= 1 and tpot_error <= TPOT_SHARE, run.excuse(sound=best <= FLOOR_NS))

    found = await best_of(3, attempt)
    row(f"{shape}, {requests:,} requests of {TOKENS} tokens", found.measured, BOUND, found.met, found.disturbance)
