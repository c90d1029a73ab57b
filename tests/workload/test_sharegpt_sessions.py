"""ShareGPT sessions: whole conversations, as people held them."""

import json
from itertools import islice

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.prompt import ANSWER, UNPLANNED
from tests.helpers.source import ROOT

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"


def conversation(name, *turns):
    """Turns are "who:text"."""
    told = [dict(zip(("from", "value"), turn.split(":"), strict=True)) for turn in turns]
    return {"id": name, "conversations": told}


def words(count):
    return " ".join(["word"] * count)


WHOLE = conversation(
    "a", "human:" + words(3), "gpt:" + words(5), "human:" + words(2), "gpt:" + words(7)
)


@pytest.fixture
def made(tmp_path):
    def of(entries, **changes):
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps(entries))
        given = {"dataset_path": str(path), "tokenizer": str(SIMULATOR), "turns": "all"} | changes
        return datasets.create(RunSettings(dataset_name="sharegpt", **given))

    return of


def test_session_requests_recorded_answer_lengths(made):
    prompts = list(made([WHOLE]).sessions(1))
    assert [(prompt.text, prompt.output_tokens) for prompt in prompts] == [
        (words(3), 5),
        (words(2), 7),
    ]
    assert [prompt.source for prompt in prompts] == ["sharegpt/a/0", "sharegpt/a/1"]
    assert [prompt.follows for prompt in prompts] == [False, True]


def test_further_turns_repeat_the_answers_of_the_server(made):
    prompts = list(made([WHOLE]).sessions(1))
    assert prompts[1].messages == (
        {"role": "user", "content": words(3)},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": words(2)},
    )
    assert [prompt.input_tokens for prompt in prompts] == [3, UNPLANNED]


def test_or_the_recorded_ones_and_then_their_length_is_planned(made):
    prompts = list(made([WHOLE], history="recorded").sessions(1))
    assert prompts[1].messages[1] == {"role": "assistant", "content": words(5)}
    assert [prompt.input_tokens for prompt in prompts] == [3, 3 + 5 + 2]


def test_sessions_end_after_the_turns_that_are_asked_for(made):
    assert [prompt.follows for prompt in made([WHOLE] * 3, turns="2").prompts(4)] == [
        False,
        True,
        False,
        True,
    ]
    long = conversation("b", *["human:x", "gpt:y"] * 9)
    assert len(list(made([long], turns="5").sessions(1))) == 5


def test_a_single_turn_is_the_rule_of_vllm_as_ever(made):
    (prompt,) = made(
        [conversation("b", "human:" + words(4), "gpt:" + words(4))], turns=None
    ).prompts(1)
    assert (prompt.messages, prompt.follows) == ((), False)


@pytest.mark.parametrize(
    "turns",
    [
        ("gpt:x", "human:y"),
        ("human:x", "human:y"),
        ("human:x", "gpt:y", "gpt:z"),
        ("human:x", "gpt:"),
        ("human:x", "bing:y"),
        ("system:x", "human:y", "gpt:z"),
    ],
)
def test_conversation_without_alternation_is_left_out(made, turns):
    good = conversation("good", "user:x", "assistant:y")
    sources = {prompt.source for prompt in made([conversation("odd", *turns), good]).sessions(5)}
    assert sources == {"sharegpt/good/0"}


def test_a_conversation_without_an_id_is_named_by_its_number_in_the_file(made):
    entries = [
        {"conversations": conversation("", *["human:x", "gpt:y"] * 2)["conversations"]}
        for _ in range(3)
    ]
    sources = {prompt.source for prompt in made(entries).sessions(3)}
    assert sources == {f"sharegpt/{number}/{turn}" for number in range(3) for turn in range(2)}


def test_a_last_question_without_an_answer_is_left_off(made):
    assert len(list(made([conversation("b", "human:x", "gpt:y", "human:z")]).sessions(1))) == 1


def test_a_file_that_is_too_short_is_gone_over_again(made):
    entries = [conversation(str(number), "human:x", "gpt:y") for number in range(5)]
    sources = [prompt.source for prompt in made(entries).sessions(200)]
    assert len(set(sources[:5])) == 5
    assert set(sources[5:]) == set(sources[:5])


def test_the_first_sessions_do_not_depend_on_how_many_follow(made):
    entries = [
        conversation(str(number), *["human:x", "gpt:y"] * (1 + number % 4)) for number in range(200)
    ]
    many = [prompt.source for prompt in made(entries, seed=5).prompts(300)]
    assert [prompt.source for prompt in islice(made(entries, seed=5).prompts(100), 100)] == many[
        :100
    ]


def test_a_file_without_one_that_can_be_used_is_refused(made):
    with pytest.raises(BadInput, match="human and gpt"):
        list(made([conversation("odd", "gpt:x", "gpt:y")]).prompts(1))


def test_where_it_comes_from_is_said(made):
    said = made([WHOLE], history="recorded", turns="2").provenance()
    assert (said["rule"], said["turns"], said["history"]) == ("whole conversations", 2, "recorded")
