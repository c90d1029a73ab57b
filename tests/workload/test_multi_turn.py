"""Multi-turn sessions: random questions of an exact length, each sent with its history."""

from collections import Counter
from itertools import groupby, islice, pairwise

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.prompt import ANSWER, UNPLANNED, Sessions
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"
S = 1_000_000_000


def made(**changes):
    given = {
        "tokenizer": str(SIMULATOR),
        "random_input_len": 20,
        "random_output_len": 5,
        "turns": "4",
    } | changes
    return datasets.create(RunSettings(dataset_name="multi_turn", **given))


def contents(prompt):
    return [(message["role"], message["content"]) for message in prompt.messages]


def test_session_turns_follow_each_other():
    prompts = list(made().sessions(3))
    assert [prompt.follows for prompt in prompts] == [False, True, True, True] * 3
    assert len({prompt.source for prompt in prompts}) == 12


def test_questions_are_exact_and_distinct():
    tokenizer = load(str(SIMULATOR))
    prompts = list(made(random_range_ratio="0.5").sessions(50))
    counts = tokenizer.count([prompt.text for prompt in prompts])
    assert set(counts) <= set(range(10, 31))
    assert len(set(counts)) > 10
    assert [prompt.input_tokens for prompt in prompts if not prompt.follows] == counts[::4]
    assert len({prompt.text for prompt in prompts}) == 200


def test_turn_repeats_questions_with_answer_placeholders():
    prompts = list(made().sessions(1))
    questions = [prompt.text for prompt in prompts]
    assert contents(prompts[2]) == [
        ("user", questions[0]),
        ("assistant", ANSWER),
        ("user", questions[1]),
        ("assistant", ANSWER),
        ("user", questions[2]),
    ]
    assert [prompt.input_tokens for prompt in prompts] == [20, UNPLANNED, UNPLANNED, UNPLANNED]


def test_sessions_share_a_system_message_of_prefix_length():
    prompts = list(made(random_prefix_len=7).sessions(2))
    ((role, prefix),) = {contents(prompt)[0] for prompt in prompts}
    assert (role, load(str(SIMULATOR)).count([prefix])) == ("system", [7])
    assert prompts[0].input_tokens == 27


def test_sessions_begin_with_prefixes_of_several_lengths_by_their_weights():
    tokenizer = load(str(SIMULATOR))
    dataset = made(turns="1", prefix_buckets="3x11:90,1x40:10")
    prompts = list(dataset.sessions(400))
    prefixes = [contents(prompt)[0] for prompt in prompts]
    assert {role for role, _ in prefixes} == {"system"}
    counts = tokenizer.count([text for _, text in prefixes])
    assert set(counts) == {11, 40}
    assert len(set(prefixes)) == 4
    assert counts.count(40) == pytest.approx(40, abs=20)  # 400 draws at 10 %, more than three sigma
    assert [prompt.input_tokens for prompt in prompts] == [20 + count for count in counts]
    assert prefixes[:50] == [contents(prompt)[0] for prompt in dataset.sessions(50)]


def test_all_turns_of_a_session_repeat_its_prefix():
    prompts = list(made(prefix_buckets="5x11,5x12").sessions(20))
    for _, session in groupby(prompts, key=lambda prompt: prompt.source.rpartition("/")[0]):
        assert len({contents(prompt)[0] for prompt in session}) == 1


@pytest.mark.parametrize(
    "text", ["", "4", "4x", "x10", "0x10", "4x0", "4x10:0", "4x10;2x3", "4x10:many"]
)
def test_buckets_that_cannot_be_read_are_refused(text):
    with pytest.raises(BadInput, match="--prefix-buckets"):
        made(prefix_buckets=text)


def test_a_common_prefix_precedes_that_of_a_bucket():
    tokenizer = load(str(SIMULATOR))
    prompts = list(made(turns="1", prefix_buckets="3x11", random_prefix_len=5).sessions(60))
    systems = [contents(prompt)[0][1] for prompt in prompts]
    assert set(tokenizer.count(systems)) == {16}
    assert len({*systems}) == 3
    assert len({" ".join(text.split()[:5]) for text in systems}) == 1
    assert len({text.split()[5] for text in systems}) == 3
    assert {prompt.input_tokens for prompt in prompts} == {36}


def test_sessions_draw_their_prefix_by_zipfs_law():
    prompts = list(made(turns="1", prefix_buckets="9x11", prefix_zipf=1.0).sessions(600))
    found = sorted(Counter(contents(prompt)[0] for prompt in prompts).values(), reverse=True)
    assert found[0] == pytest.approx(600 / sum(1 / rank for rank in range(1, 10)), abs=60)
    assert found[0] > 4 * found[8]


def test_a_law_without_prefixes_is_refused():
    with pytest.raises(BadInput, match="--prefix-zipf: there are no prefixes to draw"):
        made(prefix_zipf=1.0)


def lengths(prompts):
    """The number of turns of each session."""
    starts = [number for number, prompt in enumerate(prompts) if not prompt.follows]
    return [end - start for start, end in pairwise([*starts, len(prompts)])]


def test_turns_of_a_range_are_drawn_for_each_session():
    prompts = list(made(turns="2:5").sessions(60))
    counts = lengths(prompts)
    assert set(counts) == {2, 3, 4, 5}
    assert counts == lengths(list(made(turns="2:5").sessions(60)))
    assert counts[:20] == lengths(list(made(turns="2:5").sessions(20)))
    assert counts != lengths(list(made(turns="2:5", seed_prompts=9).sessions(60)))
    assert len({prompt.text for prompt in prompts}) == len(prompts)


def test_sessions_of_any_length_go_on_where_those_of_a_count_end():
    dataset = made(turns="2:5")
    begun = list(dataset.prompts(30))
    whole, further = list(dataset.sessions(40)), list(islice(dataset.beyond(30), 30))
    assert len(begun) == 30
    assert lengths(begun)[:-1] == lengths(whole)[: len(lengths(begun)) - 1]
    assert (
        lengths(further)[:-1] == lengths(whole)[len(lengths(begun)) :][: len(lengths(further)) - 1]
    )
    assert not {prompt.text for prompt in begun} & {prompt.text for prompt in further}


def test_listed_lengths_are_those_of_the_turns():
    tokenizer = load(str(SIMULATOR))
    prompts = list(made(turns="2:3", random_input_len="30,8,8").sessions(10))
    counts = tokenizer.count([prompt.text for prompt in prompts])
    assert {count for count, prompt in zip(counts, prompts, strict=True) if not prompt.follows} == {
        30
    }
    assert {count for count, prompt in zip(counts, prompts, strict=True) if prompt.follows} == {8}


def test_a_count_of_prompts_is_met_and_cuts_the_last_session():
    prompts = list(made().prompts(6))
    assert [prompt.follows for prompt in prompts] == [False, True, True, True, False, True]


@pytest.mark.parametrize(("count", "said"), [(12, ""), (10, "3 sessions"), (9, "3 sessions")])
def test_a_session_that_is_cut_is_said(caplog, count, said):
    list(made().prompts(count))
    lines = [record.message for record in caplog.records]
    turn = count - 8
    cut = f"{count} requests are {said}, the last of which is cut after turn {turn} "
    assert lines == [f"{cut}(--num-prompts counts requests, not sessions)"] * bool(said)


def test_sessions_follow_from_the_seeds():
    def texts(**seeds):
        return [prompt.text for prompt in made(**seeds).sessions(5)]

    assert texts(seed=3) == texts(seed=3)
    assert not set(texts(seed_prompts=3)) & set(texts(seed_prompts=4))


def test_think_time_precedes_all_turns_but_the_first():
    for text in ("1.5", "1500ms"):
        assert [prompt.think_ns for prompt in made(think_time=text).sessions(1)] == [
            0,
            1.5 * S,
            1.5 * S,
            1.5 * S,
        ]


def test_think_times_follow_from_the_seed_of_arrivals():
    def times(**seeds):
        return [
            prompt.think_ns
            for prompt in made(think_time="exp:2", **seeds).sessions(500)
            if prompt.follows
        ]

    drawn = times(seed_arrivals=1)
    assert len(set(drawn)) == len(drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(2 * S, rel=0.1)
    assert drawn == times(seed_arrivals=1, seed_prompts=9) != times(seed_arrivals=2)


def test_sessions_beyond_a_run_have_think_times_of_their_own():
    data = made(think_time="exp:2")
    known = [prompt.think_ns for prompt in data.sessions(50)]
    assert [prompt.think_ns for prompt in islice(data.beyond(4), 100)] == known[4:104]


def test_multi_turn_data_set_is_sessions():
    assert isinstance(made(), Sessions)
    assert not isinstance(datasets.create(RunSettings(tokenizer=str(SIMULATOR))), Sessions)


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"turns": "0"}, "--turns"),
        ({"turns": "all"}, "--turns"),
        ({"turns": "-1"}, "--turns"),
        ({"turns": "3:2"}, "--turns"),
        ({"turns": "0:2"}, "--turns"),
        ({"turns": "1:2:3"}, "--turns"),
        ({"think_time": "soon"}, "--think-time"),
        ({"think_time": "-1"}, "--think-time"),
        ({"think_time": "exp:nan"}, "--think-time"),
        ({"think_time": "86401"}, "--think-time"),
        ({"history": "recorded"}, "--history"),
    ],
)
def test_invalid_options_are_refused_by_flag(given, flag):
    with pytest.raises(BadInput) as refused:
        made(**given)
    assert refused.value.field == flag


def test_where_it_comes_from_is_said():
    said = made(think_time="exp:2").provenance()
    assert (said["name"], said["turns"], said["think_time_s"], said["think_time_varies"]) == (
        "multi_turn",
        4,
        2,
        True,
    )


def test_sessions_stand_one_after_the_other():
    sources = [prompt.source.rsplit("/", 1)[0] for prompt in made().sessions(4)]
    assert [len(list(turns)) for _, turns in groupby(sources)] == [4, 4, 4, 4]


def test_numbers_of_turns_may_be_normal():
    prompts = list(made(turns="normal:5:1").sessions(400))
    starts = [number for number, prompt in enumerate(prompts) if not prompt.follows]
    turns = [end - begin for begin, end in pairwise([*starts, len(prompts)])]
    assert min(turns) >= 1
    assert max(turns) <= 9
    assert sum(turns) / len(turns) == pytest.approx(5, abs=0.2)
    assert len(turns) == 400
    assert max(Counter(turns), key=Counter(turns).__getitem__) == 5
