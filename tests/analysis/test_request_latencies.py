"""Latencies and gaps of one request, from its record."""

from loadgen.analysis.request_latencies import gaps_ms
from tests.helpers import run_facts


def test_gap_before_an_event_of_several_tokens_is_split():
    record = run_facts.answered()
    record.restore([record.last_token + 30_000_000], [3])
    gap, count = gaps_ms(record, "itl")
    assert (gap.tolist(), count.tolist()) == ([10, 10, 10], [1, 1, 3])
    assert gaps_ms(record, "icl")[0].tolist() == [10, 10, 30]
