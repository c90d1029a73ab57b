"""A think time is a distribution with the mean and the quantiles that its text names; other texts are refused."""

import math

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.config.think_time import ThinkTime
from loadgen.errors import BadInput
from loadgen.util.arrays import Floats

COUNT = 100_000


def times_s(think: ThinkTime) -> Floats:
    return np.array([think.draw_s(drawn) for drawn in np.random.default_rng(5).random((COUNT, 2)).tolist()])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0", ThinkTime("constant", (0,))),
        ("500ms", ThinkTime("constant", (0.5,))),
        ("1:3", ThinkTime("uniform", (1, 3))),
        ("exp:2s", ThinkTime("exp", (2,))),
        ("lognormal:2:500ms", ThinkTime("lognormal", (2, 0.5))),
    ],
)
def test_its_text_names_the_distribution(text: str, read: ThinkTime) -> None:
    assert ThinkTime.parse(text) == ThinkTime.parse(str(read)) == read


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "2d:x", "3:1", "1:2:3", "exp:", "exp:1:2", "lognormal:1", "nan", "86401", "exp", "gamma:1"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--think-time"):
        ThinkTime.parse(text)


@pytest.mark.parametrize(
    ("text", "quantile"),
    [
        ("exp:2", lambda share: -2 * math.log(1 - share)),
        ("1:3", lambda share: 1 + 2 * share),
        ("lognormal:2:0", lambda share: 2.0),
    ],
)
@pytest.mark.slow
def test_drawn_times_have_the_quantiles_of_the_law(text: str, quantile) -> None:  # type: ignore[no-untyped-def]
    think = ThinkTime.parse(text)
    drawn = times_s(think)
    assert float(drawn.mean()) == pytest.approx(think.mean_s, rel=0.02)
    for share in (0.1, 0.5, 0.9, 0.99):
        # Six standard errors of a share, at most.
        assert float((drawn <= quantile(share) + 1e-9).mean()) >= share - 0.01
        assert float((drawn < quantile(share) - 1e-9).mean()) <= share + 0.01


@pytest.mark.slow
def test_lognormal_times_have_the_mean_and_the_deviation_that_are_asked() -> None:
    variance = math.log(1.25)
    logs = np.log(times_s(ThinkTime.parse("lognormal:2:1")))
    assert float(logs.mean()) == pytest.approx(math.log(2) - variance / 2, abs=0.01)
    assert float(logs.std()) == pytest.approx(math.sqrt(variance), rel=0.02)


@pytest.mark.parametrize(
    ("other", "flag"),
    [
        ({"users": 0}, "--users"),
        ({"request_rate": 5.0}, "--request-rate"),
        ({"rate_profile": "5@5s"}, "--users"),
        ({"concurrency_profile": "5@5s"}, "--users"),
        ({"max_concurrency": 5}, "--max-concurrency"),
        ({"think_time": "long"}, "--think-time"),
    ],
)
def test_users_are_all_of_the_load(other: dict[str, object], flag: str) -> None:
    with pytest.raises(BadInput, match=flag):
        RunSettings(base_url="http://127.0.0.1:1", users=4).replace(**other).checked()


def test_users_are_the_most_requests_in_flight() -> None:
    assert RunSettings(users=4).max_concurrency == 4
