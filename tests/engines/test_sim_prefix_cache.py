"""Prefixes that sequences share: by name, by block, as long as there is room."""

from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.sim.prefix_cache import BLOCK, PrefixCache, block_names
from loadgen.engines.sim.scheduler import Limits, Scheduler, Sequence, StepCosts
from tests.helpers.sim_steps import steps

COSTS = StepCosts(base_ns=1000, prefill_ns_per_token=1, decode_ns_per_seq=1, kv_ns_per_token=1)


def scheduler(
    num_kv_tokens: int = 10_000, max_num_batched_tokens: int = 1000
) -> Scheduler[Sequence]:
    return Scheduler(Limits(100, max_num_batched_tokens, num_kv_tokens), COSTS)


def prompt(text: str, output_tokens: int = 2, ready_ns: int = 0) -> Sequence:
    """A prompt of which each character is a token."""
    return Sequence(len(text), output_tokens, ready_ns, block_names(text))


def test_a_block_s_name_says_all_that_stands_before_its_end() -> None:
    names = block_names("a" * 40)
    assert len(names) == 2
    assert block_names("a" * 32) == names
    assert block_names("a" * 31) == names[:1]
    assert block_names("b" + "a" * 31)[1] != names[1]
    assert block_names("a" * 31 + "b")[0] == names[0]
    assert len(set(block_names("a" * 1600))) == 100


def test_a_prompt_that_was_answered_is_not_computed_again() -> None:
    engine = scheduler()
    first, second = prompt("x" * 100), prompt("x" * 100, ready_ns=1_000_000)
    taken = list(steps(engine, [first, second]))
    assert [step.prefill_tokens for step, _ in taken] == [100, 0, 4, 0]
    assert (first.cached, second.cached) == (0, 96)
    assert (engine.cache.queried, engine.cache.hit) == (200, 96)


def test_the_last_token_is_always_computed() -> None:
    engine = scheduler()
    taken = list(steps(engine, [prompt("x" * 64), prompt("x" * 64, ready_ns=1_000_000)]))
    assert [step.prefill_tokens for step, _ in taken] == [64, 0, 16, 0]


def test_prompts_share_as_far_as_they_are_the_same() -> None:
    engine = scheduler()
    other = prompt("x" * 40 + "y" * 60, ready_ns=1_000_000)
    list(steps(engine, [prompt("x" * 100), other]))
    assert other.cached == 2 * BLOCK


def test_running_sequences_share_blocks_held_once() -> None:
    engine = scheduler()
    first, second = (
        prompt("x" * 100, output_tokens=50),
        prompt("x" * 100, output_tokens=50, ready_ns=2000),
    )
    seen = [
        (first.shared, second.shared, engine.kv_tokens - first.held - second.held)
        for _ in steps(engine, [first, second])
    ]
    assert second.cached == 96
    assert seen.count((96, 96, 96)) > 40


def test_attention_reads_a_shared_prefix_for_each_sequence() -> None:
    engine = scheduler()
    one = [step.end_ns - step.begin_ns for step, _ in steps(scheduler(), [prompt("x" * 100, 3)])]
    two = [
        step.end_ns - step.begin_ns
        for step, _ in steps(engine, [prompt("x" * 100, 3), prompt("x" * 100, 3)])
    ]
    # Tokens computed and read.
    assert [long - short for short, long in zip(one, two, strict=True)] == [200, 102, 103]


def test_least_recently_used_prompt_is_evicted_from_its_end() -> None:
    engine = scheduler(num_kv_tokens=150)
    old, kept = prompt("a" * 64, 1), prompt("b" * 64, 1, ready_ns=100_000)
    again = prompt("a" * 64, 1, ready_ns=400_000)
    large = prompt("c" * 54, 1, ready_ns=300_000)
    list(steps(engine, [old, kept, large, again]))
    # 96 of 128 tokens have room beside the large one: two blocks of the old prompt went
    assert again.cached == 32


def test_idle_blocks_never_keep_a_prompt_waiting() -> None:
    engine = scheduler(num_kv_tokens=110)
    list(steps(engine, [prompt("a" * 100, 1), prompt("b" * 100, 1, ready_ns=100_000)]))
    assert engine.preemptions == 0


def test_flush_clears_only_idle_blocks() -> None:
    cache = PrefixCache()
    cache.take([1, 2, 3])
    assert cache.release([2, 3]) == 2 * BLOCK
    cache.clear()
    assert cache.count_cached([1, 2]) == 1
    assert cache.idle_tokens == 0


@given(
    asked=st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(1, 80), st.integers(1, 30), st.integers(0, 200_000)
        ),
        max_size=40,
    ),
    num_kv_tokens=st.integers(120, 300),
    budget=st.integers(8, 200),
    cancelled=st.sets(st.integers(0, 39)),
)
def test_whatever_shares_a_prefix_the_books_balance(
    asked: list[tuple[int, int, int, int]], num_kv_tokens: int, budget: int, cancelled: set[int]
) -> None:
    engine: Scheduler[Sequence] = Scheduler(Limits(8, budget, num_kv_tokens), COSTS)
    prompts = (prompt("abcd"[kind] * size, out, at) for kind, size, out, at in asked)
    arrivals = sorted(prompts, key=lambda each: each.ready_ns)
    doomed = [each for number, each in enumerate(arrivals) if number in cancelled]
    for step, _ in steps(engine, arrivals):
        assert 0 < step.decodes + step.prefill_tokens <= budget
        shared = {name for each in arrivals for name in each.blocks[: each.shared // BLOCK]}
        assert engine.kv_tokens == sum(each.held for each in arrivals) + BLOCK * len(shared)
        assert engine.kv_tokens + engine.cache.idle_tokens <= num_kv_tokens
        for each in doomed[:1]:
            if each.generated:
                engine.cancel(doomed.pop(0))
    assert (engine.running, engine.waiting, engine.kv_tokens) == (0, 0, 0)
    for each in arrivals:
        assert each.generated == each.output_tokens or each not in doomed
