"""Requests: written once before the clock starts, read one at a time while it runs."""

import hashlib
import itertools

import orjson
import pytest

from loadgen import requests
from loadgen.errors import BadInput
from loadgen.prompts import Prompt
from loadgen.requests import BLOCK, Requests


def prompts(count):
    return [Prompt(f"text {i} é", 10 + i, 100 + i, f"test/{i}") for i in range(count)]


def body(prompt):
    return orjson.dumps({"prompt": prompt.text, "max_tokens": prompt.output_tokens})


@pytest.fixture
def write(tmp_path):
    def written(count, **options):
        requests.write(tmp_path, prompts(count), body, lambda: {"name": "test"}, count, **options)
        return tmp_path

    return written


def test_what_was_written_is_read(write):
    with Requests(write(5)) as read:
        assert len(read) == 5
        for i, prompt in enumerate(prompts(5)):
            assert read.body(i) == body(prompt)
            assert read.tokens(i) == (10 + i, 100 + i)
        assert read.sources() == [f"test/{i}" for i in range(5)]


def test_requests_may_be_read_in_any_order(write):
    with Requests(write(5)) as read:
        assert [read.body(i) for i in (3, 0, 4)] == [body(prompts(5)[i]) for i in (3, 0, 4)]


def test_asking_beyond_the_last_one_starts_over(write):
    with Requests(write(3)) as read:
        assert read.body(4) == read.body(1)
        assert read.tokens(3) == read.tokens(0)


def test_what_the_server_is_expected_to_count_is_kept_where_it_is_known(tmp_path):
    known = [Prompt("a", 3, 1, "test", server_tokens=11), Prompt("b", 3, 1, "test")]
    requests.write(tmp_path, known, body, dict, 2)
    with Requests(tmp_path) as read:
        assert [read.server_tokens(index) for index in range(3)] == [11, -1, 11]


def test_token_counts_are_plain_ints(write):
    with Requests(write(1)) as read:
        assert [type(count) for count in read.tokens(0)] == [int, int]


def test_where_they_come_from_is_kept_with_the_hash_of_all_bodies(write):
    whole = b"".join(body(prompt) for prompt in prompts(5))
    assert requests.about(write(5)) == {
        "name": "test",
        "sha256": hashlib.sha256(whole).hexdigest(),
        "requests": 5,
        "distinct": 5,
    }


def test_prompts_that_repeat_an_earlier_text_are_not_distinct_whatever_answer_they_ask(tmp_path):
    repeated = [Prompt(f"text {i % 3}", 1, i + 1, "test") for i in range(8)]
    requests.write(tmp_path, repeated, body, dict, 8)
    assert requests.about(tmp_path)["distinct"] == 3


def test_what_is_said_of_the_prompts_is_asked_when_all_are_made(tmp_path):
    made = []

    def one_by_one():
        for prompt in prompts(3):
            made.append(prompt)
            yield prompt

    requests.write(tmp_path, one_by_one(), body, lambda: {"made": len(made)}, 3)
    assert requests.about(tmp_path)["made"] == 3


def test_a_data_set_that_gives_too_few_prompts_is_refused(tmp_path):
    with pytest.raises(BadInput, match="gives 3 prompts where 4 were asked"):
        requests.write(tmp_path, prompts(3), body, dict, 4)


def test_a_data_set_that_never_ends_is_refused(tmp_path):
    with pytest.raises(BadInput, match="gives more prompts where 4 were asked"):
        requests.write(tmp_path, itertools.cycle(prompts(3)), body, dict, 4)


def test_a_source_of_any_text_is_one_line(tmp_path):
    odd = [Prompt("x", 1, 1, source) for source in ('a"b', "two\nlines", "\u2028", "é😀", "\r\n")]
    requests.write(tmp_path, odd, body, dict, len(odd))
    with Requests(tmp_path) as read:
        assert read.sources() == [prompt.source for prompt in odd]


def test_progress_is_told_after_each_block_the_last_one_too(write):
    told = []
    write(2 * BLOCK + 5, progress=told.append)
    assert told == [BLOCK, 2 * BLOCK, 2 * BLOCK + 5]


def test_the_file_is_closed_at_the_end(write):
    with Requests(write(1)) as read:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        read.body(0)
