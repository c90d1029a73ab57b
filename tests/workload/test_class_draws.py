"""Each session of a run is in a class, drawn by the shares and the seed, or in turn."""

from collections import Counter
from itertools import islice

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.draws import ClassDraws, classed
from loadgen.workload.prompt import Prompt


def drawn(count, **options):
    return list(islice(ClassDraws.from_settings(RunSettings(**options).checked()).numbers(), count))


def of_adapters(count, assignment="random", **options):
    return drawn(count, lora_modules=("a", "b", "c"), lora_assignment=assignment, **options)


def test_adapters_take_turns():
    assert of_adapters(7, "round-robin") == [0, 1, 2, 0, 1, 2, 0]


def test_random_adapters_have_equal_shares():
    counts = Counter(of_adapters(9000))
    assert set(counts) == {0, 1, 2}
    assert all(2800 <= count <= 3200 for count in counts.values())


def test_skewed_adapters_are_drawn_alpha_times_as_often_as_the_next():
    counts = Counter(of_adapters(14000, "skewed:2"))
    assert [round(counts[number] / 1000) for number in range(3)] == [8, 4, 2]


@pytest.mark.parametrize("keys", [("share=0.5", "share=0.3", "share=20%"), ("rate=5", "rate=3", "rate=2")])
def test_classes_are_drawn_by_their_shares_or_rates(keys):
    texts = tuple(f"{name}:{key}" for name, key in zip("abc", keys, strict=True))
    counts = Counter(drawn(20000, classes=texts))
    assert [round(counts[number] / 1000) for number in range(3)] == [10, 6, 4]


def test_draws_depend_on_the_seed_of_the_order_alone():
    assert of_adapters(50) == of_adapters(50, seed_prompts=9, seed_arrivals=9)
    assert of_adapters(50) != of_adapters(50, seed=1)
    assert of_adapters(50, seed=1) == of_adapters(50, seed_order=1)


def test_all_turns_of_a_session_have_its_class():
    prompts = [Prompt("a", 1, 1, str(number), after=(1,) * (number in (1, 2, 5))) for number in range(6)]
    assert [prompt.class_number for prompt in classed(prompts, iter([3, 1, 2]))] == [3, 3, 3, 1, 2, 2]


@pytest.mark.parametrize("assignment", ["uniform", "skewed", "skewed:1", "skewed:x", "skewed:inf", "random:2"])
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
