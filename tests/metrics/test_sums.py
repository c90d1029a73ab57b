"""Facts of parts of a run add up to those of the whole."""

from loadgen.metrics.sums import add_facts


def test_facts_add_up_by_their_kind():
    one = {"failed": 1, "ms": [3, 4], "found": {"json": 2, "text": 0}}
    other = {"failed": 2, "ms": [5], "found": {"json": 1, "other": 4}, "alone": 6}
    whole = {"failed": 3, "ms": [3, 4, 5], "found": {"json": 3, "text": 0, "other": 4}, "alone": 6}
    assert add_facts(one, other) == whole
    assert add_facts({}, one) == add_facts(one, {}) == one


def test_the_parts_stay_as_they_were():
    one = {"ms": [3], "found": {"json": 2}}
    add_facts(one, {"ms": [5], "found": {"json": 1}})
    assert one == {"ms": [3], "found": {"json": 2}}
