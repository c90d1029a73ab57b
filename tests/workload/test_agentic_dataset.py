"""Sessions of agents as prompts: texts exactly as the blocks say, pauses as recorded, scaled and
cut.
"""

import json
from itertools import combinations, pairwise

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained
from tests.helpers.recorded_agents import AGENT, call, export, span, subagent, tracelab, weka
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"
MS, S = 1_000_000, 1_000_000_000


@pytest.fixture
def made(tmp_path):
    """The data set of a file with these rows."""

    def of(*rows, **changes):
        path = tmp_path / "sessions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        given = {"dataset_path": str(path), "tokenizer": str(SIMULATOR)} | changes
        return datasets.create(RunSettings(dataset_name="agentic", **given).checked())

    return of


def everything(dataset):
    return list(dataset.prompts(dataset.requests))


def shared_words(one, other):
    """How many words two texts have in common at their beginnings."""
    pairs = zip(one.split(), other.split(), strict=False)
    return next(
        (at for at, (left, right) in enumerate(pairs) if left != right),
        min(len(one.split()), len(other.split())),
    )


# -- texts


def test_prompts_share_exactly_the_blocks_whose_hashes_agree(made):
    hashes = [[1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 9], [7], [1, 8, 3]]
    tokens = [16 * len(each) + 5 for each in hashes]
    prompts = everything(
        made(weka(*(call(i, tokens[i], 1, hashes[i]) for i in range(5)), block_size=16))
    )
    assert (
        [len(prompt.text.split()) for prompt in prompts]
        == tokens
        == [prompt.input_tokens for prompt in prompts]
    )
    for (one, left), (other, right) in combinations(enumerate(hashes), 2):
        common = next(
            (at for at, pair in enumerate(zip(left, right, strict=False)) if len(set(pair)) > 1),
            min(len(left), len(right)),
        )
        assert shared_words(prompts[one].text, prompts[other].text) == 16 * common
    # Also where what comes before them differs.
    assert prompts[0].text.split()[32:48] == prompts[4].text.split()[32:48]


@pytest.mark.parametrize("block", [1, 3, 64, 512])
def test_blocks_have_any_size(made, block):
    one, other = everything(
        made(
            weka(call(0, 2 * block, 1, [1, 2]), call(1, 3 * block, 1, [1, 2, 3]), block_size=block)
        )
    )
    assert other.text.startswith(one.text + " ")
    assert len(other.text.split()) == 3 * block


@pytest.mark.parametrize(("scope", "shared"), [("local", 0), ("global", 64)])
def test_blocks_are_the_same_within_their_scope(made, scope, shared):
    sessions = [
        weka(call(0, 70, 1, [1]), block_size=64, id=name, hash_id_scope=scope) for name in "ab"
    ]
    one, other = everything(made(*sessions))
    assert shared_words(one.text, other.text) == shared


def test_subagents_share_the_blocks_of_their_session(made):
    first, agent = everything(
        made(weka(call(0, 40, 1, [1, 2]), subagent(1, call(1, 40, 1, [1, 3])), block_size=16))
    )
    assert shared_words(first.text, agent.text) == 16


def test_hashes_may_have_64_bits(made):
    wide = [(1 << 64) - 1, (1 << 64) - 2]
    one, other = everything(made(weka(call(0, 20, 1, wide), call(1, 20, 1, wide), block_size=8)))
    assert shared_words(one.text, other.text) == 16


def test_tracelab_prompts_share_exactly_the_recorded_prefix(made):
    rows = [
        tracelab("a", 0, 2, 100, 0, 10),
        tracelab("a", 5, 6, 130, 97, 20),
        tracelab("a", 10, 11, 60, 41, 1),
    ]
    first, second, third = everything(made(*rows))
    assert [len(prompt.text.split()) for prompt in (first, second, third)] == [100, 130, 60]
    assert [shared_words(first.text, second.text), shared_words(second.text, third.text)] == [
        97,
        41,
    ]


@pytest.mark.parametrize(
    "kind", [trained.unigram, trained.superwords], ids=lambda kind: kind.__name__
)
def test_lengths_are_exact_for_other_tokenizers(made, kind, tmp_path):
    path = kind(tmp_path)
    requests = [call(0, 100, 1, [1, 2]), call(1, 163, 1, [1, 2, 3, 4])]
    prompts = everything(made(weka(*requests, block_size=40), tokenizer=str(path)))
    assert load(str(path)).count([prompt.text for prompt in prompts], special=True) == [100, 163]


def test_the_same_seed_gives_the_same_texts_and_another_one_others(made):
    rows = [weka(call(0, 50, 1, [1]), call(1, 50, 1, [2]), block_size=16)]
    first = [prompt.text for prompt in everything(made(*rows))]
    assert first == [prompt.text for prompt in everything(made(*rows))]
    assert not set(first) & {prompt.text for prompt in everything(made(*rows, seed=9))}


def test_recorded_messages_are_sent_as_they_are_without_a_tokenizer(made):
    first, second, _ = everything(made(*AGENT, tokenizer="none"))
    assert [message["role"] for message in second.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert second.messages[:2] == first.messages
    assert second.fields == {"tools": [{"type": "function"}]}


def test_spans_with_lengths_alone_are_random_words_of_the_tokenizer(made):
    dataset = made(export(span(0, 1, usage__input_tokens=9, usage__output_tokens=2)))
    assert dataset.tokenizer is not None
    assert [prompt.input_tokens for prompt in everything(dataset)] == [9]
    assert dataset.provenance().items() >= dataset.tokenizer.provenance().items()


# -- order and pauses


def test_prompts_name_those_that_they_wait_for(made):
    rows = weka(
        call(0, 8, 1, [], api_time=1),
        subagent(2, call(2, 8, 1, [], api_time=1)),
        call(5, 8, 1, []),
        block_size=4,
    )
    assert [prompt.after for prompt in everything(made(rows, weka(call(0, 8, 1, []), id="b")))] == [
        (),
        (1,),
        (2, 1),
        (),
    ]


@pytest.mark.parametrize(
    ("changes", "think_s"),
    [
        ({}, [0, 1.25, 3]),
        ({"time_scale": 2.0}, [0, 0.625, 1.5]),
        ({"max_think_time": 2.0}, [0, 1.25, 2]),
        ({"time_scale": 0.5, "max_think_time": 4.0}, [0, 2.5, 4]),
        ({"max_think_time": 0.0}, [0, 0, 0]),
    ],
)
def test_pauses_are_scaled_and_then_cut(made, changes, think_s):
    assert [prompt.think_ns / S for prompt in everything(made(*AGENT, **changes))] == think_s


# -- where sessions begin


def test_sessions_begin_where_the_flag_says_with_all_that_was_said_before(made):
    calls = [call(i, 16 * (i + 1), 1, list(range(i + 1)), api_time=0.5) for i in range(10)]
    whole = everything(made(weka(*calls, block_size=16)))
    dataset = made(weka(*calls, block_size=16), trajectory_start="0.6")
    late = everything(dataset)
    assert dataset.requests == len(late) == 4
    assert [prompt.input_tokens for prompt in late] == [prompt.input_tokens for prompt in whole[6:]]
    assert [prompt.after for prompt in late] == [(), (1,), (1,), (1,)]
    assert [prompt.think_ns / S for prompt in late[1:]] == [0.5] * 3


def test_beginnings_are_drawn_for_each_session_from_the_whole_range(made):
    rows = [weka(*(call(i, 8, 1, []) for i in range(100)), id=str(name)) for name in range(100)]
    dataset = made(*rows, trajectory_start="0.25:0.75")
    prompts = everything(dataset)
    starts = [number for number, prompt in enumerate(prompts) if not prompt.follows] + [
        len(prompts)
    ]
    left_out = sorted(100 - (end - begin) for begin, end in pairwise(starts))
    assert len(left_out) == 100
    assert 25 <= left_out[0] <= 28
    assert 71 <= left_out[-1] <= 74
    assert 45 <= sum(left_out) / 100 <= 55
    assert prompts == everything(made(*rows, trajectory_start="25%:75%"))


def test_a_session_keeps_its_last_call(made):
    dataset = made(weka(call(0, 8, 1, []), call(1, 9, 1, [])), trajectory_start="0.99")
    assert [prompt.input_tokens for prompt in everything(dataset)] == [9]


def test_what_waited_for_calls_that_are_left_out_waits_for_the_first_one(made):
    rows = weka(
        call(0, 8, 1, [], api_time=1), call(2, 8, 1, [], api_time=5), call(3, 8, 1, [], api_time=1)
    )
    late = everything(made(rows, trajectory_start="0.4"))
    assert [(prompt.after, prompt.think_ns) for prompt in late] == [((), 0), ((1,), 0)]


# -- how many


def test_a_file_that_is_too_short_is_repeated_with_other_words(made):
    dataset = made(
        weka(call(0, 70, 1, [1]), call(1, 90, 1, [1]), block_size=64, hash_id_scope="global")
    )
    assert dataset.requests == 2
    prompts = list(dataset.prompts(5))
    assert [prompt.after for prompt in prompts] == [(), (1,), (), (1,), ()]
    assert shared_words(prompts[0].text, prompts[2].text) == 0
    assert shared_words(prompts[2].text, prompts[3].text) == 64
    assert len({prompt.source for prompt in prompts}) == 5
    assert list(dataset.sessions(2)) == prompts[:4]


def test_calls_without_an_output_length_have_that_of_the_flag(made):
    rows = [
        {name: value for name, value in row.items() if name != "max_new_tokens"} for row in AGENT
    ]
    assert [prompt.output_tokens for prompt in everything(made(*rows, custom_output_len=33))] == [
        33
    ] * 3
    with pytest.raises(BadInput, match="--custom-output-len: is -1"):
        everything(made(*rows, custom_output_len=-1))


# -- settings


@pytest.mark.parametrize(
    ("name", "changes", "field"),
    [
        ("agentic", {"trace_format": "mooncake"}, "--trace-format"),
        ("trace", {"trace_format": "weka"}, "--trace-format"),
        ("random", {"max_think_time": 3.0}, "--max-think-time"),
        ("agentic", {"max_think_time": -3.0}, "--max-think-time"),
        ("agentic", {"think_time": "3"}, "--think-time"),
        ("agentic", {"trajectory_start": "1"}, "--trajectory-start"),
        ("agentic", {"trajectory_start": "100%"}, "--trajectory-start"),
        ("agentic", {"trajectory_start": "0.5:0.2"}, "--trajectory-start"),
        ("weka", {}, "--dataset-name"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, name, changes, field):
    path = tmp_path / "rows"
    path.write_text(json.dumps(AGENT[0]))
    path_of = {} if name == "random" else {"dataset_path": str(path)}
    with pytest.raises(BadInput, match=f"^{field}"):
        datasets.create(
            RunSettings(dataset_name=name, tokenizer=str(SIMULATOR), **path_of, **changes).checked()
        )
