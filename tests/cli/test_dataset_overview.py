"""The overview of a data set as text: numbers, lengths and samples, with control characters
escaped.
"""

import pytest
from msgspec import structs

from loadgen.cli.commands.dataset_overview import render
from loadgen.workload.prompt import UNPLANNED, Prompt
from tests.helpers.prompt_overviews import overview, prompts


def text(*given, **about):
    return render(overview(*given, **about))


def test_every_line_fits_80_columns():
    long = Prompt("word " * 1000, 131_072, 131_072, "source/" + "x" * 200, server_tokens=131_084)
    wide = Prompt("中文" * 500, 9, 9, "中/1")
    found = text(*[long] * 3000, wide, file_sha256="f" * 64, tokenizer_sha256="t" * 64)
    assert max(map(len, found.splitlines())) <= 80


def test_totals_duplicates_and_hashes_are_shown():
    found = text(*prompts(3, 5), *prompts(3), file_sha256="f" * 64)
    assert "mine, rule: plain" in found
    assert "3 prompts, 2 of them distinct (prefix caches" in found
    assert "input      11   3.7    3" in found
    assert "f" * 64 in found
    assert "2 prompts, all distinct" in text(*prompts(3, 5))


@pytest.mark.parametrize(
    ("server", "unknown", "said"),
    [
        (8, None, "24 (the text's plus 8 per prompt)"),
        (None, "no template lies there", "unknown (no template lies there)"),
        (None, None, "unknown (not given by the data set)"),
    ],
)
def test_server_token_count_or_its_absence_is_printed(server, unknown, said):
    found = text(*prompts(3, 5, server=server), server_tokens={"unknown": unknown})
    assert f"as the server will count it: {said}" in found


def test_turns_that_repeat_answers_have_no_length_beforehand():
    (first,) = prompts(3)
    again = structs.replace(first, input_tokens=UNPLANNED, after=(1,))
    found = overview(first, again)
    assert (found.count, found.unplanned, found.to_dict()["total_input_tokens"]) == (2, 1, None)
    assert found.input_tokens.tolist() == [3]
    assert "1 of them include responses of the server" in text(first, again)
    assert "input tokens unknown, output tokens 5" in text(first, again)
    assert "  input   unknown   3.0" in text(first, again)  # as JSON, which has null


def test_zero_overhead_is_printed_without_a_template():
    given = [Prompt("a", 4, 1, "1", server_tokens=4)]
    assert "count it: 4 (the text's)" in text(*given)


def test_a_cut_off_file_is_told():
    assert "only its 7 complete conversations are used" in text(
        *prompts(1), file_cut_off=True, conversations=7
    )


def test_rows_of_a_trace_that_are_left_out_are_told_and_none_are_not():
    assert "  1,200 rows of the trace left out: " in text(*prompts(1), rows_left_out=1200)
    assert "left out" not in text(*prompts(1), rows_left_out=0)


def test_three_samples_are_shown_and_no_more():
    found = text(*prompts(*[4] * 9))
    assert "row/2: input tokens 4, output tokens 5\n    text 2" in found
    assert "row/3" not in found


def test_a_chat_shows_its_first_and_last_message():
    turns = [
        {"role": role, "content": f"{role} says"}
        for role in ("system", "user", "assistant", "user")
    ]
    turns[-1]["content"] = [
        {"type": "text", "text": "parts"},
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    found = text(Prompt("", 9, 1, "chat/1", tuple(turns)))
    assert "    system: system says\n" in found
    assert "    user: parts [image_url]\n    (4 messages)" in found
    assert "assistant says" not in found


def test_control_characters_of_prompts_are_escaped():
    hostile = "\x1b[2J\x9b31m\u202e\r\nnext"
    found = text(Prompt(hostile, 1, 1, hostile), name=hostile, rule=hostile, file_sha256=hostile)
    assert "\\x1b[2J\\x9b31m\\u202e\\r\\nnext" in found
    assert all(line.isprintable() for line in found.split("\n"))


def test_headings_are_bold_in_colour_alone():
    plain, bold = (render(overview(*prompts(1)), colour=colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert bold.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain
