"""Each planted cause is named first, on its own side; without a plant, nothing is named."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from loadgen.explanation.causes import CAUSES, KNOBS, advice
from loadgen.explanation.explainer import explain
from loadgen.explanation.step_costs import CHUNKS
from loadgen.report.result.explanation import Explanation
from tests.helpers.planted_records import MS, Answer, records, served


def explained(answers: list[Answer]) -> Explanation:
    explanation = explain(records(answers), None)
    assert explanation is not None
    return explanation


def held(period_ms: int, length_ms: int) -> Callable[[int], int]:
    """Hold what comes at the beginning of each period until a time after it."""

    def later(at: int) -> int:
        within = at % (period_ms * MS)
        return at if within >= length_ms * MS else at + length_ms * MS - within

    return later


def pause(now_ns: int, length_ms: int = 300, every_ms: int = 2000) -> int:
    """Pause in the step that begins in the first 12 ms of each period."""
    return length_ms * MS if now_ns % (every_ms * MS) < 12 * MS else 0


def frozen(answers: list[Answer], share: float = 0.25, length_ms: int = 300) -> list[Answer]:
    """Hold a share of the answers once each, at a time of its own."""
    draw = random.Random(4)

    def one(answer: Answer) -> Answer:
        if draw.random() > share:
            return answer
        begin = draw.choice(answer.tokens[2 : len(answer.tokens) // 2])
        end = begin + length_ms * MS
        return answer.later(lambda at: end if begin < at < end else at)

    return [one(answer) for answer in answers]


def read_late(answers: list[Answer], *, has_stamps: bool) -> list[Answer]:
    """Have a client that stands still for 120 ms again and again read the answers; without stamps
    of the kernel, nobody knows that it did.
    """
    late = held(400, 120)

    def one(answer: Answer) -> Answer:
        read = answer.later(late)
        if not has_stamps:
            return read
        moved = enumerate(zip(answer.tokens, read.tokens, strict=True))
        return replace(read, earliest=tuple((number, at) for number, (at, to) in moved if to > at))

    return [one(answer) for answer in answers]


def capped(answers: list[Answer], slots: int = 3) -> list[Answer]:
    """Let at most so many requests be in flight."""
    free = [0] * slots
    capped = []
    for answer in answers:
        ready = max(answer.due, min(free))
        moved = ready - answer.due
        later = answer.later(lambda at, moved=moved: at + moved)
        free[free.index(min(free))] = later.tokens[-1]
        capped.append(replace(later, sent=answer.sent + moved, cap=moved))
    return capped


def connecting(answers: list[Answer], ms: int = 120) -> list[Answer]:
    return [
        replace(answer.later(lambda at: at + ms * MS), sent=answer.sent + ms * MS, connect=ms * MS)
        for answer in answers
    ]


def refused(answers: list[Answer], ms: int = 700) -> list[Answer]:
    """Have every third request refused at first."""
    return [
        replace(answer.later(lambda at: at + ms * MS), sent=answer.sent + ms * MS, retried=ms * MS)
        if index % 3 == 0
        else answer
        for index, answer in enumerate(answers)
    ]


def bundled(answers: list[Answer], period_ms: int = 100) -> list[Answer]:
    period = period_ms * MS
    return [answer.later(lambda at: -(-at // period) * period) for answer in answers]


# Requests alone, so that no step of others shows what a prompt takes.
ONE_LENGTH: dict[str, Any] = {
    "prompts": (1000, 1000),
    "answers": (4, 12),
    "prompt_us": 100,
    "rate": 0.4,
    "outside_ms": 1,
    "seed": 2,
}
# Prompts for which each step has hardly room, so that none shows what a step takes without them.
FULL_STEPS: dict[str, Any] = {
    "max_num_batched_tokens": 40,
    "max_num_seqs": 40,
    "rate": 14,
    "prompts": (200, 300),
    "answers": (12, 24),
    "count": 150,
}
PLANTS: dict[str, tuple[str, Callable[[], list[Answer]]]] = {
    "slots": ("queue-slots", lambda: served(max_num_seqs=3)),
    "kv": ("kv", lambda: served(num_kv_tokens=1400, rate=10)),
    "own prompt": (
        "prefill-own",
        lambda: served(prompt_us=120, prompts=(500, 1500), answers=(6, 16), rate=2.5, count=80),
    ),
    "prompts of others": (
        "prefill-others",
        lambda: served(prompt_us=50, prompts=(16, 3500), answers=(60, 140), rate=5, count=100),
    ),
    "budget": (
        "queue-prefill",
        lambda: served(
            max_num_batched_tokens=50,
            max_num_seqs=40,
            rate=13,
            prompts=(200, 300),
            answers=(12, 24),
        ),
    ),
    "steps full of prompts": ("queue-prefill", lambda: served(**FULL_STEPS)),
    "batch": (
        "decode-batch",
        lambda: served(stream_us=2000, base_ms=6, prompts=(16, 40), answers=(60, 120), rate=7),
    ),
    "outside": ("front", lambda: served(outside_ms=120)),
    "prompts of one length": ("front-or-prompt", lambda: served(**ONE_LENGTH)),
    "pause": ("engine-pause", lambda: served(pause=pause)),
    "way": ("path-stall", lambda: [answer.later(held(2500, 300)) for answer in served()]),
    "one stream": ("stream-stall", lambda: frozen(served())),
    "bundles": ("bundling", lambda: bundled(served())),
    "client reads late": ("client-late", lambda: read_late(served(), has_stamps=True)),
    "cap": ("client-cap", lambda: capped(served())),
    "refusals": ("retries", lambda: refused(served())),
    "connect": ("connect", lambda: connecting(served())),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_cause_is_named_first(name: str) -> None:
    cause, answers = PLANTS[name]
    explanation = explained(answers())
    assert explanation.causes, explanation.answer
    assert explanation.causes[0].name == cause
    assert explanation.causes[0].side == CAUSES[cause].side
    assert explanation.answer.lower().startswith(explanation.causes[0].sentence.lower()[:20])


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_named_where_nothing_was_planted(seed: int) -> None:
    explanation = explained(served(seed=seed, rate=5))
    assert explanation.causes == []
    assert explanation.answer.startswith("Nothing stands out: the time is the model's own speed (")


def test_what_prompts_of_one_length_hide_is_known_as_a_limit_only() -> None:
    assert explained(served(**ONE_LENGTH)).part_kinds["outside"] == "at most"
    assert explained(served()).part_kinds["outside"] == "estimate"


@pytest.mark.parametrize("seed", range(5))
def test_steps_that_are_all_full_of_prompts_do_not_tell_the_base(seed: int) -> None:
    explanation = explained(served(**FULL_STEPS | {"seed": seed}))
    assert explanation.no_steps == CHUNKS
    assert explanation.causes[0].evidence.startswith("each step computed about 3")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("answers", [(20, 20), (12, 60)])
def test_prompts_that_wait_for_a_slot_do_not_fill_the_steps(
    seed: int, answers: tuple[int, int]
) -> None:
    slots = {"max_num_seqs": 3, "prompts": (200, 300), "rate": 20, "count": 150}
    explanation = explained(served(**slots, answers=answers, seed=seed))
    assert explanation.steps is not None
    assert explanation.causes[0].name == "queue-slots"


def test_answers_of_one_token_show_no_queue_for_slots() -> None:
    answers = served(prompt_us=100, prompts=(500, 1500), answers=(1, 1), rate=6)
    assert "queue-prefill" in [cause.name for cause in explained(answers).causes]


def test_without_stamps_of_the_kernel_a_late_client_looks_like_the_way_to_the_server() -> None:
    explanation = explained(read_late(served(), has_stamps=False))
    assert [cause.name for cause in explanation.causes] == ["path-stall"]


@pytest.mark.parametrize("answers", [(1, 1), (2, 6), (24, 64)])
def test_first_tokens_that_a_late_client_reads_waited_in_no_queue(answers: tuple[int, int]) -> None:
    explanation = explained(read_late(served(answers=answers), has_stamps=True))
    names = [cause.name for cause in explanation.causes]
    assert names[0] == "client-late"
    assert "queue-prefill" not in names
    assert explanation.mean_ms["read_late"] > 15
    assert explanation.part_kinds["read_late"] == "estimate"


def test_lost_packets_are_no_fault_of_the_client() -> None:
    answers = [replace(answer, reordered=1) for answer in read_late(served(), has_stamps=True)]
    assert "client-late" not in {cause.name for cause in explained(answers).causes}


def test_two_causes_are_both_named() -> None:
    named = {cause.name for cause in explained(connecting(served(pause=pause))).causes}
    assert {"connect", "engine-pause"} <= named


def test_few_requests_name_nothing() -> None:
    explanation = explained(served(count=40, max_num_seqs=2))
    assert explanation.causes == []
    assert explanation.answer == "Not determined: 40 requests are too few, 50 are needed."


def test_advice_spells_a_knob_as_its_engine_does() -> None:
    cause = CAUSES["queue-slots"]
    assert advice(cause, {"max_seqs": "--max-running-requests"}).startswith(
        "raise --max-running-requests "
    )
    assert advice(cause, {}).startswith(f"raise {KNOBS['max_seqs']} ")


def test_every_advice_can_be_written() -> None:
    for cause in CAUSES.values():
        assert "{" not in advice(cause, {})
        assert cause.sentence.format(ms="5 ms")
