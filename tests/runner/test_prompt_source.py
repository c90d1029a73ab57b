"""The prompts of classes: from data sets of their own, or from the one of the run, each prompt
once.
"""

from collections import Counter
from itertools import islice, pairwise

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.engines.sim.tokenizer import TOKENIZER
from loadgen.errors import BadInput
from loadgen.runner.prompt_source import PromptSource, data_of, prompts_of_run
from loadgen.workload import request_store
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target

LENGTHS = (
    "long:share=0.25,random_input_len=40",
    "short:share=0.5,random_input_len=4",
    "urgent:share=0.25,priority=-1",
)


def asked(*classes, **options):
    return RunSettings(
        classes=classes,
        backend="openai-chat",
        tokenizer=str(TOKENIZER),
        random_input_len=9,
        **options,
    ).checked()


def source(settings, count):
    return prompts_of_run(settings, Target.from_settings(settings, "base"), count)


def test_each_prompt_is_of_the_data_set_of_its_class():
    found = list(source(asked(*LENGTHS), 200).prompts)
    assert {(prompt.class_number, prompt.input_tokens) for prompt in found} == {
        (0, 40),
        (1, 4),
        (2, 9),
    }


def test_no_prompt_is_sent_twice_and_none_begins_another():
    texts = [prompt.text for prompt in source(asked(*LENGTHS), 200).prompts]
    assert len({text[:8] for text in texts}) > 190


def test_classes_without_data_share_the_prompts_of_the_run():
    settings = asked("a:share=0.5,priority=1", "b:share=0.5,header=X-A=1")
    shared, alone = source(settings, 50), source(asked(), 50)
    assert [prompt.text for prompt in shared.prompts] == [prompt.text for prompt in alone.prompts]
    assert data_of(settings) == []


def test_the_same_settings_give_the_same_prompts_and_more_of_them_beyond():
    first, second = source(asked(*LENGTHS), 100), source(asked(*LENGTHS), 100)
    assert list(first.prompts) == list(second.prompts)
    known = {prompt.text for prompt in source(asked(*LENGTHS), 100).prompts}
    beyond = list(islice(first.beyond(100), 60))
    assert {prompt.class_number for prompt in beyond} == {0, 1, 2}
    assert known.isdisjoint(prompt.text for prompt in beyond)


def test_the_origin_names_the_data_sets_and_counts_the_classes():
    made = source(asked(*LENGTHS), 100)
    counts = Counter(prompt.class_number for prompt in made.prompts)
    origin = made.origin()
    assert [each["classes"] for each in origin["sources"]] == [["long"], ["short"], ["urgent"]]
    assert origin["classes"] == {"long": counts[0], "short": counts[1], "urgent": counts[2]}
    assert sum(origin["classes"].values()) == 100


def test_sessions_of_a_class_stay_together():
    settings = asked(
        "a:share=0.5,dataset=multi_turn,turns=3", "b:share=0.5", duration=60.0, request_rate=1.0
    )
    found = list(source(settings, 20).prompts)
    assert sum(not prompt.follows for prompt in found) == 20
    turns = [
        (one.class_number, other.class_number) for one, other in pairwise(found) if other.follows
    ]
    assert set(turns) == {(0, 0)}


def test_a_class_that_gets_nothing_is_refused():
    with pytest.raises(BadInput, match=r"^--class: rare: gets none of 3 requests"):
        source(asked("often:share=0.9999", "rare:share=0.0001,random_input_len=3"), 3)


class Numbered:
    """A caller's data set, endless."""

    def prompts(self, count):
        return (Prompt(f"text {number}", 2, 1, f"own/{number}") for number in range(count))

    def beyond(self, count):
        return (
            Prompt(f"text {number}", 2, 1, f"own/{number}") for number in range(count, count + 100)
        )

    def provenance(self):
        return {"name": "own"}


def test_a_data_set_of_the_caller_takes_no_other_data_sets():
    settings = asked(*LENGTHS)
    with pytest.raises(BadInput, match=r"^--class: long: random_input_len "):
        PromptSource.of(Numbered(), settings, Target.from_settings(settings, "base"), 4)


def test_the_prompts_of_a_run_and_those_beyond_it_are_assigned_in_one_order(tmp_path):
    chosen = RunSettings(lora_modules=("a", "b", "c"), lora_assignment="round-robin")
    target = Target.from_settings(chosen, "base")
    made = PromptSource.of(Numbered(), chosen, target, 4)
    request_store.write(tmp_path, made.prompts, target.body, made.origin, 4)
    with request_store.Requests(tmp_path) as read:
        assert [orjson.loads(read.body(row))["model"] for row in range(4)] == ["a", "b", "c", "a"]
        assert [read.record(row, 0).class_number for row in range(4)] == [0, 1, 2, 0]
    assert [prompt.class_number for prompt in islice(made.beyond(4), 3)] == [1, 2, 0]
    assert request_store.read_about(tmp_path)["classes"] == {"a": 2, "b": 1, "c": 1}


def test_all_classes_have_the_same_salt():
    settings = asked(*LENGTHS)
    target = Target.from_settings(settings, "base")
    plain = list(source(settings, 50).prompts)
    first, second = (
        list(prompts_of_run(settings, target, 50, salt="0" * 16).prompts) for _ in range(2)
    )
    assert first == second
    assert [prompt.input_tokens for prompt in first] == [prompt.input_tokens for prompt in plain]
    assert not {prompt.text for prompt in first} & {prompt.text for prompt in plain}


def test_distinct_prompts_are_sent_again_and_again():
    texts = [prompt.text for prompt in source(asked(distinct_prompts=3), 8).prompts]
    assert texts == [*texts[:3], *texts[:3], *texts[:2]]
    assert len({*texts}) == 3
    assert list(source(asked(distinct_prompts=3), 8).beyond(8)) == []
    assert len(list(source(asked(distinct_prompts=30), 8).prompts)) == 8


@pytest.mark.parametrize("changes", [{"dataset_name": "multi_turn"}, {"dataset_name": "trace"}])
def test_distinct_prompts_are_refused_of_sessions_and_traces(changes):
    with pytest.raises(BadInput, match="--distinct-prompts: sessions, and requests of a trace"):
        asked(distinct_prompts=3, **changes)
