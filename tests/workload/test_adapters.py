"""Each request asks a LoRA adapter: in turn, or drawn by its index and the seed."""

from collections import Counter
from itertools import islice

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner.prepare_main import PromptSource
from loadgen.workload import request_store
from loadgen.workload.adapters import Adapters
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target


def adapters(names="abc", assignment="random", **options):
    chosen = RunSettings(lora_modules=tuple(names), lora_assignment=assignment, **options).checked()
    return Adapters.from_settings(chosen)


def drawn(count, *arguments, **options):
    made = adapters(*arguments, **options)
    return [made.of(index) for index in range(count)]


def test_without_adapters_there_is_nothing_to_draw():
    assert Adapters.from_settings(RunSettings()) is None


def test_adapters_take_turns():
    assert "".join(drawn(7, "abc", "round-robin")) == "abcabca"


def test_random_adapters_have_equal_shares():
    counts = Counter(drawn(9000))
    assert set(counts) == set("abc")
    assert all(2800 <= count <= 3200 for count in counts.values())


def test_skewed_adapters_are_drawn_alpha_times_as_often_as_the_next():
    counts = Counter(drawn(14000, "abc", "skewed:2"))
    assert [round(counts[name] / 1000) for name in "abc"] == [8, 4, 2]


def test_draws_depend_on_the_seed_of_the_order_alone():
    assert drawn(50) == drawn(50, seed_prompts=9, seed_arrivals=9)
    assert drawn(50) != drawn(50, seed=1)
    assert drawn(50, seed=1) == drawn(50, seed_order=1)


@pytest.mark.parametrize("assignment", ["uniform", "skewed", "skewed:1", "skewed:x", "skewed:inf", "random:2"])
def test_an_unknown_assignment_is_refused(assignment):
    with pytest.raises(BadInput, match=r"^--lora-assignment: invalid assignment"):
        adapters("ab", assignment)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"lora_assignment": "round-robin"}, "--lora-assignment"),
        ({"lora_modules": ("a", "")}, "--lora-modules"),
        ({"lora_modules": ("a", "b"), "dataset_name": "multi_turn"}, "--lora-modules"),
        ({"lora_modules": ("a", "b"), "dataset_name": "sharegpt", "turns": "2"}, "--lora-modules"),
    ],
)
def test_adapters_that_cannot_be_assigned_are_refused(options, field):
    with pytest.raises(BadInput, match=f"^{field}: "):
        RunSettings(**options).checked()


class Numbered:
    """A caller's data set, endless."""

    def prompts(self, count):
        return (Prompt(f"text {number}", 2, 1, f"own/{number}") for number in range(count))

    def beyond(self, count):
        return (Prompt(f"text {number}", 2, 1, f"own/{number}") for number in range(count, count + 100))

    def provenance(self):
        return {"name": "own"}


def test_the_prompts_of_a_run_and_those_beyond_it_are_assigned_by_their_number(tmp_path):
    chosen = RunSettings(lora_modules=("a", "b", "c"), lora_assignment="round-robin")
    target = Target.from_settings(chosen, "base")
    source = PromptSource.of(Numbered(), chosen, target, 4)
    request_store.write(tmp_path, source.prompts, target.body, source.origin, 4)
    with request_store.Requests(tmp_path) as read:
        assert [orjson.loads(read.body(row))["model"] for row in range(4)] == ["a", "b", "c", "a"]
    assert [prompt.model for prompt in islice(source.beyond(4), 3)] == ["b", "c", "a"]
    assert request_store.read_about(tmp_path)["models"] == {"a": 2, "b": 1, "c": 1}
