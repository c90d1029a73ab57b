"""ClientUsage adds up what several processes used and keeps the worst of their delays."""

from loadgen.metrics.client_cpu_usage import ClientUsage
from tests.helpers.run_facts import CLIENT


def test_usage_of_a_single_process_is_unchanged():
    assert ClientUsage.together([CLIENT]) == CLIENT


def test_cpu_and_memory_add_up_and_the_busiest_loop_counts():
    a = ClientUsage(wall_s=2.0, cpu_s=1.0, busy_share=0.5, peak_memory_bytes=100)
    b = ClientUsage(wall_s=2.1, cpu_s=0.5, busy_share=0.25, peak_memory_bytes=50)
    assert ClientUsage.together([a, b]) == ClientUsage(
        wall_s=2.1, cpu_s=1.5, busy_share=0.5, peak_memory_bytes=150
    )


def test_the_machine_is_the_same_for_all():
    a = ClientUsage(
        engine_cpu_s=3.0, engine_runs=True, stolen_share=0.01, throttled_s=0.0, disturbance=""
    )
    b = ClientUsage(
        engine_cpu_s=3.1, engine_runs=False, stolen_share=0.02, throttled_s=0.5, disturbance="a hog"
    )
    together = ClientUsage.together([a, b])
    assert (together.engine_cpu_s, together.engine_runs) == (3.1, False)
    assert (together.stolen_share, together.throttled_s, together.disturbance) == (
        0.02,
        0.5,
        "a hog",
    )
    assert ClientUsage.together([b, a]) == together


def test_connections_are_reused_only_if_every_process_reused():
    assert not ClientUsage.together(
        [ClientUsage(connections_reused=True), ClientUsage(connections_reused=False)]
    ).connections_reused


def test_records_that_one_could_not_write_are_not_complete():
    assert (
        ClientUsage.together(
            [ClientUsage(), ClientUsage(records_error="No space left")]
        ).records_error
        == "No space left"
    )


def test_usage_of_a_lost_process_is_left_out():
    assert ClientUsage.together([ClientUsage(), CLIENT]) == CLIENT


def test_unknown_usage_stays_unknown():
    assert ClientUsage.together([ClientUsage(), ClientUsage()]) == ClientUsage()
