"""A schedule has the asked count, rate and kind of gaps, and is the same for a seed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.arrivals import CLOSED_LOOP_RPS, ExponentialRamp, Flat, LinearRamp, Schedule
from loadgen.workload.due_times import DRAWN, FOLLOWS

S = 1_000_000_000
RATES = st.floats(0.01, 1e6)
SHAPES = st.one_of(st.floats(0.01, 100), st.just(1), st.just(math.inf))
RAMPS = st.builds(
    lambda kind, start, factor: kind(start, start * factor),
    st.sampled_from([LinearRamp, ExponentialRamp]),
    st.floats(0.1, 1000),
    st.floats(1.001, 1000),
)
PROFILES = st.one_of(st.builds(Flat, RATES), RAMPS)


def of(seed=0, **options):
    return Schedule.from_settings(RunSettings(**options), seed)


def ks_distance_to_exponential(gaps):
    """The Kolmogorov-Smirnov statistic of `gaps` against the exponential distribution of their
    mean.
    """
    ordered = np.sort(gaps / gaps.mean())
    below = 1 - np.exp(-ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return max(np.max(steps[1:] - below), np.max(below - steps[:-1]))


# -- what every schedule is


@given(PROFILES, st.integers(1, 500), SHAPES, st.integers(0, 2**63))
def test_count_is_met_within_the_window(rate, count, burstiness, seed):
    schedule = Schedule.draw(rate, count=count, burstiness=burstiness, seed=seed)
    assert schedule.count == len(schedule.due_ns) == count
    assert schedule.due_ns.dtype == np.int64
    assert np.all(np.diff(schedule.due_ns) >= 0)
    assert schedule.due_ns[0] >= 0
    assert schedule.due_ns[-1] <= schedule.duration_ns + 1
    assert schedule.duration_ns == pytest.approx(count / rate.mean_rps * S, abs=1, rel=1e-12)
    a_nanosecond = 1 / schedule.duration_ns
    assert schedule.rate == pytest.approx(rate.mean_rps, rel=1e-12 + a_nanosecond)


@given(
    PROFILES,
    st.floats(0.001, 10),
    st.one_of(st.none(), st.integers(1, 50)),
    SHAPES,
    st.integers(0, 99),
)
def test_duration_bounds_due_times_and_count(rate, seconds, count, burstiness, seed):
    if rate.mean_rps * seconds > 10_000:
        seconds = 10_000 / rate.mean_rps
    try:
        schedule = Schedule.draw(
            rate, count=count, duration_s=seconds, burstiness=burstiness, seed=seed
        )
    except BadInput:
        return  # by chance, nothing was due
    assert np.all(np.diff(schedule.due_ns) >= 0)
    assert schedule.duration_ns <= seconds * S + 1
    assert schedule.due_ns[-1] <= schedule.duration_ns + 1
    assert count is None or schedule.count <= count


@given(PROFILES, SHAPES, st.integers(0, 2**63), st.integers(1, 100))
def test_the_same_seed_gives_the_same_schedule_and_hash(rate, burstiness, seed, count):
    first, second = (
        Schedule.draw(rate, count=count, burstiness=burstiness, seed=seed) for _ in range(2)
    )
    assert np.array_equal(first.due_ns, second.due_ns)
    assert first.sha256 == second.sha256


def test_another_seed_gives_another_schedule():
    assert len({Schedule.poisson(100, 10, seed).sha256 for seed in range(20)}) == 20


def test_the_hash_is_of_the_times_as_little_endian_int64():
    assert (
        Schedule.burst(2).sha256
        == "374708fff7719dd5979ec875d56cd2286f6d3cf7ec317a3b25632aab28ec37bb"
    )


def test_due_times_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        Schedule.constant(10, 5).due_ns[0] = 1


# -- stripes


@given(st.integers(1, 60), st.integers(1, 80))
def test_the_stripes_are_the_whole_each_request_in_one_of_them(count, n):
    schedule = Schedule.poisson(100, count, seed=1)
    stripes = [schedule.stripe(i, n) for i in range(n)]
    numbers, due = (
        np.concatenate(parts) for parts in zip(*(stripe[:2] for stripe in stripes), strict=True)
    )
    order = np.argsort(numbers)
    assert np.array_equal(numbers[order], np.arange(count))
    assert np.array_equal(due[order], schedule.due_ns)
    assert all(len(part) in (count // n, count // n + 1) for part, *_ in stripes)


def test_the_only_stripe_is_the_schedule():
    schedule = Schedule.poisson(100, 10, seed=1)
    numbers, due, _ = schedule.stripe(0, 1)
    assert list(numbers) == list(range(10))
    assert np.array_equal(due, schedule.due_ns)


@pytest.mark.parametrize(("i", "n"), [(-1, 2), (2, 2), (0, 0)])
def test_a_stripe_that_is_not_there_is_refused(i, n):
    with pytest.raises(ValueError, match=f"invalid stripe {i} of {n}"):
        Schedule.burst(4).stripe(i, n)


# -- shapes of load


def test_a_constant_rate_is_evenly_spaced_from_the_start():
    assert Schedule.constant(4, 5).due_ns.tolist() == [0, S // 4, S // 2, 3 * S // 4, S]
    assert of(request_rate=4, burstiness=math.inf, num_prompts=3).due_ns.tolist() == [
        0,
        S // 4,
        S // 2,
    ]


@pytest.mark.parametrize(
    ("rate", "seconds", "count"), [(10, 10, 100), (0.3, 10, 3), (3, 1 / 3, 1), (7, 1.5, 11)]
)
def test_constant_rate_fills_the_duration(rate, seconds, count):
    assert of(request_rate=rate, burstiness=math.inf, duration=seconds).count == count


def test_a_burst_is_due_at_once():
    burst = of(num_prompts=7)
    assert burst.due_ns.tolist() == [0] * 7
    assert (burst.duration_ns, burst.rate) == (0, math.inf)


def test_duration_burst_has_enough_requests():
    assert of(duration=2, max_concurrency=8).count == 2 * CLOSED_LOOP_RPS
    assert of(duration=2, max_concurrency=8, num_prompts=5).count == 5


def test_each_user_of_a_short_run_has_a_request():
    assert of(duration=1, users=CLOSED_LOOP_RPS + 5).count == CLOSED_LOOP_RPS + 5


def test_a_thousand_requests_unless_it_is_said():
    assert of().count == of(request_rate=50).count == 1000


def test_poisson_gaps_are_exponential():
    gaps = np.diff(Schedule.poisson(1000, 100_000, seed=3).due_ns)
    assert ks_distance_to_exponential(gaps) < 1.63 / math.sqrt(len(gaps))  # the 1 % critical value


@pytest.mark.parametrize("shape", [0.25, 0.5, 2, 10])
def test_burstiness_is_the_inverse_squared_variation(shape):
    gaps = np.diff(of(request_rate=1000, burstiness=shape, num_prompts=200_000).due_ns).astype(
        float
    )
    assert (gaps.std() / gaps.mean()) ** 2 == pytest.approx(1 / shape, rel=0.05)


def test_count_last_request_ends_the_window_as_in_vllm():
    for shape in (0.2, 1, 5):
        assert of(request_rate=20, num_prompts=100, burstiness=shape).due_ns[-1] == 5 * S


@pytest.mark.slow
def test_duration_poisson_count_variance_equals_mean():
    counts = [of(seed, request_rate=100, duration=1).count for seed in range(400)]
    assert np.mean(counts) == pytest.approx(100, abs=4 * 10 / math.sqrt(400))
    assert np.var(counts) == pytest.approx(100, rel=0.3)


@pytest.mark.parametrize("shape", [0.01, 0.1, 4])
@pytest.mark.slow
def test_with_a_duration_the_rate_is_the_same_from_the_start(shape):
    """Bursts do not begin with the run: of shape 0.01 its first tenth would have 100 in place of
    60.
    """
    runs = [of(seed, request_rate=10, duration=60, burstiness=shape).due_ns for seed in range(600)]
    whole, first = (np.array([np.sum(due < seconds * S) for due in runs]) for seconds in (60, 6))
    assert whole.mean() == pytest.approx(600, abs=3 * whole.std() / math.sqrt(600))
    assert first.mean() == pytest.approx(60, abs=3 * first.std() / math.sqrt(600))


@pytest.mark.parametrize(
    ("bound", "sha256"),
    [({"num_prompts": 200}, "9c2d7ff1bed80ced"), ({"duration": 20}, "f4414779af680c22")],
)
def test_a_poisson_schedule_is_that_of_earlier_versions(bound, sha256):
    assert of(request_rate=10, **bound).sha256.startswith(sha256)


@pytest.mark.slow
def test_duration_poisson_counts_are_poisson_dispersed():
    """Their variance is their mean; with a count the total is fixed, and those of half a run
    vary half as much.
    """
    timed = [of(seed, request_rate=100, duration=10).due_ns for seed in range(400)]
    counted = [of(seed, request_rate=100, num_prompts=1000).due_ns for seed in range(400)]
    halves = [np.array([np.sum(due < 5 * S) for due in runs]) for runs in (timed, counted)]
    dispersion = [half.var() / half.mean() for half in halves]
    # Of a bridge, 1 - the part of the window.
    assert dispersion == pytest.approx([1.0, 0.5], rel=0.2)


def test_count_and_duration_the_first_to_end_decides():
    by_count = of(request_rate=100, num_prompts=100, duration=5)
    assert (by_count.count, by_count.due_ns[-1]) == (100, S)
    by_duration = of(request_rate=100, num_prompts=1000, duration=5)
    assert 400 < by_duration.count < 600
    assert by_duration.duration_ns == 5 * S


@pytest.mark.parametrize("rate", [0.3, 3, 7, 1000 / 3])
def test_a_count_and_a_duration_that_agree_are_the_count(rate):
    assert of(request_rate=rate, num_prompts=100, duration=100 / rate * (1 - 1e-15)).count == 100


@pytest.mark.parametrize("kind", [LinearRamp, ExponentialRamp])
@pytest.mark.parametrize("burstiness", [1, math.inf])
def test_ramp_follows_its_integrated_rate(kind, burstiness):
    ramp, count = kind(10, 1000), 200_000
    schedule = Schedule.draw(ramp, count=count, burstiness=burstiness, seed=5)
    ends = np.linspace(0, schedule.duration_ns / S, 21)
    fine = np.linspace(0, 1, 100_001)
    rates = 10 + 990 * fine if kind is LinearRamp else 10 * 100**fine
    integral = (
        np.concatenate(([0], np.cumsum((rates[1:] + rates[:-1]) / 2 * np.diff(fine)))) * ends[-1]
    )
    expected = np.interp(ends / ends[-1], fine, integral)
    seen = np.searchsorted(schedule.due_ns, ends * S)
    assert expected[-1] == pytest.approx(count, rel=1e-6)
    assert np.max(np.abs(seen - expected)) <= (
        2 if math.isinf(burstiness) else 1.63 * math.sqrt(count)
    )


@pytest.mark.parametrize("strategy", ["linear", "exponential"])
@pytest.mark.parametrize(
    "bound", [{"num_prompts": 5000}, {"duration": 20}, {"num_prompts": 50_000, "duration": 20}]
)
def test_a_ramp_reaches_its_end_rate_when_the_run_ends(strategy, bound):
    schedule = of(
        ramp_up_strategy=strategy,
        ramp_up_start_rps=50,
        ramp_up_end_rps=500,
        burstiness=math.inf,
        **bound,
    )
    first, last = np.diff(schedule.due_ns)[[0, -1]]
    assert S / first == pytest.approx(50, rel=0.05)
    assert S / last == pytest.approx(500, rel=0.01)


def test_ramp_may_start_from_zero():
    schedule = Schedule.draw(LinearRamp(0, 10), count=5, burstiness=math.inf, seed=0)
    assert schedule.due_ns.tolist() == [int(math.sqrt(i / 5) * S) for i in range(5)]


def test_ramp_gaps_are_a_poisson_process_in_stretched_time():
    ramp = LinearRamp(10, 1000)
    due_s = Schedule.draw(ramp, count=100_000, burstiness=1, seed=5).due_ns / S
    slope = 990 / (100_000 / ramp.mean_rps)
    gaps = np.diff(10 * due_s + slope * due_s**2 / 2)
    assert ks_distance_to_exponential(gaps) < 1.63 / math.sqrt(len(gaps))


# -- the edges


def test_a_very_slow_rate_does_not_overflow():
    due = of(request_rate=0.01, num_prompts=1_000_000).due_ns
    assert due[-1] == 10**8 * S
    assert np.all(np.diff(due) >= 0)


def test_a_very_fast_rate_keeps_its_nanoseconds():
    due = of(request_rate=1e6, num_prompts=1_000_000).due_ns
    assert due[-1] == S
    assert np.mean(np.diff(due)) == pytest.approx(1000, rel=1e-3)
    assert of(request_rate=1e6, num_prompts=5, burstiness=math.inf).due_ns.tolist() == [
        0,
        1000,
        2000,
        3000,
        4000,
    ]


def test_schedule_may_hold_a_single_request():
    assert Schedule.poisson(10, 1, seed=0).due_ns.tolist() == [S // 10]
    assert Schedule.constant(10, 1).due_ns.tolist() == [0]


@pytest.mark.parametrize("seed", range(20))
def test_the_burstiest_gaps_still_make_a_schedule(seed):
    for count in (1, 2, 1000):
        schedule = Schedule.draw(Flat(10), count=count, burstiness=1e-3, seed=seed)
        assert schedule.count == count
        assert 0 <= schedule.due_ns[0] <= schedule.due_ns[-1] <= schedule.duration_ns


def test_the_draw_goes_on_until_the_duration_is_full():
    ends = [
        of(seed, request_rate=10, burstiness=0.01, duration=100).due_ns[-1] for seed in range(50)
    ]
    assert max(ends) > 90 * S


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"request_rate": 1, "duration": 1e-9}, "--duration"),
        ({"request_rate": 0, "num_prompts": 5}, "--request-rate"),
        ({"request_rate": -1, "num_prompts": 5}, "--request-rate"),
        ({"request_rate": math.nan, "num_prompts": 5}, "--request-rate"),
        ({"request_rate": 1e-300, "num_prompts": 5}, "--request-rate"),
        ({"request_rate": 10, "num_prompts": -1}, "--num-prompts"),
        ({"num_prompts": -1}, "--num-prompts"),
        ({"request_rate": 10, "burstiness": 1e-4}, "--burstiness"),
        ({"request_rate": 10, "burstiness": math.nan}, "--burstiness"),
        ({"request_rate": 10, "duration": -1}, "--request-rate"),
    ],
)
def test_impossible_schedule_is_refused_with_its_flag(options, field):
    with pytest.raises(BadInput) as caught:
        of(**options)
    assert caught.value.field == field


def test_a_schedule_needs_a_bound():
    with pytest.raises(BadInput, match="a run of inf s"):
        Schedule.draw(Flat(10), burstiness=1, seed=0)


# -- what the prompts say of their due times


def asked(*turns):
    """What sessions of so many turns say of theirs."""
    return np.array(
        [DRAWN if turn == 0 else FOLLOWS for length in turns for turn in range(length)],
        dtype=np.int64,
    )


def test_arrival_process_starts_sessions():
    settings = RunSettings(request_rate=10.0, num_prompts=6)
    schedule = Schedule.from_settings(settings, 3, asked(2, 1, 3))
    three = Schedule.poisson(10, 3, 3)
    assert schedule.due_ns[[0, 2, 3]].tolist() == three.due_ns.tolist()
    assert schedule.due_ns[[1, 4, 5]].tolist() == [FOLLOWS] * 3
    assert schedule.duration_ns == three.duration_ns
    assert schedule.begins.tolist() == [True, False, True, True, False, False]


def test_a_duration_that_holds_fewer_sessions_cuts_whole_ones():
    settings = RunSettings(request_rate=10.0, burstiness=math.inf, num_prompts=60, duration=0.2)
    assert Schedule.from_settings(settings, 3, asked(*[3] * 20)).count == 6


def test_more_sessions_than_there_are_cannot_begin():
    settings = RunSettings(request_rate=10.0, burstiness=math.inf, duration=0.5)
    with pytest.raises(BadInput, match="has 2 sessions, and 5 are due"):
        Schedule.from_settings(settings, 3, asked(2, 2))


def test_a_burst_of_sessions_begins_them_all_at_once():
    schedule = Schedule.from_settings(RunSettings(num_prompts=5), 3, asked(2, 3))
    assert schedule.due_ns.tolist() == [0, FOLLOWS, 0, FOLLOWS, FOLLOWS]
    assert schedule.duration_ns == 0


def test_timed_closed_loop_repeats_its_sessions():
    settings = RunSettings(max_concurrency=2, duration=0.0007)
    assert Schedule.from_settings(settings, 3, asked(2, 1)).due_ns.tolist() == [
        0,
        FOLLOWS,
        0,
        0,
        FOLLOWS,
        0,
        0,
    ]


def test_trace_due_times_replace_the_arrival_process():
    schedule = Schedule.from_settings(RunSettings(), 3, np.array([0, 5, 5, FOLLOWS, 9]))
    assert schedule.due_ns.tolist() == [0, 5, 5, FOLLOWS, 9]
    assert schedule.duration_ns == 9


def test_a_duration_cuts_a_trace():
    schedule = Schedule.from_settings(
        RunSettings(duration=1.0), 3, np.array([0, 10**9 - 1, FOLLOWS, 10**9, 2 * 10**9])
    )
    assert schedule.due_ns.tolist() == [0, 10**9 - 1, FOLLOWS]


@pytest.mark.parametrize("due", [[5, 4], [0, DRAWN], [DRAWN, 3]])
def test_unsorted_or_partial_due_times_are_refused(due):
    with pytest.raises(BadInput, match="not sorted"):
        Schedule.from_settings(RunSettings(), 3, np.array(due))


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"request_rate": 5.0}, "--request-rate"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 2.0},
            "--ramp-up-strategy",
        ),
    ],
)
def test_a_rate_beside_due_times_is_refused(given, flag):
    with pytest.raises(BadInput) as refused:
        Schedule.from_settings(RunSettings(**given), 3, np.array([0, 1]))
    assert refused.value.field == flag


def test_stripes_are_of_whole_sessions():
    schedule = Schedule.from_settings(RunSettings(num_prompts=7), 3, asked(2, 1, 3, 1))
    assert [schedule.stripe(i, 2).numbers.tolist() for i in range(2)] == [[0, 1, 3, 4, 5], [2, 6]]
