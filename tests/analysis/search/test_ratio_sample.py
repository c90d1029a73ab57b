"""RatioSample: when a share or a mean counts as met."""

from statistics import NormalDist

import numpy as np
import pytest

from loadgen.analysis.search.criteria import LOOK_CONFIDENCE, LOOKS, RatioSample


def shares(good: list[bool], threshold: float = 0.99) -> RatioSample:
    return RatioSample(np.array(good, dtype=float), np.ones(len(good)), threshold)


def test_all_looks_together_keep_the_confidence() -> None:
    """Sums of normal values, looked at once more with each: some look is beyond its bound in 5 %
    of cases.
    """
    sums = np.cumsum(np.random.default_rng(1).normal(size=(200_000, LOOKS)), axis=1)
    beyond = sums / np.sqrt(np.arange(1, LOOKS + 1)) > NormalDist().inv_cdf(LOOK_CONFIDENCE)
    assert beyond.any(axis=1).mean() == pytest.approx(0.05, abs=0.002)


class TestMet:
    def test_share_is_met_missed_or_undecided(self) -> None:
        def of(good: int, bad: int) -> bool | None:
            return shares(
                list(np.random.default_rng(0).permutation([True] * good + [False] * bad)), 0.9
            ).met(0.0)

        assert (of(950, 50), of(905, 95), of(870, 130)) == (True, None, False)

    def test_clusters_show_less_at_any_concurrency(self) -> None:
        fates = ~np.isin(np.arange(100), (20, 70))
        together, apart = np.repeat(fates, 40), np.tile(fates, 40)
        assert shares(list(apart), 0.95).met(1.0) is True
        assert shares(list(together), 0.95).met(1.0) is None

    def test_mean_is_met_missed_or_undecided(self) -> None:
        def of(most: float) -> bool | None:
            values = np.array([9.0, 11.0] * 200)
            return RatioSample(values, np.ones(400), most, is_mean=True).met(0.0)

        assert (of(10.2), of(10.0), of(9.8)) == (True, None, False)

    def test_mean_without_values_is_undecided(self) -> None:
        nothing = RatioSample(np.zeros(5), np.zeros(5), 10.0, is_mean=True)
        assert (nothing.value, nothing.met(1.0)) == (None, None)

    def test_share_is_decided_whatever_the_truth_within_the_client_error(self) -> None:
        good = np.random.default_rng(0).permutation([1.0] * 950 + [0.0] * 50)

        def of(least: float, greatest: float) -> bool | None:
            ends = {"least": np.minimum(good, least), "greatest": np.maximum(good, greatest)}
            return RatioSample(good, np.ones(1000), 0.9, **ends).met(0.0)

        assert of(1.0, 0.0) is True
        assert of(0.0, 1.0) is None

    def test_deciding_shares_tell_what_is_met(self) -> None:
        for bad in (20, 60, 95, 130, 200):
            sample = shares(
                list(np.random.default_rng(0).permutation([True] * (1000 - bad) + [False] * bad)),
                0.9,
            )
            deciding = sample.deciding_shares(0.0)
            assert deciding is not None
            met = (
                True
                if 1 - bad / 1000 >= deciding[1]
                else False
                if 1 - bad / 1000 < deciding[0]
                else None
            )
            assert sample.met(0.0) is met

    def test_nothing_has_no_bounds(self) -> None:
        nothing = RatioSample(np.zeros(5), np.zeros(5), 0.9)
        assert (nothing.bounds(1.0), nothing.deciding_shares(1.0)) == (None, None)

    def test_client_error_is_pooled_with_the_requests(self) -> None:
        one = RatioSample(np.ones(2), np.ones(2), 0.9, least=np.zeros(2))
        both = one + RatioSample(np.ones(1), np.ones(1), 0.9)
        assert (both.least.tolist(), both.greatest.tolist()) == ([0, 0, 1], [1, 1, 1])
