"""Traces keep the arrival times and lengths of the file, in three published formats."""

import json

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.prompt import Timed
from loadgen.workload.tokenizer import random_text
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"
MS, S = 1_000_000, 1_000_000_000

BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45.25,GPT-4,1087,230,1317,API log
118,ChatGPT,417,0,417,Conversation log
118,ChatGPT,1360,125,1485,Conversation log
"""
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:47.1805900,110,27
"""


def mooncake(*rows):
    """Rows are (timestamp, input length, output length, hash ids)."""
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)


@pytest.fixture
def made(tmp_path):
    def of(content, **changes):
        path = tmp_path / "trace"
        path.write_text(content)
        given = {"dataset_path": str(path), "tokenizer": str(SIMULATOR)} | changes
        return datasets.create(RunSettings(dataset_name="trace", **given))

    return of


def rows(dataset):
    return [(p.due_ns, p.input_tokens, p.output_tokens) for p in dataset.prompts(dataset.requests)]


# -- the formats


def test_burstgpt_in_seconds_without_failed_requests(made):
    dataset = made(BURSTGPT)
    assert rows(dataset) == [(0, 472, 18), (40_250 * MS, 1087, 230), (113 * S, 1360, 125)]
    assert (dataset.file.format, dataset.provenance()["rows_left_out"]) == ("burstgpt", 1)


def test_azure_tells_dates_and_need_not_be_in_order(made):
    dataset = made(AZURE)
    assert rows(dataset) == [(0, 374, 44), (500 * MS, 110, 27), (4_314_579_000, 396, 109)]
    assert dataset.file.format == "azure"


def test_azure_dates_may_have_a_time_zone(made):
    dates = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 "
        "00:00:00.009930+00:00,5,1\n2024-05-10 02:00:01+02:00,6,1\n"
    )
    assert [due for due, *_ in rows(made(dates))] == [0, 990_070_000]


def test_mooncake_counts_milliseconds(made):
    dataset = made(mooncake((0, 30, 5, [0]), (3000, 600, 6, [0, 1])))
    assert rows(dataset) == [(0, 30, 5), (3 * S, 600, 6)]
    assert dataset.file.format == "mooncake"


def test_the_first_request_comes_at_the_start_of_the_run(made):
    assert rows(made(mooncake((27_482, 5, 1, []), (30_535, 5, 1, []))))[1][0] == 3053 * MS


def test_a_trace_may_be_sent_faster_and_its_lengths_stay(made):
    assert rows(made(BURSTGPT, time_scale=2.0)) == [
        (0, 472, 18),
        (20_125 * MS, 1087, 230),
        (56_500 * MS, 1360, 125),
    ]


def test_a_duration_ends_a_trace_by_the_clock_of_the_run(made):
    assert made(BURSTGPT, duration=40.0).requests == 1
    assert made(BURSTGPT, duration=40.0, time_scale=2.0).requests == 2


def test_trace_data_set_is_timed(made):
    assert isinstance(made(AZURE), Timed)
    assert not isinstance(datasets.create(RunSettings(tokenizer=str(SIMULATOR))), Timed)


# -- the texts


@pytest.mark.parametrize(
    "make", [lambda folder: SIMULATOR, trained.superwords], ids=["words", "superwords"]
)
def test_texts_have_exactly_the_tokens_of_the_trace(made, make, tmp_path):
    path = str(make(tmp_path))
    dataset = made(
        mooncake((0, 1300, 1, [7, 8, 9]), (1, 700, 1, []), (2, 1, 1, [7])), tokenizer=path
    )
    tokenizer = load(path)
    prompts = list(dataset.prompts(3))
    assert tokenizer.count([p.text for p in prompts], special=True) == [
        p.input_tokens for p in prompts
    ]
    assert [p.input_tokens for p in prompts] == [1300, 700, 1 + tokenizer.special_tokens]


def test_prompts_share_text_as_they_share_blocks(made):
    dataset = made(
        mooncake((0, 1200, 1, [4, 5, 6]), (1, 1500, 1, [4, 5, 7]), (2, 1200, 1, [8, 5, 6]))
    )
    a, b, c = (prompt.text.split() for prompt in dataset.prompts(3))
    assert a[:1024] == b[:1024]
    assert a[1024:1030] != b[1024:1030]
    assert a[:4] != c[:4]
    assert a[512:] == c[512:]


def test_a_prompt_that_ends_within_a_block_has_its_first_words(made):
    a, b = (
        prompt.text.split()
        for prompt in made(mooncake((0, 1024, 1, [1, 2]), (1, 700, 1, [1, 2]))).prompts(2)
    )
    assert (a[:700], len(b)) == (b, 700)


def test_blocks_that_are_no_longer_held_are_made_the_same_again(made, monkeypatch):
    dataset = made(
        mooncake((0, 1500, 1, [1, 2, 3]), (1, 1500, 1, [4, 5, 6]), (2, 1500, 1, [1, 2, 3]))
    )
    expected = [prompt.text for prompt in dataset.prompts(3)]
    monkeypatch.setattr(random_text, "CACHED_TOKENS", 512)
    assert [prompt.text for prompt in dataset.prompts(3)] == expected
    assert expected[0] == expected[2] != expected[1]


def test_prompts_without_blocks_follow_from_the_seed(made):
    def begins(**seeds):
        return [tuple(prompt.text.split()[:4]) for prompt in made(BURSTGPT, **seeds).prompts(3)]

    assert len(set(begins())) == 3
    assert begins() == begins(seed_order=5) != begins(seed_prompts=5)


# -- what cannot be used


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "line 1"),
        (
            BURSTGPT.replace("1087", "many"),
            "line 3: 'Request tokens' is 'many', not a number of tokens",
        ),
        (
            BURSTGPT.replace("1087", "10000001"),
            "line 3: 'Request tokens' is '10000001', not a number of tokens",
        ),
        (BURSTGPT.replace("1087", "-3"), "line 3: 'Request tokens' is '-3'"),
        (BURSTGPT.replace("45.25", "later"), "line 3: 'Timestamp' is 'later', not a time"),
        (BURSTGPT.replace("45.25", "nan"), "line 3: 'Timestamp'"),
        (BURSTGPT + "120,ChatGPT\n", "line 6: 'Request tokens' is missing"),
        (AZURE.replace("2023-11-16 18:15:50", "18:15:50"), "line 3: 'TIMESTAMP'"),
        (mooncake((0, 5, 1, [])) + "{\n", "line 2: not JSON"),
        (mooncake((0, 5, 1, [])) + "7\n", "line 2: not a JSON object"),
        (mooncake((0, 5, 1, "x")), "line 1: 'hash_ids' is 'x', not a list of numbers"),
        (
            mooncake((0, 5, 0, []), (0, 0, 5, [])),
            "has no requests: none of its 2 rows has input and output tokens",
        ),
        (BURSTGPT.splitlines()[0] + "\n", "has no requests; give"),
    ],
)
def test_invalid_trace_row_is_refused_with_its_line(made, content, said):
    with pytest.raises(BadInput) as refused:
        made(content)
    assert refused.value.field == "--dataset-path"
    assert said in str(refused.value)


def test_blocks_of_another_size_than_mooncakes_are_refused(made):
    with pytest.raises(BadInput, match="line 1: 3 blocks of 512 tokens are more than its 1024"):
        list(made(mooncake((0, 1024, 1, [1, 2, 3]))).prompts(1))


def test_a_file_that_is_not_named_or_not_there_is_refused(made, tmp_path):
    for path in (None, str(tmp_path / "none")):
        with pytest.raises(BadInput) as refused:
            datasets.create(
                RunSettings(dataset_name="trace", tokenizer=str(SIMULATOR), dataset_path=path)
            )
        assert refused.value.field == "--dataset-path"


def test_a_format_may_be_named_and_is_then_expected(made):
    with pytest.raises(BadInput, match="missing column 'TIMESTAMP'"):
        made(BURSTGPT, trace_format="azure")


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"request_rate": 5.0}, "--request-rate"),
        ({"burstiness": 2.0}, "--burstiness"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 2.0},
            "--ramp-up-strategy",
        ),
        ({"time_scale": 0.0}, "--time-scale"),
    ],
)
def test_a_rate_beside_the_due_times_of_a_trace_is_refused(given, flag):
    with pytest.raises(BadInput) as refused:
        RunSettings(dataset_name="trace", dataset_path="x", **given).checked()
    assert refused.value.field == flag


# -- other columns, units and blocks


def test_columns_and_unit_of_a_trace_may_be_named(made):
    content = "".join(
        json.dumps({"at": number, "in": 20 + number, "out": 4}) + "\n" for number in (2, 3)
    )
    dataset = made(
        content,
        trace_format="mooncake",
        trace_time_unit=0.5,
        trace_column=("time=at", "input=in", "output=out"),
    )
    assert rows(dataset) == [(0, 22, 4), (500 * MS, 23, 4)]


def test_blocks_may_have_another_size(made):
    first, second = made(
        mooncake((0, 40, 4, [1, 2, 3]), (1, 40, 4, [1, 2, 4])), trace_block_size=16
    ).prompts(2)
    words, others = first.text.split(), second.text.split()
    assert words[:32] == others[:32]
    assert words[32:] != others[32:]


def test_more_blocks_than_tokens_are_refused_with_the_size_of_a_block(made):
    with pytest.raises(BadInput, match="give the size of its blocks: --trace-block-size TOKENS"):
        list(made(mooncake((0, 40, 4, [1, 2, 3]))).prompts(1))


def test_times_may_be_ignored(made):
    assert [due for due, _, _ in rows(made(BURSTGPT, trace_times="ignore"))] == [None, None, None]


def test_rows_need_no_times_that_are_ignored(made):
    untimed = '{"input_length": 30, "output_length": 4}\n{"input_length": 20, "output_length": 5}\n'
    assert [row[1:] for row in rows(made(untimed, trace_times="ignore"))] == [(30, 4), (20, 5)]
    with pytest.raises(BadInput, match="line 1: 'timestamp' is missing, not a time"):
        made(untimed)
    columns = "Request tokens,Response tokens\n30,4\n"
    ignored = made(columns, trace_times="ignore", trace_format="burstgpt")
    assert [row[1:] for row in rows(ignored)] == [(30, 4)]


@pytest.mark.parametrize("column", ["when=at", "time="])
def test_unknown_column_of_a_trace_is_refused(made, column):
    with pytest.raises(
        BadInput, match=r"--trace-column: unknown field or empty column .* FIELD=COLUMN with time"
    ):
        made(BURSTGPT, trace_column=(column,))
