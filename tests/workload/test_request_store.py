"""Requests are written once before the clock starts and read one at a time during the run."""

import itertools
import weakref
from types import SimpleNamespace

import orjson
import pytest

from loadgen.errors import BadInput
from loadgen.workload import request_store
from loadgen.workload.datasets.overview import Overview
from loadgen.workload.due_times import DRAWN, FOLLOWS
from loadgen.workload.encoded_images import RandomImage
from loadgen.workload.prompt import ANSWER, ANSWER_PLACEHOLDER, Prompt
from loadgen.workload.request_store import BLOCK, BLOCK_CHARACTERS, Requests


def prompts(count):
    return [Prompt(f"text {i} é", 10 + i, 100 + i, f"test/{i}") for i in range(count)]


def body(prompt):
    return orjson.dumps({"prompt": prompt.text, "max_tokens": prompt.output_tokens})


@pytest.fixture
def write(tmp_path):
    def written(count, **options):
        request_store.write(
            tmp_path, prompts(count), body, lambda: {"name": "test"}, count, **options
        )
        return tmp_path

    return written


def test_requests_are_read_back_as_written(write):
    with Requests(write(5)) as read:
        assert len(read) == 5
        for i, prompt in enumerate(prompts(5)):
            assert read.body(i) == body(prompt)
            assert read.tokens(i) == (10 + i, 100 + i)
        assert read.sources() == [f"test/{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("extra", "count"), [({}, None), ({"response_format": {"type": "json_object"}}, 3)]
)
def test_the_store_knows_whether_any_answer_is_to_be_json(tmp_path, extra, count):
    request_store.write(tmp_path, prompts(3), lambda prompt: orjson.dumps(extra), dict, 3)
    with Requests(tmp_path) as read:
        assert read.structured is (count is not None)
    assert request_store.read_about(tmp_path).get("structured") == count


def test_requests_may_be_read_in_any_order(write):
    with Requests(write(5)) as read:
        assert [read.body(i) for i in (3, 0, 4)] == [body(prompts(5)[i]) for i in (3, 0, 4)]


def test_asking_beyond_the_last_one_starts_over(write):
    with Requests(write(3)) as read:
        assert read.body(4) == read.body(1)
        assert read.tokens(3) == read.tokens(0)


def test_server_tokens_are_stored_if_known(tmp_path):
    known = [Prompt("a", 3, 1, "test", server_tokens=11), Prompt("b", 3, 1, "test")]
    request_store.write(tmp_path, known, body, dict, 2)
    with Requests(tmp_path) as read:
        assert [read.record(index, 0).server_tokens for index in range(3)] == [11, -1, 11]


def test_images_of_the_prompts_are_counted(tmp_path):
    parts = [{"type": "image_url", "image_url": {"url": "data:x"}}] * 2
    known = [
        Prompt("a", 3, 1, "test", ({"role": "user", "content": parts},)),
        Prompt("b", 3, 1, "test"),
    ]
    request_store.write(tmp_path, known, body, dict, 2)
    assert request_store.read_about(tmp_path)["images"] == 2


def test_a_request_has_its_class_and_repeated_rows_have_theirs(tmp_path):
    known = [Prompt("a", 3, 1, "test", class_number=number) for number in (2, 0, 255)]
    request_store.write(tmp_path, known, body, dict, 3)
    with request_store.Requests(tmp_path) as read:
        assert [read.record(index, 0).class_number for index in range(5)] == [2, 0, 255, 2, 0]


def test_requests_that_the_disk_has_no_room_for_are_refused_after_the_first_block(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(request_store, "BLOCK", 2)
    monkeypatch.setattr(
        request_store.shutil, "disk_usage", lambda folder: SimpleNamespace(free=10_000)
    )
    written = []
    with pytest.raises(
        BadInput, match=r"^TMPDIR: 1000 requests need about 0\.0 GB, and .* has 0\.0 GB left"
    ):
        request_store.write(tmp_path, prompts(1000), body, dict, 1000, written.append)
    assert written == []
    request_store.write(tmp_path, prompts(100), body, dict, 100)


def test_a_block_ends_before_its_images_are_large(monkeypatch):
    picture = RandomImage(1000, 1000, "png", "random", 0, 0, 0)
    chat = ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": picture}}]},)
    waiting = iter([Prompt("a", 3, 1, "test", chat)] * 9)
    assert len(request_store.next_block(waiting)) == 2


def test_token_counts_are_plain_ints(write):
    with Requests(write(1)) as read:
        assert [type(count) for count in read.tokens(0)] == [int, int]


def test_store_keeps_provenance_and_the_overview_hash(write):
    shown = Overview.of(prompts(5), dict)
    assert request_store.read_about(write(5)) == {
        "name": "test",
        "sha256": shown.sha256,
        "requests": 5,
        "distinct": 5,
    }


def test_overview_hash_is_that_of_the_prompts(tmp_path):
    found = set()
    for model in (b"one", b"other"):
        request_store.write(
            tmp_path, prompts(5), lambda prompt, model=model: body(prompt) + model, dict, 5
        )
        found.add(request_store.read_about(tmp_path)["sha256"])
    assert len(found) == 1


def test_repeated_texts_are_not_distinct(tmp_path):
    repeated = [Prompt(f"text {i % 3}", 1, i + 1, "test") for i in range(8)]
    request_store.write(tmp_path, repeated, body, dict, 8)
    assert request_store.read_about(tmp_path)["distinct"] == 3


def test_provenance_of_prompts_is_asked_after_all_are_made(tmp_path):
    made = []

    def one_by_one():
        for prompt in prompts(3):
            made.append(prompt)
            yield prompt

    request_store.write(tmp_path, one_by_one(), body, lambda: {"made": len(made)}, 3)
    assert request_store.read_about(tmp_path)["made"] == 3


def test_a_data_set_that_gives_too_few_prompts_is_refused(tmp_path):
    with pytest.raises(BadInput, match="has 3 prompts, and 4 are needed"):
        request_store.write(tmp_path, prompts(3), body, dict, 4)


def test_a_data_set_that_never_ends_is_refused(tmp_path):
    with pytest.raises(BadInput, match="has more prompts, and 4 are needed"):
        request_store.write(tmp_path, itertools.cycle(prompts(3)), body, dict, 4)


def test_a_source_of_any_text_is_one_line(tmp_path):
    odd = [Prompt("x", 1, 1, source) for source in ('a"b', "two\nlines", "\u2028", "é😀", "\r\n")]
    request_store.write(tmp_path, odd, body, dict, len(odd))
    with Requests(tmp_path) as read:
        assert read.sources() == [prompt.source for prompt in odd]


def test_progress_is_told_after_each_block_the_last_one_too(write):
    told = []
    write(2 * BLOCK + 5, progress=told.append)
    assert told == [BLOCK, 2 * BLOCK, 2 * BLOCK + 5]


def test_progress_is_told_of_long_prompts_one_by_one(tmp_path):
    told = []
    long = [Prompt("x" * BLOCK_CHARACTERS, 1, 1, f"test/{i}") for i in range(3)]
    request_store.write(tmp_path, long, lambda prompt: b"{}", dict, 3, told.append)
    assert told == [1, 2, 3]


def test_the_file_is_closed_at_the_end(write):
    with Requests(write(1)) as read:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        read.body(0)


# -- sessions and due times


def turns(*lengths):
    """Sessions of so many turns, whose further turns come after 5 ns."""
    return [
        Prompt(f"{session}/{turn}", 1, 1, "test", after=(1,) * (turn > 0), think_ns=5 * (turn > 0))
        for session, length in enumerate(lengths)
        for turn in range(length)
    ]


def test_think_times_hold_beyond_the_last_row(tmp_path):
    request_store.write(tmp_path, turns(2, 1, 3), body, dict, 6)
    with Requests(tmp_path) as read:
        assert [read.think_ns(i) for i in range(8)] == [0, 5, 0, 0, 5, 5, 0, 5]
    assert request_store.requested_due_ns(tmp_path).tolist() == [
        DRAWN,
        FOLLOWS,
        DRAWN,
        DRAWN,
        FOLLOWS,
        FOLLOWS,
    ]


def test_store_without_followups_has_no_due_times(write):
    folder = write(3)
    assert request_store.requested_due_ns(folder) is None


def test_due_times_of_prompts_are_kept(tmp_path):
    request_store.write(
        tmp_path, [Prompt("a", 1, 1, "test", due_ns=ns) for ns in (0, 7)], body, dict, 2
    )
    assert request_store.requested_due_ns(tmp_path).tolist() == [0, 7]


@pytest.mark.parametrize(("asked", "given"), [(2, "more"), (4, "3")])
def test_so_many_sessions_as_were_asked_must_be_there(tmp_path, asked, given):
    with pytest.raises(BadInput, match=f"has {given} sessions, and {asked} are needed"):
        request_store.write(tmp_path, turns(2, 1, 3), body, dict, asked, of_sessions=True)


def test_sessions_are_counted_whatever_their_turns(tmp_path):
    request_store.write(tmp_path, turns(2, 1, 3), body, dict, 3, of_sessions=True)
    assert request_store.read_about(tmp_path)["requests"] == 6


def test_sessions_without_end_are_too_many(tmp_path):
    with pytest.raises(BadInput, match="has more sessions"):
        request_store.write(tmp_path, itertools.cycle(turns(2)), body, dict, 3, of_sessions=True)


def test_a_first_prompt_that_follows_another_is_refused(tmp_path):
    with pytest.raises(BadInput, match="follows another"):
        request_store.write(tmp_path, turns(2)[1:], body, dict, 1)


def test_answer_placeholders_are_never_confused_with_text(tmp_path):
    plain = Prompt("\u00ff\\xff\x00", 1, 1, "test")
    request_store.write(tmp_path, [plain], body, dict, 1)
    with Requests(tmp_path) as read:
        assert not read.repeats_answers
    said = ({"role": "assistant", "content": ANSWER},)
    request_store.write(
        tmp_path, [Prompt("a", 1, 1, "test", said)], lambda p: orjson.dumps(p.messages), dict, 1
    )
    with Requests(tmp_path) as read:
        assert read.repeats_answers
        assert read.body(0) == b'[{"role":"assistant","content":"' + ANSWER_PLACEHOLDER + b'"}]'


@pytest.mark.usefixtures("no_collection")
def test_requests_that_grow_are_freed_with_their_last_name(write):
    folder = write(2)
    request_store.write_about(folder, request_store.read_about(folder) | {"further": True})
    with Requests(folder) as read:
        assert read.body(1) == body(prompts(2)[1])
    last = weakref.ref(read)
    del read
    assert last() is None


def test_the_texts_of_prompts_without_answers_are_counted(tmp_path):
    texts = [Prompt("", 2, tokens, "t", texts=("a", "b")) for tokens in (0, 0, 5)]
    request_store.write(tmp_path, texts, lambda p: orjson.dumps({"input": p.texts}), dict, 3)
    with Requests(tmp_path) as read:
        assert [read.record(index, 0).texts for index in range(3)] == [2, 2, 0]
