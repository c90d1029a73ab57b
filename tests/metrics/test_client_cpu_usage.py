"""ClientUsage: what several processes took adds up; of what each of them met, the worst is kept."""

from loadgen.metrics.client_cpu_usage import ClientUsage
from tests.helpers.run_facts import CLIENT


def test_one_alone_is_what_it_is():
    assert ClientUsage.together([CLIENT]) == CLIENT


def test_what_they_took_adds_up_and_the_busiest_loop_counts():
    a = ClientUsage(wall_s=2.0, cpu_s=1.0, busy_share=0.5, peak_memory_bytes=100)
    b = ClientUsage(wall_s=2.1, cpu_s=0.5, busy_share=0.25, peak_memory_bytes=50)
    assert ClientUsage.together([a, b]) == ClientUsage(wall_s=2.1, cpu_s=1.5, busy_share=0.5, peak_memory_bytes=150)


def test_the_machine_is_the_same_for_all():
    a = ClientUsage(engine_cpu_s=3.0, engine_runs=True, stolen_share=0.01, throttled_s=0.0, disturbance="")
    b = ClientUsage(engine_cpu_s=3.1, engine_runs=False, stolen_share=0.02, throttled_s=0.5, disturbance="a hog")
    together = ClientUsage.together([a, b])
    assert (together.engine_cpu_s, together.engine_runs) == (3.1, False)
    assert (together.stolen_share, together.throttled_s, together.disturbance) == (0.02, 0.5, "a hog")
    assert ClientUsage.together([b, a]) == together


def test_a_server_that_closes_the_connections_of_one_closes_those_of_all():
    assert not ClientUsage.together(
        [ClientUsage(connections_reused=True), ClientUsage(connections_reused=False)]
    ).connections_reused


def test_records_that_one_could_not_write_are_not_complete():
    assert (
        ClientUsage.together([ClientUsage(), ClientUsage(records_error="No space left")]).records_error
        == "No space left"
    )


def test_one_that_did_not_live_to_tell_takes_nothing_from_the_others():
    assert ClientUsage.together([ClientUsage(), CLIENT]) == CLIENT


def test_what_nobody_told_is_not_known():
    assert ClientUsage.together([ClientUsage(), ClientUsage()]) == ClientUsage()
