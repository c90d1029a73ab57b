"""The measurement of several workers asks for the load that its row names; what comes is not
tested.
"""

from bench.performance.load import serve
from bench.performance.workers import HEAD, STEP_MS, TOKENS, load_of, measure


def test_a_load_has_a_tenth_more_connections_than_streams() -> None:
    load = load_of(1_000_000, TOKENS, 10.0)
    assert (load.rate, load.count, load.tokens) == (5_000, 50_000, TOKENS)
    assert load.warm == 11_000


def test_workers_share_a_load_on_several_servers() -> None:
    with serve(STEP_MS) as first, serve(STEP_MS) as second:
        run = measure(load_of(2_000, 20, 1.0), 2, [first, second])
    assert run.told["total_output_tokens"] == 2_000
    assert {target["outcomes"]["ok"] for target in run.told["loadgen"]["targets"]} == {50}
    cells = dict(zip(HEAD, run.row(), strict=True))
    assert cells["tokens/s asked for"] == "2,000 in answers of 20"
    assert cells["workers"] == "2"
