"""Draws of classes, of users who leave, and of single numbers: each depends on its seed and its
number alone.
"""

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput
from loadgen.workload.draws import ClassDraws, EarlyEndDraws, classed, uniforms
from loadgen.workload.prompt import Prompt

COUNT = 20_000


def test_the_same_names_draw_the_same_on_every_machine() -> None:
    assert uniforms(1, 7, "disconnect", 3) == [0.07188711436484851]
    assert uniforms(2, 7, "think", 3, 1) == [0.4802819382391874, 0.834614651482287]


@pytest.mark.parametrize(
    "other", [(8, "think", 3), (7, "start", 3), (7, "think", 4), (7, "think", 3, 0)]
)
def test_other_names_draw_others(other: tuple[int, str, int]) -> None:
    seed, purpose, *of = other
    assert not set(uniforms(3, seed, purpose, *of)) & set(uniforms(3, 7, "think", 3))


def test_draws_are_uniform_and_independent() -> None:
    """Bounds are five standard errors: of a mean of uniform numbers, and of a correlation."""
    drawn = np.array([uniforms(3, 7, "think", number) for number in range(COUNT)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert drawn.mean(axis=0) == pytest.approx([0.5] * 3, abs=5 / np.sqrt(12 * COUNT))
    columns = np.corrcoef(np.column_stack([drawn[:-1], drawn[1:]]), rowvar=False)
    assert np.abs(columns - np.eye(6)).max() < 5 / np.sqrt(COUNT)


SHARE = RunSettings(disconnect="20%@tokens=10", seed=7)


def departures(settings: RunSettings) -> EarlyEndDraws:
    (draws,) = EarlyEndDraws.each(settings)
    return draws


def drawn(settings: RunSettings, count: int = 10_000) -> list[int]:
    draws = departures(settings)
    return [index for index in range(count) if draws.drawn(index)]


def test_nobody_leaves_without_the_flag() -> None:
    assert EarlyEndDraws.each(RunSettings()) == []


def test_the_share_leaves_within_the_scatter_of_a_draw() -> None:
    assert abs(len(drawn(SHARE)) - 2000) < 4 * (10_000 * 0.2 * 0.8) ** 0.5


def test_all_leave_at_100_percent() -> None:
    assert drawn(SHARE.replace(disconnect="100%@tokens=1"), 100) == list(range(100))


@pytest.mark.integration
def test_the_same_seed_draws_the_same_and_another_draws_others() -> None:
    assert drawn(SHARE) == drawn(SHARE.replace(disconnect="20%@after=1s"))
    assert drawn(SHARE) != drawn(SHARE.replace(seed=8))
    assert drawn(SHARE) == drawn(SHARE.replace(seed=8, seed_arrivals=7))


def test_a_larger_share_includes_those_of_a_smaller_one() -> None:
    assert set(drawn(SHARE.replace(disconnect="5%@tokens=10"))) < set(drawn(SHARE))


@pytest.mark.parametrize(
    ("text", "marks", "detail"),
    [
        ("100%@tokens=10", (10, -1), "the user left"),  # `Response` knows after how many
        ("100%@after=200ms", (0, 200_000_000), "the user left 0.2 s after it was sent"),
        ("100%@after=0", (0, 0), "the user left 0 s after it was sent"),
    ],
)
def test_a_drawn_request_says_when_its_user_leaves_and_how_it_ends(
    text: str, marks: tuple[int, int], detail: str
) -> None:
    record = Record(3)
    departures(SHARE.replace(disconnect=text)).mark(record)
    assert (record.end_after_tokens, record.end_after_ns) == marks
    assert record.ends_as == (Outcome.DISCONNECTED, detail)


def test_a_request_that_was_not_drawn_stays_as_it_is() -> None:
    record = Record(next(index for index in range(100) if index not in drawn(SHARE, 100)))
    departures(SHARE).mark(record)
    assert (record.end_after_tokens, record.end_after_ns, record.ends_as) == (0, -1, None)


def drawn_classes(count, **options):
    return list(islice(ClassDraws.from_settings(RunSettings(**options).checked()).numbers(), count))


def of_adapters(count, assignment="random", **options):
    return drawn_classes(count, lora_modules=("a", "b", "c"), lora_assignment=assignment, **options)


def test_adapters_take_turns():
    assert of_adapters(7, "round-robin") == [0, 1, 2, 0, 1, 2, 0]


def test_random_adapters_have_equal_shares():
    counts = Counter(of_adapters(9000))
    assert set(counts) == {0, 1, 2}
    assert all(2800 <= count <= 3200 for count in counts.values())


def test_skewed_adapters_are_drawn_alpha_times_as_often_as_the_next():
    counts = Counter(of_adapters(14000, "skewed:2"))
    assert [round(counts[number] / 1000) for number in range(3)] == [8, 4, 2]


@pytest.mark.parametrize(
    "keys", [("share=0.5", "share=0.3", "share=20%"), ("rate=5", "rate=3", "rate=2")]
)
def test_classes_are_drawn_by_their_shares_or_rates(keys):
    texts = tuple(f"{name}:{key}" for name, key in zip("abc", keys, strict=True))
    counts = Counter(drawn_classes(20000, classes=texts))
    assert [round(counts[number] / 1000) for number in range(3)] == [10, 6, 4]


def test_draws_depend_on_the_seed_of_the_order_alone():
    assert of_adapters(50) == of_adapters(50, seed_prompts=9, seed_arrivals=9)
    assert of_adapters(50) != of_adapters(50, seed=1)
    assert of_adapters(50, seed=1) == of_adapters(50, seed_order=1)


def test_all_turns_of_a_session_have_its_class():
    prompts = [
        Prompt("a", 1, 1, str(number), after=(1,) * (number in (1, 2, 5))) for number in range(6)
    ]
    assert [prompt.class_number for prompt in classed(prompts, iter([3, 1, 2]))] == [
        3,
        3,
        3,
        1,
        2,
        2,
    ]


@pytest.mark.parametrize(
    "assignment", ["uniform", "skewed", "skewed:1", "skewed:x", "skewed:inf", "random:2"]
)
def test_an_unknown_assignment_is_refused(assignment):
    with pytest.raises(BadInput, match=r"^--lora-assignment: invalid assignment"):
        of_adapters(1, assignment)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"lora_assignment": "round-robin"}, "--lora-assignment"),
        ({"lora_modules": ("a", "")}, "--lora-modules"),
        ({"lora_modules": ("a", "a")}, "--lora-modules"),
        ({"lora_modules": ("a", "b"), "classes": ("c:priority=1",)}, "--lora-modules"),
    ],
)
def test_adapters_that_cannot_be_assigned_are_refused(options, field):
    with pytest.raises(BadInput, match=f"^{field}: "):
        RunSettings(**options).checked()
