"""The cost model in virtual time: no clock, no socket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.sim.scheduler import Limits, Progress, Scheduler, Sequence, StepCosts
from loadgen.engines.sim.settings import SimSettings
from tests.helpers.sim_steps import MS, poisson, steps

ROOMY = Limits(max_num_seqs=100, max_num_batched_tokens=1000, num_kv_tokens=10_000)
COSTS = StepCosts(
    base_ns=8 * MS, prefill_ns_per_token=100, decode_ns_per_seq=500, kv_ns_per_token=1
)


def scheduler(limits: Limits = ROOMY, costs: StepCosts = COSTS) -> Scheduler[Sequence]:
    return Scheduler(limits, costs)


def test_lone_request_takes_one_prefill_then_decode_steps() -> None:
    engine = scheduler()
    taken = list(steps(engine, [Sequence(prompt_tokens=10, output_tokens=3)]))
    prefill = 8 * MS + 10 * 100 + 10
    first_decode, second_decode = 8 * MS + 500 + 11, 8 * MS + 500 + 12
    assert [step.end_ns - step.begin_ns for step, _ in taken] == [
        prefill,
        first_decode,
        second_decode,
    ]
    assert [step.begin_ns for step, _ in taken[1:]] == [step.end_ns for step, _ in taken[:-1]]
    assert [len(progress.started) for _, progress in taken] == [1, 0, 0]
    assert [len(progress.finished) for _, progress in taken] == [0, 0, 1]


def test_an_answer_of_one_token_finishes_with_its_prefill() -> None:
    [(_, progress)] = steps(scheduler(), [Sequence(prompt_tokens=10, output_tokens=1)])
    assert len(progress.finished) == 1
    assert not progress.started


def test_a_long_prompt_is_prefilled_in_chunks() -> None:
    engine = scheduler()
    taken = list(steps(engine, [Sequence(prompt_tokens=2500, output_tokens=1)]))
    assert [step.prefill_tokens for step, _ in taken] == [1000, 1000, 500]
    assert [len(progress.finished) for _, progress in taken] == [0, 0, 1]


def test_decodes_come_before_prefill_and_share_the_step() -> None:
    engine = scheduler(Limits(max_num_seqs=4, max_num_batched_tokens=10, num_kv_tokens=1000))
    short, long = Sequence(4, output_tokens=5), Sequence(20, output_tokens=1)
    taken = list(steps(engine, [short, long]))
    assert [(step.decodes, step.prefill_tokens) for step, _ in taken[:4]] == [
        (0, 10),
        (1, 9),
        (1, 5),
        (1, 0),
    ]


def test_unchunked_prompt_waits_for_room_in_a_step() -> None:
    engine = scheduler(
        Limits(max_num_seqs=4, max_num_batched_tokens=10, num_kv_tokens=1000, chunked_prefill=False)
    )
    short, long = Sequence(4, output_tokens=3), Sequence(10, output_tokens=1)
    taken = list(steps(engine, [short, long]))
    assert [(step.decodes, step.prefill_tokens) for step, _ in taken] == [
        (0, 4),
        (1, 0),
        (1, 0),
        (0, 10),
    ]


def test_matmul_time_is_maximum_of_weights_and_tokens() -> None:
    costs = StepCosts(100, 0, 0, 0, weights_ns=500, matmul_ns_per_token=10)
    assert costs.duration_ns(20, 20, 0) == 600
    assert costs.duration_ns(60, 20, 0) == 900


def test_attention_counts_each_pair_once_in_any_chunking() -> None:
    costs = StepCosts(0, 0, 0, 0, attention_ns_per_pair=2)
    for budget in (1000, 64, 7):
        engine = scheduler(
            Limits(max_num_seqs=1, max_num_batched_tokens=budget, num_kv_tokens=10_000), costs
        )
        *_, (last, _) = steps(engine, [Sequence(100, output_tokens=1)])
        # Each of up to 15 steps is rounded.
        assert last.end_ns == pytest.approx(2 * 100 * 101 / 2, abs=16)


def test_noise_stretches_each_step_by_a_factor() -> None:
    factors = iter([2.0, 0.5])
    noisy: Scheduler[Sequence] = Scheduler(ROOMY, StepCosts(100, 0, 0, 0), lambda: next(factors))
    assert [step.end_ns - step.begin_ns for step, _ in steps(noisy, [Sequence(10, 2)])] == [200, 50]


def test_sequences_start_in_the_order_they_came() -> None:
    engine = scheduler(Limits(max_num_seqs=2, max_num_batched_tokens=64, num_kv_tokens=200))
    sequences = [Sequence(length, output_tokens=3) for length in (150, 100, 10, 5, 120, 1)]
    started = [each for _, progress in steps(engine, sequences) for each in progress.started]
    assert started == sequences


def test_a_sequence_is_not_seen_before_it_is_ready() -> None:
    engine = scheduler()
    engine.add(Sequence(10, 1, ready_ns=5))
    assert engine.plan(4) is None
    assert engine.next_ready_ns == 5
    assert engine.plan(5) is not None


def test_running_sequences_never_exceed_the_limit() -> None:
    engine = scheduler(Limits(max_num_seqs=3, max_num_batched_tokens=1000, num_kv_tokens=10_000))
    for step, _ in steps(engine, [Sequence(10, 4) for _ in range(10)]):
        assert step.decodes <= 3
        assert engine.running <= 3


def test_a_prompt_that_does_not_fit_waits_for_cache() -> None:
    engine = scheduler(Limits(max_num_seqs=8, max_num_batched_tokens=1000, num_kv_tokens=100))
    first, second = Sequence(60, 2), Sequence(60, 2)
    (_, one), *_ = taken = list(steps(engine, [first, second]))
    assert one.started == [first]
    assert [each for _, progress in taken for each in progress.finished] == [first, second]
    assert engine.preemptions == 0


def test_preempted_sequence_is_recomputed_without_lost_tokens() -> None:
    engine = scheduler(Limits(max_num_seqs=8, max_num_batched_tokens=1000, num_kv_tokens=64))
    first, second = Sequence(30, 20), Sequence(30, 20)
    taken = list(steps(engine, [first, second]))
    assert engine.preemptions == 1
    assert [each for _, progress in taken for each in progress.finished] == [first, second]
    # Its prompt once, and again with the tokens it had generated: both had two when the cache was
    # full.
    assert sum(step.prefill_tokens for step, _ in taken) == 30 + 30 + (30 + 3)
    assert sum(each is second for _, progress in taken for each in progress.started) == 1


def test_cancelling_frees_what_a_sequence_holds_wherever_it_is() -> None:
    engine = scheduler(Limits(max_num_seqs=2, max_num_batched_tokens=10, num_kv_tokens=1000))
    decoding, prefilling, waiting = Sequence(2, 50), Sequence(30, 50), Sequence(5, 50)
    for sequence in (decoding, prefilling, waiting):
        engine.add(sequence)
    step = engine.plan(0)
    assert step is not None
    engine.complete(step)
    step = engine.plan(step.end_ns)
    assert step is not None
    assert (engine.running, engine.waiting) == (2, 1)
    for sequence in (decoding, prefilling, waiting):
        engine.cancel(sequence)
        engine.cancel(sequence)
    assert (engine.running, engine.waiting, engine.kv_tokens) == (0, 0, 0)
    progress = engine.complete(step)
    assert progress == Progress()


@given(
    lengths=st.lists(
        st.tuples(st.integers(1, 60), st.integers(1, 40), st.integers(0, 500 * MS)),
        min_size=1,
        max_size=40,
    ),
    max_num_seqs=st.integers(1, 8),
    spare_tokens=st.integers(0, 30),
    num_kv_tokens=st.integers(100, 300),
    cancelled=st.sets(st.integers(0, 39)),
)
def test_limits_hold_and_each_token_comes_once_for_any_load(
    lengths: list[tuple[int, int, int]],
    max_num_seqs: int,
    spare_tokens: int,
    num_kv_tokens: int,
    cancelled: set[int],
) -> None:
    limits = Limits(max_num_seqs, max_num_seqs + spare_tokens, num_kv_tokens)
    engine = scheduler(limits)
    arrivals = sorted((Sequence(*each) for each in lengths), key=lambda each: each.ready_ns)
    doomed = [each for number, each in enumerate(arrivals) if number in cancelled]
    brought: dict[Sequence, int] = dict.fromkeys(arrivals, 0)
    for step, progress in steps(engine, arrivals):
        assert 0 < step.decodes + step.prefill_tokens <= limits.max_num_batched_tokens
        assert step.prefill_tokens == sum(tokens for _, tokens in step.chunks)
        assert step.end_ns - step.begin_ns >= COSTS.base_ns
        for each in (*progress.started, *progress.continued, *progress.finished):
            brought[each] += 1
            assert brought[each] == each.generated
        assert engine.kv_tokens == sum(each.held for each in arrivals) <= num_kv_tokens
        assert engine.running <= max_num_seqs
        for each in doomed[:1]:
            if each.generated:
                engine.cancel(doomed.pop(0))
    survivors = [each for each in arrivals if each.generated == each.output_tokens]
    assert len(survivors) >= len(arrivals) - len(cancelled)
    assert (engine.running, engine.waiting, engine.kv_tokens) == (0, 0, 0)


@pytest.mark.parametrize(("rate", "kept_up"), [(1000, True), (4000, False)])
@pytest.mark.slow
def test_default_deployment_sustains_1000_but_not_4000_rps(rate: int, kept_up: bool) -> None:
    settings = SimSettings()
    engine: Scheduler[Sequence] = Scheduler(settings.limits, settings.costs)
    ttft_ms, itl_ms = [], []
    for step, progress in steps(engine, poisson(settings, rate, 4 * rate, 1024, 128)):
        itl_ms.extend([(step.end_ns - step.begin_ns) / MS] * step.decodes)
        ttft_ms.extend(
            (step.end_ns - each.ready_ns) / MS + settings.frontend_ms for each in progress.started
        )
    ttft_ms.sort()
    itl_ms.sort()
    assert (ttft_ms[len(ttft_ms) * 99 // 100] < 40) is kept_up
    if kept_up:
        assert 20 < ttft_ms[len(ttft_ms) // 2] < 30
        assert 8 < itl_ms[len(itl_ms) // 2] < 12


def test_a_lower_priority_number_is_admitted_first_and_equals_in_their_order() -> None:
    engine = scheduler(Limits(max_num_seqs=1, max_num_batched_tokens=64, num_kv_tokens=200))
    sequences = [Sequence(8, output_tokens=1, priority=number) for number in (0, 5, 1, 5, -2, 1)]
    finished = [each for _, progress in steps(engine, sequences) for each in progress.finished]
    assert [sequences.index(each) for each in finished] == [4, 0, 2, 5, 1, 3]


def test_a_priority_waits_for_what_runs() -> None:
    engine = scheduler(Limits(max_num_seqs=1, max_num_batched_tokens=64, num_kv_tokens=200))
    long, urgent = (
        Sequence(8, output_tokens=50),
        Sequence(8, output_tokens=1, ready_ns=1, priority=-1),
    )
    finished = [each for _, progress in steps(engine, [long, urgent]) for each in progress.finished]
    assert finished == [long, urgent]
    assert engine.preemptions == 0


def test_what_is_not_ready_holds_up_no_other_priority() -> None:
    engine = scheduler()
    early, late = (
        Sequence(8, output_tokens=1, priority=3),
        Sequence(8, output_tokens=1, ready_ns=100 * MS),
    )
    engine.add(early)
    engine.add(late)
    assert engine.next_ready_ns == 0
    step = engine.plan(0)
    assert step is not None
    assert [sequence for sequence, _ in step.chunks] == [early]
    engine.complete(step)
    assert engine.next_ready_ns == 100 * MS


def test_cache_is_taken_from_the_highest_priority_number() -> None:
    engine = scheduler(Limits(max_num_seqs=3, max_num_batched_tokens=100, num_kv_tokens=64))
    first, background, last = (
        Sequence(20, output_tokens=10, priority=number) for number in (0, 9, 0)
    )
    finished = [
        each
        for _, progress in steps(engine, [first, background, last])
        for each in progress.finished
    ]
    assert engine.preemptions == 1
    assert finished == [first, last, background]


def test_a_waiting_sequence_can_be_cancelled_at_any_priority() -> None:
    engine = scheduler()
    sequences = [Sequence(8, output_tokens=1, priority=number) for number in (2, 1, 2)]
    for each in sequences:
        engine.add(each)
    for each in (sequences[1], sequences[0]):
        engine.cancel(each)
    step = engine.plan(0)
    assert step is not None
    assert [sequence for sequence, _ in step.chunks] == [sequences[2]]
    assert engine.waiting == 0
