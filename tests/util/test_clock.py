"""An alarm rings once and never early on either kind of loop; lateness depends on the machine."""

import asyncio
import os
import resource
import time

import pytest
import uvloop

from loadgen.util.clock import Alarm, LoopAlarm, TimerfdAlarm, now_ns, unix_ns

MS = 1_000_000
HOUR = 3600 * 1000 * MS


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop(request):
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.get_loop()


@pytest.fixture(params=[TimerfdAlarm, LoopAlarm])
def kind(request):
    return request.param


def stop_after(loop, delay_ns):
    loop.call_later(delay_ns / 1e9, loop.stop)
    loop.run_forever()


def open_files():
    return sorted(os.listdir("/proc/self/fd"))


def test_the_kernels_timer_is_used_where_there_is_one():
    assert Alarm is TimerfdAlarm


def test_the_clock_is_monotonic_time():
    assert time.monotonic_ns() <= now_ns() <= time.monotonic_ns()


@pytest.mark.parametrize("delay_ns", [0, 1, 900, 123_456, 999_999, 1_000_001, 2_500_000])
def test_alarm_never_rings_early(loop, kind, delay_ns):
    rung = []

    def ring():
        rung.append(now_ns())
        loop.stop()

    alarm = kind(loop, ring)
    for _ in range(10):
        due = now_ns() + delay_ns
        alarm.set(due)
        loop.run_forever()
        assert rung[-1] >= due
    assert len(rung) == 10
    alarm.close()


@pytest.mark.parametrize("due", [-5, 0, 1, 10 * MS])
def test_past_alarm_rings_at_the_next_turn(loop, kind, due):
    rung = []
    alarm = kind(loop, lambda: (rung.append(due), loop.stop()))
    alarm.set(due)
    assert rung == []
    loop.run_forever()
    assert rung == [due]
    alarm.close()


def test_alarm_rings_once(loop, kind):
    rung = []
    alarm = kind(loop, lambda: rung.append(now_ns()))
    alarm.set(now_ns() + MS)
    stop_after(loop, 20 * MS)
    assert len(rung) == 1
    alarm.close()


def test_alarms_ring_in_the_order_of_their_times(loop, kind):
    rung = []
    start = now_ns() + 200 * MS
    alarms = [kind(loop, lambda name=name: rung.append(name)) for name in range(5)]
    for name in (3, 0, 4, 2, 1):
        alarms[name].set(start + (4 + 3 * name) * MS)
    last = kind(loop, loop.stop)
    last.set(start + 30 * MS)
    loop.run_forever()
    assert rung == [0, 1, 2, 3, 4]
    for alarm in (*alarms, last):
        alarm.close()


@pytest.mark.parametrize("first_ns", [1 * MS, 60 * MS, HOUR])
def test_setting_it_again_replaces_the_time_that_was_set(loop, kind, first_ns):
    rung = []
    alarm = kind(loop, lambda: rung.append(now_ns()))
    alarm.set(now_ns() + first_ns)
    due = now_ns() + 10 * MS
    alarm.set(due)
    while not rung:
        stop_after(loop, 20 * MS)
    assert len(rung) == 1
    assert rung[0] >= due
    alarm.close()


def test_alarm_can_be_set_from_its_own_callback(loop, kind):
    dues, rung = [now_ns() + step * MS for step in (1, 2, 3)], []

    def ring():
        rung.append(now_ns())
        if len(rung) < len(dues):
            alarm.set(dues[len(rung)])
        else:
            loop.stop()

    alarm = kind(loop, ring)
    alarm.set(dues[0])
    loop.run_forever()
    assert all(at >= due for at, due in zip(rung, dues, strict=True))
    alarm.close()


def test_postponed_alarm_does_not_ring_early(loop, kind):
    rung, put_off_to = [], now_ns() + 40 * MS

    def ring(name):
        rung.append((name, now_ns()))
        if len(rung) == 1:
            alarms[1 - name].set(put_off_to)
        else:
            loop.stop()

    alarms = [kind(loop, lambda name=name: ring(name)) for name in (0, 1)]
    for alarm in alarms:
        alarm.set(1)
    loop.run_forever()
    (first, _), (second, at) = rung
    assert {first, second} == {0, 1}
    assert at >= put_off_to
    for alarm in alarms:
        alarm.close()


def test_a_closed_alarm_never_rings_and_leaves_no_file_open(loop, kind):
    before, rung = open_files(), []
    alarm = kind(loop, lambda: rung.append(1))
    alarm.set(now_ns() + MS)
    alarm.close()
    alarm.close()
    assert open_files() == before
    stop_after(loop, 10 * MS)
    assert rung == []


def test_an_alarm_may_be_closed_by_its_callback(loop, kind):
    rung = []

    def ring():
        rung.append(1)
        alarm.close()

    alarm = kind(loop, ring)
    alarm.set(now_ns())
    stop_after(loop, 10 * MS)
    assert rung == [1]


def test_a_closed_timer_cannot_be_set(loop):
    alarm = TimerfdAlarm(loop, loop.stop)
    alarm.close()
    with pytest.raises(OSError, match="timerfd_settime: Bad file descriptor"):
        alarm.set(now_ns())


def test_a_lack_of_file_descriptors_is_said(loop):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="timerfd_create: Too many open files"):
            TimerfdAlarm(loop, loop.stop)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_time_since_1970_lies_between_two_readings_of_that_clock():
    before, monotonic_ns, after = time.time_ns(), now_ns(), time.time_ns()
    assert before - MS <= unix_ns(monotonic_ns) <= after + MS
    assert unix_ns(monotonic_ns + HOUR) == pytest.approx(unix_ns(monotonic_ns) + HOUR, abs=MS)


def test_the_closest_pair_of_readings_counts(monkeypatch):
    monotonic = iter([0, 900, 1000, 1002, *range(2000, 2000 + 900 * 14, 900)])
    real = iter([7_000_000, 5_000_001, *[9_000_000] * 7])
    monkeypatch.setattr("loadgen.util.clock.now_ns", lambda: next(monotonic))
    monkeypatch.setattr("time.time_ns", lambda: next(real))
    assert unix_ns(1001) == 5_000_001
