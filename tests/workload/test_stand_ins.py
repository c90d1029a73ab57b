"""Stand-ins have no word of the originals, as many tokens, and begin alike where those do."""

import json
import re
from itertools import combinations

import pytest

from loadgen.workload.datasets.gateway_log import LeftOut
from loadgen.workload.datasets.stand_ins import StandIns
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers.source import ROOT

SYSTEM = "Zebras quietly juggle xylophones; pay 4711 euros to Wolfgang, please!"
QUESTIONS = ("Who juggles?", "Who juggles xylophones in Zürich?", "Überall 日本 quartz?", "")
TOOL = {
    "type": "function",
    "function": {
        "name": "lookup_wolfgang",
        "description": "Finds the invoice of Wolfgang",
        "parameters": {
            "type": "object",
            "properties": {"invoice": {"type": "string", "enum": ["gesendet", "bezahlt"]}},
            "required": ["invoice"],
            "maximum": 4711,
        },
    },
}


@pytest.fixture(scope="module")
def tokenizer():
    return load(str(ROOT / "engines" / "sim" / "tokenizer.json"))


@pytest.fixture
def stand_ins(tokenizer):
    return StandIns(tokenizer, b"a secret")


def chat(*texts):
    roles = ("system", "user", "assistant")
    return [{"role": roles[number % 3], "content": text} for number, text in enumerate(texts)]


def contents(body):
    return [message["content"] for message in body["messages"]]


def shared(first, second):
    """How many leading items are equal."""
    return next(
        (at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(second)),
    )


def test_each_text_has_as_many_tokens(stand_ins, tokenizer):
    body = {"messages": chat(SYSTEM, *QUESTIONS)}
    actual = contents(stand_ins.body(body, None))
    assert tokenizer.count(actual) == tokenizer.count([SYSTEM, *QUESTIONS])


def test_texts_share_as_many_first_tokens_as_the_originals(stand_ins, tokenizer):
    texts = [f"{SYSTEM} {question}" for question in QUESTIONS] + [SYSTEM[:20], QUESTIONS[1]]
    made = [contents(stand_ins.body({"messages": chat(text)}, None))[0] for text in texts]
    pieces = []
    for text in texts:
        (ends,) = tokenizer.ends([text])
        pieces.append([text[a:b] for a, b in zip([0, *ends], ends, strict=False)])
    for one, other in combinations(range(len(texts)), 2):
        expected = shared(pieces[one], pieces[other])
        assert shared(made[one].split(), made[other].split()) == expected


def test_equal_messages_after_other_ones_are_other_words(stand_ins):
    first, second = (
        contents(stand_ins.body({"messages": chat(system, "Yes")}, None))[1]
        for system in ("Be kind.", "Be brief.")
    )
    assert first != second


def test_another_secret_gives_other_words(tokenizer, stand_ins):
    body = {"messages": chat(SYSTEM)}
    assert StandIns(tokenizer, b"b secret").body(body, None) != stand_ins.body(body, None)


def test_no_word_of_the_original_is_left(stand_ins):
    call = {"name": "lookup_wolfgang", "arguments": '{"invoice": "gesendet", "sum": 4711}'}
    body = {
        "model": "wolfgang-7b",
        "messages": [
            *chat(SYSTEM, *QUESTIONS),
            {
                "role": "assistant",
                "tool_calls": [{"id": "zebra", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "zebra", "content": "Wolfgang hat 4711"},
        ],
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "lookup_wolfgang"}},
        "user": "wolfgang",
        "stop": ["Zebras"],
    }
    made = stand_ins.body(body, None)
    text = json.dumps(made, ensure_ascii=False)
    for word in re.findall(
        r"\w{4,}", f"{SYSTEM} {QUESTIONS} wolfgang lookup invoice gesendet bezahlt"
    ):
        assert word.lower() not in text.lower()
    assert made.keys() == {"messages", "tools", "tool_choice"}
    assert stand_ins.dropped == {"user": 1, "stop": 1}


def test_dropped_fields_of_a_part_are_counted(stand_ins):
    part = {"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}
    body = stand_ins.body({"system": [part], "messages": chat("Hello")}, None)
    assert body["system"][0].keys() == {"type", "text"}
    assert stand_ins.dropped == {"content.cache_control": 1}


def test_names_of_tools_stay_the_same_name_where_they_are_called(stand_ins):
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "lookup_wolfgang", "arguments": "{}"},
    }
    body = {"tools": [TOOL], "messages": [{"role": "assistant", "tool_calls": [call]}]}
    made = stand_ins.body(body, None)
    function = made["tools"][0]["function"]
    assert made["messages"][0]["tool_calls"][0]["function"]["name"] == function["name"]
    parameters = function["parameters"]
    assert parameters["required"] == [*parameters["properties"]]
    assert re.fullmatch(r"\w+", function["name"])


def test_calls_of_tools_keep_arguments_that_are_json(stand_ins):
    call = {"function": {"name": "a", "arguments": '{"sum": 4711, "all": true}'}}
    made = stand_ins.body({"messages": [{"role": "assistant", "tool_calls": [call]}]}, None)
    arguments = json.loads(made["messages"][0]["tool_calls"][0]["function"]["arguments"])
    number, flag = arguments.values()
    assert (len(str(number)), flag) == (4, True)
    assert number != 4711


def test_numbers_that_steer_the_answer_stay(stand_ins):
    steering = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 12, "stream": True, "seed": 7}
    made = stand_ins.body({"messages": chat("Hello")} | steering, None)
    assert {name: made[name] for name in steering} == steering


@pytest.mark.parametrize(
    ("body", "length"),
    [
        ({"messages": chat("Hello")}, "max_completion_tokens"),
        ({"messages": chat("Hello"), "max_tokens": 100}, "max_tokens"),
        ({"prompt": "Hello"}, "max_tokens"),
    ],
)
def test_answer_is_asked_to_be_as_long_as_the_recorded_one(stand_ins, body, length):
    made = stand_ins.body(body, 9)
    assert (made[length], made["ignore_eos"]) == (9, True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([{"type": "image_url", "image_url": {"url": "data:,"}}], "a part that is no text"),
        (7, "a content that is neither a text nor a list"),
    ],
)
def test_what_has_no_stand_in_is_left_out(stand_ins, content, reason):
    with pytest.raises(LeftOut, match=reason):
        stand_ins.body({"messages": [{"role": "user", "content": content}]}, None)
