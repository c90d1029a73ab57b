"""A histogram equals the sorted values to three digits, and merging loses no value."""

import base64
import json
import pickle
import struct
import zlib
from array import array

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.histogram import DAY_NS, Histogram
from loadgen.errors import BadInput
from tests.helpers.thinning import thinned

# Spread over all magnitudes, rather than crowded at the top as plain integers would be.
NANOSECONDS = st.integers(0, 46).flatmap(lambda bits: st.integers(0, min(2 ** (bits + 1), DAY_NS)))
VALUES = st.lists(NANOSECONDS, max_size=200)
SOME_VALUES = st.lists(NANOSECONDS, min_size=1, max_size=200)
PERCENTS = st.floats(0, 100)
HALF_BUCKET = 0.5 / 1024


def histogram_of(values, **options):
    histogram = Histogram(**options)
    histogram.record_many(np.asarray(values, dtype=np.int64))
    return histogram


@pytest.fixture(scope="module")
def lognormal():
    return np.random.default_rng(7).lognormal(17, 1.5, 10**6).astype(np.int64)


@given(SOME_VALUES, PERCENTS)
def test_percentile_is_within_half_a_bucket_of_numpy(values, p):
    truth = np.percentile(values, p)
    assert histogram_of(values).percentile(p) == pytest.approx(truth, rel=HALF_BUCKET, abs=1e-9)


@pytest.mark.parametrize("p", [0, 0.1, 1, 5, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.9999, 100])
def test_percentiles_of_a_million_lognormal_values(lognormal, p):
    assert histogram_of(lognormal).percentile(p) == pytest.approx(
        np.percentile(lognormal, p), rel=HALF_BUCKET
    )


@given(st.lists(st.integers(0, 2047), min_size=1), PERCENTS)
def test_small_values_are_exact(values, p):
    assert histogram_of(values).percentile(p) == pytest.approx(np.percentile(values, p), rel=1e-12)


@given(SOME_VALUES, st.lists(PERCENTS, min_size=2))
def test_percentiles_grow_with_p_and_keep_the_order_asked(values, ps):
    histogram = histogram_of(values)
    rising = histogram.percentiles(sorted(ps))
    assert rising == sorted(rising)
    assert histogram.percentiles(ps) == [histogram.percentile(p) for p in ps]


@given(SOME_VALUES)
def test_value_at_rank_follows_sorted_values(values):
    histogram, truth = histogram_of(values), sorted(values)
    ranked = [histogram.value_at_rank(rank) for rank in range(len(values))]
    assert ranked == pytest.approx(truth, rel=HALF_BUCKET)
    assert (
        (ranked[0], ranked[-1])
        == (histogram.percentile(0), histogram.percentile(100))
        == (truth[0], truth[-1])
    )


@pytest.mark.parametrize("rank", [-1, 3])
def test_rank_out_of_range_is_refused(rank):
    with pytest.raises(IndexError, match="histogram of 3 values"):
        histogram_of([1, 2, 3]).value_at_rank(rank)


@given(SOME_VALUES, st.floats(-1, 2.0 * DAY_NS), st.integers(0, 199))
def test_count_at_or_below_counts_ranks_not_above_a_value(values, limit, rank):
    histogram = histogram_of(values)
    ranked = [histogram.value_at_rank(rank) for rank in range(len(values))]
    for bound in (limit, ranked[rank % len(values)], values[rank % len(values)]):
        assert histogram.count_at_or_below(bound) == sum(value <= bound for value in ranked)


@given(VALUES)
def test_counts_sums_and_extremes_are_exact(values):
    histogram = histogram_of(values)
    assert (histogram.count, histogram.total) == (len(values), sum(values))
    assert histogram.total_of_squares == sum(value * value for value in values)
    assert (histogram.min, histogram.max) == (
        (min(values), max(values)) if values else (None, None)
    )


@given(SOME_VALUES)
def test_mean_and_standard_deviation_match_numpy(values):
    histogram = histogram_of(values)
    assert histogram.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert histogram.std == pytest.approx(np.std(values), rel=1e-9, abs=1e-9 * histogram.mean)


def test_sums_far_above_64_bits_are_exact():
    histogram = Histogram()
    histogram.record(DAY_NS, 10**10)
    histogram.record(1, 2**61)
    assert histogram.total == DAY_NS * 10**10 + 2**61 > 2**64
    assert histogram.total_of_squares == DAY_NS**2 * 10**10 + 2**61 > 2**127 // 3


@given(VALUES)
def test_buckets_hold_the_values_between_their_ends(values):
    buckets = list(histogram_of(values))
    assert buckets == sorted(buckets)
    assert sum(count for _, _, count in buckets) == len(values)
    for lowest, highest, count in buckets:
        assert count == sum(lowest <= value <= highest for value in values)
        assert highest == lowest or highest + 1 - lowest <= lowest / 1024


@given(SOME_VALUES)
def test_coarse_counts_are_sixteenths_of_a_doubling(values):
    histogram = histogram_of(values)
    coarse = histogram.coarse()
    ends = {low: low + (1 << max(6, low.bit_length() - 5)) for low in coarse}
    assert list(coarse) == sorted(coarse)
    assert sum(coarse.values()) == len(values)
    for low, count in coarse.items():
        assert count == sum(low <= value < ends[low] for value in values)
        assert ends[low] - low <= max(64, low / 16)


def test_coarse_counts_end_where_doublings_do():
    for doubling in range(6, 46):
        assert (
            list(histogram_of([(1 << doubling) - 1, 1 << doubling]).coarse())[-1] == 1 << doubling
        )


def test_empty_histogram_has_no_coarse_counts():
    assert Histogram().coarse() == {}


def test_empty_histogram_has_no_statistics():
    empty = Histogram()
    assert (empty.count, empty.rejects, empty.total, empty.count_at_or_below(5)) == (0, 0, 0, 0)
    assert empty.min is empty.max is empty.mean is empty.std is None
    assert empty.percentiles([0, 50, 100]) == [None, None, None]
    assert list(empty) == []


@pytest.mark.parametrize("value", [0, 1, 2047, 2048, 123_456_789, DAY_NS])
def test_single_value_is_every_percentile_exactly(value):
    histogram = histogram_of([value])
    assert histogram.percentiles([0, 50, 99.9, 100]) == [value] * 4
    assert (histogram.mean, histogram.std) == (value, 0)
    assert histogram.count_at_or_below(value - 1) == 0


@pytest.mark.parametrize("value", [-1, DAY_NS + 1, 2**63 - 1, -(2**63)])
def test_value_out_of_range_is_only_a_reject(value):
    histogram = histogram_of([5, 7])
    assert histogram.record(value, 3) is False
    histogram.record_many(array("q", [value]))
    assert histogram.rejects == 4
    assert (histogram.count, histogram.total, histogram.min, histogram.max) == (2, 12, 5, 7)


def test_record_takes_a_count_of_equal_values():
    once, often = Histogram(), Histogram()
    assert once.record(1_000_000, 3) is True
    for _ in range(3):
        often.record(1_000_000)
    assert once == often


def test_count_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        Histogram().record(5, 0)


@pytest.mark.parametrize("values", [array("q", [1, 2, 3]), np.array([1, 9, 2, 9, 3])[::2]])
def test_record_many_takes_any_int64_buffer(values):
    assert histogram_of([1, 2, 3]) == histogram_of(values)


def test_record_many_takes_a_read_only_array():
    values = np.arange(5)
    values.flags.writeable = False
    histogram = Histogram()
    histogram.record_many(values)
    assert histogram.count == 5


@pytest.mark.parametrize("p", [-0.1, 100.1, float("nan")])
def test_percentile_out_of_range_is_refused(p):
    with pytest.raises(ValueError, match="from 0 to 100"):
        Histogram().percentile(p)


@pytest.mark.parametrize("highest", [-1, 0, 1, DAY_NS + 1])
def test_impossible_range_is_refused(highest):
    with pytest.raises(ValueError, match=f"not {highest}"):
        Histogram(highest)


@pytest.mark.parametrize("highest", [2, 2047, 2048, 10**6, DAY_NS])
def test_highest_value_is_the_last_one_counted(highest):
    histogram = histogram_of([highest, highest + 1], highest=highest)
    assert (histogram.highest, histogram.max, histogram.count, histogram.rejects) == (
        highest,
        highest,
        1,
        1,
    )
    assert Histogram.from_dict(histogram.to_dict()) == histogram


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_merged_shards_equal_the_whole(lognormal, shards):
    merged = Histogram()
    for shard in range(shards):
        merged.merge(histogram_of(lognormal[shard::shards]))
    assert merged == histogram_of(lognormal)


@given(VALUES, VALUES, VALUES)
def test_merging_is_associative_and_commutative(first, second, third):
    a, b, c = (histogram_of([*values, -1]) for values in (first, second, third))
    before = a.copy(), b.copy()
    assert (a + b) + c == a + (b + c) == histogram_of([*first, *second, *third, -1, -1, -1])
    assert a + b == b + a
    assert a + Histogram() == a
    assert (a, b) == before


def test_histogram_merges_with_itself():
    histogram = histogram_of([5, 7])
    histogram.merge(histogram)
    assert histogram == histogram_of([5, 5, 7, 7])


def test_histograms_of_different_ranges_do_not_merge():
    with pytest.raises(ValueError, match="do not merge"):
        Histogram(1000).merge(Histogram())
    assert Histogram(1000) != Histogram()


def test_copy_is_equal_and_independent():
    histogram = histogram_of([5, 7, -1])
    copy = histogram.copy()
    assert copy == histogram
    copy.record(9)
    assert copy != histogram


@pytest.mark.parametrize("others", [[5, 8], [5], [5, 7, -1], [4096, 4098], []])
def test_histograms_of_other_values_are_not_equal(others):
    assert histogram_of([5, 7]) != histogram_of(others)
    assert histogram_of([4096, 4097, 4099]) != histogram_of([4096, 4098, 4099])


def test_histogram_equals_no_other_type_and_is_not_hashable():
    assert Histogram() != 0
    with pytest.raises(TypeError):
        hash(Histogram())


@given(st.lists(st.integers(-5, DAY_NS + 5)))
def test_json_and_pickle_round_trip(values):
    histogram = histogram_of(values)
    assert Histogram.from_dict(json.loads(json.dumps(histogram.to_dict()))) == histogram
    assert pickle.loads(pickle.dumps(histogram)) == histogram


def test_large_numbers_are_strings_in_json():
    histogram = Histogram()
    histogram.record(DAY_NS, 1000)
    data = histogram.to_dict()
    assert (data["count"], data["total"]) == (1000, str(1000 * DAY_NS))
    assert data["total_of_squares"] == str(1000 * DAY_NS**2)


# -- as the package hdrhistogram has it

COUNTS = st.dictionaries(st.integers(0, DAY_NS), st.integers(1, 2**48), max_size=20)
PERCENTILES = (0.1, 50, 90, 99.9, 100)
# The package walks over its buckets in Python.
few = settings(max_examples=len(thinned(range(20), 4)))


def recorded_by_both(counts):
    histogram, hdr = Histogram(), HdrHistogram(1, DAY_NS, 3)
    for value, count in counts.items():
        histogram.record(value, count)
        hdr.record_value(value, count)
    return histogram, hdr


def buckets(hdr):
    return [(item.value_iterated_to, item.count_added_in_this_iter_step) for item in hdr]


@pytest.mark.integration
@few
@given(COUNTS)
def test_hdrhistogram_counts_the_same(counts):
    histogram, hdr = recorded_by_both(counts)
    assert buckets(hdr) == [(highest, count) for _, highest, count in histogram]
    assert hdr.get_total_count() == histogram.count
    assert bytes(histogram.to_hdr().counts) == bytes(hdr.counts)


@few
@given(COUNTS.filter(bool))
def test_hdrhistogram_has_the_same_percentiles(counts):
    histogram, hdr = recorded_by_both(counts)
    for p, value in hdr.get_percentile_to_value_dict(PERCENTILES).items():
        # Of the nearest value; `percentile` interpolates.
        rank = hdr.get_target_count_at_percentile(p) - 1
        assert hdr.values_are_equivalent(value, int(histogram.value_at_rank(rank)))


@given(COUNTS)
def test_hdrhistogram_has_the_same_encoding(counts):
    histogram, hdr = recorded_by_both(counts)
    assert histogram.encode() == hdr.encode().decode()


@pytest.mark.integration
def test_a_histogram_of_many_values_is_the_same_in_hdrhistogram(lognormal):
    histogram = histogram_of(lognormal)
    for hdr in (histogram.to_hdr(), HdrHistogram.decode(histogram.encode())):
        assert buckets(hdr) == [(highest, count) for _, highest, count in histogram]
        assert hdr.get_max_value() == hdr.get_highest_equivalent_value(histogram.max)
        assert hdr.get_min_value() == hdr.get_lowest_equivalent_value(histogram.min)


def test_an_empty_histogram_is_empty_in_hdrhistogram():
    hdr = Histogram().to_hdr()
    assert (hdr.get_total_count(), hdr.get_min_value(), hdr.get_max_value()) == (0, 0, 0)
    assert hdr.record_value(5)
    assert hdr.get_min_value() == 5


def test_a_histogram_that_was_saved_before_is_read():
    saved = {
        "counts": "HISTFAAAACp4nJNpmSzMwMDAwQABzFCakYHBb8pEfwYG+w8QAU4mRqbvTUxMAHkIBc8=",
        "count": 3,
        "rejects": 1,
        "min": 5,
        "max": 40_000_000,
        "total": 40_000_012,
        "total_of_squares": 1_600_000_000_000_074,
    }
    assert Histogram.from_dict(saved) == histogram_of([5, 7, 40_000_000, -1])


def test_encoding_refuses_too_many_values():
    histogram = Histogram()
    histogram.record(1, 2**62)
    with pytest.raises(OverflowError, match="more than the encoding's"):
        histogram.to_dict()
    fewer = Histogram()
    fewer.record(1, 2**62 - 1)
    assert Histogram.from_dict(fewer.to_dict()) == fewer


def encoded(*settings):
    return HdrHistogram(*settings).encode().decode()


def with_counts(counts, highest=DAY_NS):
    """A dict with these encoded counts; the package writes no damaged ones."""
    payload = struct.pack(">IIIIQQd", 0x1C849313, len(counts), 0, 3, 1, highest, 1.0) + counts
    compressed = zlib.compress(payload)
    return {
        "counts": base64.b64encode(
            struct.pack(">II", 0x1C849314, len(compressed)) + compressed
        ).decode()
    }


@pytest.mark.parametrize(
    "damage",
    [
        {"count": 4},
        {"count": -3},
        {"count": None},
        {"min": 4},
        {"min": None},
        {"max": 1 << 40},
        {"max": 2**62},
        {"min": -(2**62), "max": 2**62},
        {"count": 0},
        {"count": 2**62},
        {"max": "much"},
        {"total": -1},
        {"counts": None},
        {"counts": ""},
        {"counts": "SElTVA=="},
        {"counts": base64.b64encode(b"\x1c\x84\x93\x14\0\0\0\0").decode()},
        {"counts": base64.b64encode(b"\x1c\x84\x93\x14\0\0\0\x04none").decode()},
        {"counts": encoded(1, 10**9, 2)},
        {"counts": encoded(1000, 10**12, 3)},
        {"counts": encoded(1, 2 * DAY_NS, 3)},
        {"counts": encoded(1, DAY_NS, 3)[:-8]},
        with_counts(b"\x02" * 8, highest=5),
        with_counts(b"\x0d\x02", highest=5),  # seven zeros before a count
        with_counts(b"\x02" * 3_000, highest=5),
        with_counts(b"\x02\x80"),
        with_counts(b"\x02" + b"\xff" * 8),
        with_counts(b"\x02" + b"\xff" * 9),  # -2**63 zeros
    ],
)
def test_damaged_dict_is_refused_with_a_remedy(damage):
    with pytest.raises(BadInput, match=r"histogram: .*; use a result file"):
        Histogram.from_dict({**histogram_of([5, 7, 9]).to_dict(), **damage})


@pytest.mark.parametrize(
    "missing", ["counts", "count", "rejects", "min", "max", "total", "total_of_squares"]
)
def test_incomplete_dict_is_refused(missing):
    data = histogram_of([5, 7, 9]).to_dict()
    del data[missing]
    with pytest.raises(BadInput, match=missing):
        Histogram.from_dict(data)


def test_repr_shows_count_and_extremes():
    assert repr(histogram_of([5, 7, -1])) == "<Histogram count=2 rejects=1 min=5 max=7>"
