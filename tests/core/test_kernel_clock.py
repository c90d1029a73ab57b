"""The kernel clock: stamps on CLOCK_REALTIME become CLOCK_MONOTONIC, except around a step of
CLOCK_REALTIME.
"""

from loadgen.core.kernel_clock import KernelClock

MS = 1_000_000
AHEAD = 1_700_000_000 * 10**9  # CLOCK_REALTIME less CLOCK_MONOTONIC, ns


def observed(*pairs: tuple[int, int, int]) -> KernelClock:
    """A clock that has taken these pairs: CLOCK_MONOTONIC before, CLOCK_REALTIME less AHEAD,
    CLOCK_MONOTONIC after.
    """
    clock = KernelClock()
    for before, on_real, after in pairs:
        clock.observe(before, AHEAD + on_real, after)
    return clock


def test_clock_without_a_pair_converts_nothing() -> None:
    assert KernelClock().convert(AHEAD) is None


def test_stamp_is_converted_by_the_middle_of_the_pair() -> None:
    clock = observed((1000, 1100, 1200))
    assert clock.convert(AHEAD + 5000) == 5000
    assert clock.max_width_ns == 200


def test_latest_pair_counts() -> None:
    # 400 ns in a millisecond: corrected without a step
    clock = observed((1, 51, 101), (MS + 1, MS + 451, MS + 101))
    assert clock.convert(AHEAD + 2 * MS) == 2 * MS - 400
    assert clock.steps == 0


def test_stamps_are_unusable_after_a_step_until_the_next_pair() -> None:
    for step_ns in (MS, -MS, 3600 * 10**9):
        clock = observed((1, 51, 101), (MS, MS + step_ns, MS + 100))
        assert clock.convert(AHEAD + MS) is None
        assert clock.steps == 1
        clock.observe(2 * MS, AHEAD + 2 * MS + step_ns, 2 * MS + 100)
        assert clock.convert(AHEAD + 3 * MS + step_ns) == 3 * MS + 50
        assert clock.steps == 1
