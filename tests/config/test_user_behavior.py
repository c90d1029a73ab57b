"""Think times, --disconnect and --retry are read as written; all else is refused with the field and
the remedy.

A think time has the mean and the quantiles that its text names.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.config.user_behavior import EarlyEnd, Retry, ThinkTime
from loadgen.errors import BadInput
from loadgen.util.arrays import Floats


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("5%@tokens=10", (0.05, 10, None)),
        ("0.5%@after=200ms", (0.005, None, 0.2)),
        (" 100%@after=0 ", (1.0, None, 0.0)),
    ],
)
def test_a_share_leaves_after_tokens_or_a_time(
    text: str, meaning: tuple[float, int | None, float | None]
) -> None:
    assert RunSettings(disconnect=text).early_ends == [EarlyEnd("disconnect", *meaning)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("5%", "invalid value"),
        ("5@tokens=10", "invalid value"),
        ("5%@bytes=10", "invalid value"),
        ("0%@tokens=10", "a share of 0%"),
        ("101%@tokens=10", "a share of 101%"),
        ("5%@tokens=0", "'0' is not a number of tokens"),
        ("5%@tokens=1.5", "'1.5' is not a number of tokens"),
        ("5%@after=soon", "'soon' is not a time"),
        ("100%@after=200", "200 has no unit; write after=200ms or after=200s"),
        ("5%@after=25h", "25h after a request was sent"),
        ("5%@after=-1s", "-1s after a request was sent"),
    ],
)
def test_other_values_are_refused(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refusal:
        RunSettings(disconnect=text).checked()
    assert refusal.value.field == "--disconnect"


def test_answers_in_one_piece_have_no_tokens_after_which_to_leave() -> None:
    settings = RunSettings(
        disconnect="5%@tokens=10", disable_stream=True, percentile_metrics="e2el"
    )
    with pytest.raises(BadInput, match="where answers come in one piece"):
        settings.checked()
    settings.replace(disconnect="5%@after=1s").checked()


COUNT = 100_000


def times_s(think: ThinkTime) -> Floats:
    return np.array(
        [think.draw_s(drawn) for drawn in np.random.default_rng(5).random((COUNT, 2)).tolist()]
    )


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0", ThinkTime("constant", (0,))),
        ("500ms", ThinkTime("constant", (0.5,))),
        ("1:3", ThinkTime("uniform", (1, 3))),
        ("exp:2s", ThinkTime("exp", (2,))),
        ("normal:1.5:500ms", ThinkTime("normal", (1.5, 0.5))),
        ("lognormal:2:500ms", ThinkTime("lognormal", (2, 0.5))),
    ],
)
def test_its_text_names_the_distribution(text: str, read: ThinkTime) -> None:
    assert ThinkTime.parse(text) == ThinkTime.parse(str(read)) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-1",
        "2d:x",
        "3:1",
        "1:2:3",
        "exp:",
        "exp:1:2",
        "lognormal:1",
        "normal:1",
        "nan",
        "86401",
        "exp",
        "gamma:1",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--think-time"):
        ThinkTime.parse(text)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("text", "quantile"),
    [
        ("exp:2", lambda share: -2 * math.log(1 - share)),
        ("1:3", lambda share: 1 + 2 * share),
        ("lognormal:2:0", lambda share: 2.0),
        ("normal:2:0", lambda share: 2.0),
        ("normal:20:4", NormalDist(20, 4).inv_cdf),
    ],
)
def test_drawn_times_have_the_quantiles_of_the_law(text: str, quantile) -> None:  # type: ignore[no-untyped-def]
    think = ThinkTime.parse(text)
    drawn = times_s(think)
    assert float(drawn.mean()) == pytest.approx(think.mean_s, rel=0.02)
    for share in (0.1, 0.5, 0.9, 0.99):
        # Six standard errors of a share, at most.
        assert float((drawn <= quantile(share) + 1e-9).mean()) >= share - 0.01
        assert float((drawn < quantile(share) - 1e-9).mean()) <= share + 0.01


def test_normal_times_below_0_are_drawn_again() -> None:
    drawn = times_s(ThinkTime.parse("normal:1:1"))
    assert drawn.min() >= 0
    below = NormalDist(1, 1).cdf(0)
    assert float(np.mean(drawn <= 1)) == pytest.approx((0.5 - below) / (1 - below), abs=0.01)


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


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("429", Retry((429,), 3)),
        ("429,503", Retry((429, 503), 3)),
        ("429, 503", Retry((429, 503), 3)),
        ("503@attempts=2", Retry((503,), 2)),
    ],
)
def test_statuses_are_retried_a_number_of_times(text: str, meaning: Retry) -> None:
    assert Retry.parse(text) == meaning


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("429;503", "invalid value"),
        ("429@tries=3", "invalid value"),
        ("200", "200 is not the status of an error"),
        ("429,600", "600 is not the status of an error"),
        ("429@attempts=1", "1 attempts"),
        ("429@attempts=101", "101 attempts"),
    ],
)
def test_other_retries_are_refused(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refusal:
        RunSettings(retry=text).checked()
    assert refusal.value.field == "--retry"


@pytest.mark.parametrize("attempts", ["1", "101", "99999"])
def test_attempts_out_of_range_are_refused_with_the_range(attempts: str) -> None:
    with pytest.raises(BadInput) as refused:
        Retry.parse(f"429@attempts={attempts}")
    assert (
        str(refused.value)
        == f"--retry: {attempts} attempts; give 2 to 100 attempts, or leave --retry out"
    )
