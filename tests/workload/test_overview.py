"""The overview of the requests: totals and exported rows."""

import io
import itertools
import json

import numpy as np
import pytest
from msgspec import structs

from loadgen.errors import BadInput
from loadgen.workload.datasets.overview import Overview, bins, summary
from loadgen.workload.datasets.prompt_rows import export_rows
from loadgen.workload.datasets.prompt_rows import line as to_line
from loadgen.workload.prompt import Prompt
from tests.helpers.prompt_overviews import overview, prompts

# -- the numbers


def test_counts_and_totals_are_those_of_the_prompts():
    told = overview(*prompts(3, 5, 10, outputs=7)).to_dict()
    assert (told["dataset"], told["rule"], told["num_prompts"]) == ("mine", "plain", 3)
    assert (told["total_input_tokens"], told["total_output_tokens"]) == (18, 21)
    assert json.loads(json.dumps(told)) == told


def test_percentiles_are_those_of_numpy():
    told = overview(*prompts(*range(1, 102))).to_dict()["percentiles"]["input_tokens"]
    assert told == {
        "mean": 51,
        "min": 1,
        "p1": 2,
        "p10": 11,
        "p50": 51,
        "p90": 91,
        "p99": 100,
        "max": 101,
    }
    assert list(told) == ["mean", "min", "p1", "p10", "p50", "p90", "p99", "max"]


def test_overview_sums_server_tokens():
    found = overview(*prompts(3, 5, server=8))
    assert found.to_dict()["predicted_server_input_tokens"] == 24
    assert found.added_tokens == (8, 8)


def test_the_servers_count_is_unknown_where_one_prompt_has_none():
    for given in ([*prompts(3, server=8), *prompts(5)], [*prompts(5), *prompts(3, server=8)]):
        found = overview(*given)
        assert found.to_dict()["predicted_server_input_tokens"] is None
        assert found.added_tokens is None


def test_hashes_of_file_and_tokenizer_are_the_data_sets_own():
    found = overview(*prompts(1), file_sha256="f", tokenizer_sha256="t").hashes()
    assert (found["file"], found["tokenizer"]) == ("f", "t")
    assert overview(*prompts(1)).hashes()["file"] is None


def test_progress_is_told_while_prompts_are_looked_at():
    told = []
    Overview.of(prompts(*[1] * 200), dict, told.append)
    assert told == [0, 64, 128, 192]


@pytest.mark.parametrize(
    "lengths", [[7], [7, 7], [1, 2, 3], range(1, 1000), [5, 131_072], [1024, 1030], [99, 100]]
)
def test_bins_are_few_equal_and_round(lengths):
    found = bins(np.array(lengths))
    assert sum(count for *_, count in found) == len(lengths)
    assert 1 <= len(found) <= 9
    widths = {high - low + 1 for low, high, _ in found}
    (width,) = widths
    assert str(width).rstrip("0") in ("1", "2", "5")
    assert found[0][0] % width == 0
    for low, high, count in found:
        assert count == sum(low <= length <= high for length in lengths)
    assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(found))


def test_a_summary_of_one_length_is_that_length():
    assert set(summary(np.array([4])).values()) == {4}


# -- the rows


def test_a_row_has_four_keys_and_holds_text_or_messages():
    chat = ({"role": "user", "content": "é\n"},)
    assert json.loads(to_line(Prompt("é\n", 3, 4, "id/1"))) == {
        "id": "id/1",
        "prompt": "é\n",
        "input_tokens": 3,
        "output_tokens": 4,
    }
    assert json.loads(to_line(Prompt("", 3, 4, "id/2", chat))) == {
        "id": "id/2",
        "messages": [{"role": "user", "content": "é\n"}],
        "input_tokens": 3,
        "output_tokens": 4,
    }


def test_rows_are_lines_whatever_the_text():
    line = to_line(Prompt("a\nb\u2028c\r", 1, 1, "1"))
    assert line.splitlines() == [line[:-1]]


def test_prompts_are_handed_on_as_they_are_written(tmp_path):
    given = prompts(1, 2)
    with open(tmp_path / "rows", "wb") as file:
        assert list(export_rows(iter(given), file)) == given
    assert (tmp_path / "rows").read_bytes() == b"".join(map(to_line, given))


@pytest.mark.parametrize(
    ("own", "what"), [({"after": (1,)}, "sessions"), ({"due_ns": 0}, "due times")]
)
def test_prompt_that_rows_cannot_hold_is_not_exported(own, what):
    (first,) = prompts(3)
    with pytest.raises(BadInput, match=rf"^--export: .*{what}"):
        list(export_rows([first, structs.replace(first, **own)], io.BytesIO()))
