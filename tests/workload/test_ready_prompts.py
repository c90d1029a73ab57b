"""Ready prompts: rows of JSON lines or CSV are sent unchanged, in order, in a cycle."""

import json
import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets import prompt_rows
from loadgen.workload.datasets import prompt_rows as rows
from loadgen.workload.datasets.prompt_rows import REMEDY, RowFile
from loadgen.workload.endpoints import generation as api
from loadgen.workload.prompt import UNPLANNED, Prompt
from loadgen.workload.target import Target
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"
CHAT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "why so"}]},
]


@pytest.fixture
def write(tmp_path):
    def to_file(content, ending="jsonl"):
        path = tmp_path / f"rows.{ending}"
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to_file


def prompts(path, count, kind="jsonl", **changes):
    settings = RunSettings(
        dataset_name=kind, dataset_path=str(path), **{"tokenizer": str(SIMULATOR), **changes}
    )
    return list(datasets.create(settings).prompts(count))


def numbered(count):
    return [{"prompt": f"row {number}", "input_tokens": number + 1} for number in range(count)]


class TestRowsOfOthers:
    def test_names_of_other_tools_are_those_of_here(self, write):
        row = {"type": "single_turn", "text": "why", "session_id": "s", "output_length": 7}
        (prompt,) = prompts(write([row]), 1)
        assert (prompt.text, prompt.source, prompt.output_tokens) == ("why", "s", 7)

    def test_plain_lines_are_prompts(self, write):
        made = prompts(write("a first\r\n\n{a second}\n", "txt"), 3, "text")
        assert [prompt.text for prompt in made] == ["a first", "{a second}", "a first"]
        assert [prompt.output_tokens for prompt in made] == [256] * 3

    def test_a_line_may_be_a_list_of_messages(self, write):
        (prompt,) = prompts(write(json.dumps(CHAT)), 1)
        assert list(prompt.messages) == CHAT

    def test_turns_are_questions_of_a_session(self, write):
        path = write([{"turns": ["one", {"text": "two", "delay": 5}]}, {"turns": ["three"]}])
        made = prompts(path, 3, turns="all")
        assert [(prompt.text, prompt.follows) for prompt in made] == [
            ("one", False),
            ("two", True),
            ("three", False),
        ]
        assert [message["role"] for message in made[1].messages] == ["user", "assistant", "user"]

    @pytest.mark.parametrize(
        ("row", "problem"),
        [
            ({"turns": ["one"]}, "has turns, which are sent with --turns all"),
            ({"turns": [{"texts": ["one"]}]}, "has turns without a text"),
            ({"text": "a", "prompt": "b"}, "has both text and prompt"),
        ],
    )
    def test_what_cannot_be_sent_is_refused(self, write, row, problem):
        with pytest.raises(BadInput, match=problem):
            prompts(write([row]), 1)


class TestRows:
    def test_come_in_the_order_of_the_file_whatever_the_seed(self, write):
        made = prompts(write(numbered(600)), 600, seed=7)
        assert [prompt.text for prompt in made] == [f"row {number}" for number in range(600)]

    def test_are_sent_again_from_the_first_where_there_are_too_few(self, write):
        made = prompts(write(numbered(3)), 8)
        assert [prompt.text[-1] for prompt in made] == list("01201201")

    def test_custom_is_shuffled_like_vllm(self, write):
        path = write([row | {"category": "any"} for row in numbered(100)])
        order = list(range(100))
        random.Random(0).shuffle(order)
        assert [prompt.input_tokens - 1 for prompt in prompts(path, 100, "custom")] == order
        assert prompts(path, 100, "custom", seed_order=1) != prompts(path, 100, "custom")
        in_order = prompts(path, 100, "custom", disable_shuffle=True)
        assert [prompt.input_tokens for prompt in in_order] == list(range(1, 101))

    def test_are_named_by_their_id_or_their_place(self, write):
        rows = [
            {"id": 7, "prompt": "a"},
            {"id": "seven", "prompt": "a"},
            {"id": None, "prompt": "a"},
        ]
        assert [prompt.source for prompt in prompts(write(rows), 3)] == ["7", "seven", "jsonl/3"]

    def test_fields_of_a_row_are_part_of_its_body_over_those_of_the_run(self, write):
        schema = {"response_format": {"type": "json_object"}, "min_p": 0.2}
        path = write([{"prompt": "a", "extra_body": schema}, {"prompt": "a"}])
        settings = RunSettings(
            dataset_name="jsonl", dataset_path=str(path), extra_body={"min_p": 0.1, "seed": 7}
        )
        target = Target.from_settings(settings, "m")
        own, plain = (orjson.loads(target.body(prompt)) for prompt in prompts(path, 2))
        assert own == plain | schema
        assert (own["seed"], plain["min_p"]) == (7, 0.1)

    def test_fields_of_a_row_may_stand_in_csv_and_in_an_export(self, write):
        (made,) = prompts(write('prompt,extra_body\na,"{""min_p"": 0.2}"\n', "csv"), 1, "csv")
        assert made.fields == {"min_p": 0.2}
        assert json.loads(rows.line(made))["extra_body"] == {"min_p": 0.2}

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ([1], "has an extra_body that is not an object"),
            ({"stream": False}, "stream: false"),
            ({"messages": []}, "messages would replace every prompt"),
            ({"max_tokens": 5}, "max_tokens would replace the output length that is asked"),
            ({"n": 2}, "n: 2 requests several answers to a prompt"),
        ],
    )
    def test_fields_of_a_row_that_loadgen_decides_itself_are_refused_with_the_row(
        self, write, fields, problem
    ):
        path = write([{"prompt": "a"}, {"prompt": "a", "extra_body": fields}])
        with pytest.raises(BadInput, match=problem) as refused:
            prompts(path, 2)
        assert any(place in str(refused.value) for place in ("row 2", "jsonl/2"))

    def test_rows_with_lengths_need_no_tokenizer(self, write):
        path = write(
            [
                {"prompt": "a b c", "input_tokens": 50, "output_tokens": 9},
                {"messages": CHAT, "input_tokens": 5},
            ]
        )
        made = prompts(path, 2, tokenizer=None)
        assert [(prompt.input_tokens, prompt.output_tokens) for prompt in made] == [
            (50, 9),
            (5, 256),
        ]

    def test_rows_without_lengths_are_counted(self, write, tmp_path):
        tokenizer = str(trained.wordpiece(tmp_path))
        rows = [
            {"prompt": "the name"},
            {"messages": CHAT},
            {"prompt": "the name", "input_tokens": 99},
        ]
        made = prompts(write(rows), 3, tokenizer=tokenizer, custom_output_len=3)
        around = load(tokenizer).special_tokens
        said = sum(load(tokenizer).count(["be brief", "why so"]))
        assert [prompt.input_tokens for prompt in made] == [2 + around, said, 99]
        assert {prompt.output_tokens for prompt in made} == {3}

    def test_rows_without_tokenizer_have_own_lengths(self, write):
        path = write([{"prompt": "a b c"}, {"messages": CHAT}, {"prompt": "a", "input_tokens": 3}])
        assert [prompt.input_tokens for prompt in prompts(path, 3, tokenizer="none")] == [
            UNPLANNED,
            UNPLANNED,
            3,
        ]

    def test_name_the_way_without_a_tokenizer_where_there_is_none(self, write, tmp_path):
        with pytest.raises(BadInput, match="--tokenizer none") as refused:
            prompts(write([{"prompt": "a"}]), 1, tokenizer=str(tmp_path / "missing.json"))
        assert refused.value.field == "--tokenizer"

    def test_are_sent_as_the_file_has_them(self, write):
        (text, chat) = prompts(write([{"prompt": " spaced\n"}, {"messages": CHAT}]), 2)
        target = Target("http://a", "m", api.CHAT)
        assert orjson.loads(target.body(text))["messages"] == [
            {"role": "user", "content": " spaced\n"}
        ]
        assert orjson.loads(target.body(chat))["messages"] == CHAT
        assert (
            orjson.loads(Target("http://a", "m", api.COMPLETIONS).body(text))["prompt"]
            == " spaced\n"
        )

    def test_written_from_prompts_make_the_same_prompts_and_bodies(self, write):
        settings = RunSettings(tokenizer=str(SIMULATOR), random_range_ratio="0.5")
        before = [
            *datasets.create(settings).prompts(50),
            Prompt("be brief\nwhy so", 4, 2, "chat", tuple(CHAT)),
        ]
        after = prompts(write(b"".join(rows.line(prompt) for prompt in before)), 51, tokenizer=None)
        assert after == before
        target = Target("http://a", "m", api.CHAT)
        assert [target.body(prompt) for prompt in after] == [
            target.body(prompt) for prompt in before
        ]


class TestFiles:
    @pytest.mark.parametrize(
        "content",
        [
            b'{"prompt": "a"}\n{"prompt": "b"}\n',
            b'{"prompt": "a"}\n{"prompt": "b"}',
            b'\xef\xbb\xbf{"prompt": "a"}\r\n\r\n{"prompt": "b"}\r\n',
            b'\n\n{"prompt": "a"}\n\n{"prompt": "b"}\n\n\n',
        ],
    )
    def test_empty_lines_marks_and_kinds_of_line_ends_do_not_matter(self, write, content):
        assert [prompt.text for prompt in prompts(write(content), 2)] == ["a", "b"]

    @pytest.mark.slow
    @given(
        cells=st.lists(
            st.text(st.sampled_from('ab,"\n\r é'), min_size=1, max_size=6), min_size=1, max_size=6
        )
    )
    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    def test_csv_comes_out_as_it_went_in(self, tmp_path_factory, cells, ending):
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
        path = tmp_path_factory.mktemp("csv") / "rows.csv"
        path.write_bytes(
            ending.join(["output_tokens,prompt", *(f"7,{cell}" for cell in quoted), ""]).encode()
        )
        made = prompts(path, len(cells), "csv")
        assert [(prompt.text, prompt.output_tokens) for prompt in made] == [
            (cell, 7) for cell in cells
        ]

    def test_csv_has_the_columns_of_the_rows(self, write):
        chat = json.dumps(CHAT).replace('"', '""')
        path = write(f'id,prompt,messages,input_tokens\nx,plain,,12\n,,"{chat}",\n', "csv")
        one, other = prompts(path, 2, "csv")
        assert (one.source, one.text, one.input_tokens) == ("x", "plain", 12)
        assert (other.source, list(other.messages)) == ("csv/2", CHAT)

    def test_lines_are_found_across_the_chunks_that_are_looked_at(self, write, monkeypatch):
        monkeypatch.setattr(prompt_rows, "CHUNK", 7)
        path = write('prompt\n"one\n""1"""\ntwo\n\n"thr""ee"\n', "csv")
        assert [RowFile(path, "csv")[number].text for number in range(3)] == [
            'one\n"1"',
            "two",
            'thr"ee',
        ]

    def test_only_what_is_asked_for_is_parsed(self, write):
        file = RowFile(write('{"prompt": "a"}\nnone\n{"prompt": "c"}\n'), "jsonl")
        assert (len(file), file[2].text) == (3, "c")

    def test_provenance_names_the_file_by_its_hash(self, write):
        path = write(numbered(3))
        said = datasets.create(
            RunSettings(dataset_name="jsonl", dataset_path=str(path))
        ).provenance()
        assert (said["rows"], said["file_bytes"], len(said["file_sha256"])) == (
            3,
            path.stat().st_size,
            64,
        )

    @pytest.mark.parametrize(("own", "counted"), [({}, True), ({"input_tokens": 5}, False)])
    def test_provenance_names_the_tokenizer_where_it_has_counted(self, write, own, counted):
        path = write([{"prompt": "a b"} | own])
        made = datasets.create(
            RunSettings(dataset_name="jsonl", dataset_path=str(path), tokenizer=str(SIMULATOR))
        )
        list(made.prompts(1))
        expected = (
            load(str(SIMULATOR)).provenance()
            if counted
            else {"tokenizer": None, "tokenizer_sha256": None}
        )
        assert {name: made.provenance()[name] for name in expected} == expected


class TestBadInput:
    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", " is empty"),
            (b"\n\n", " has no rows"),
            (b"1\n", ": row 1 is not a JSON object"),
            (b"[1]\n", ": row 1 has a message that is not an object with a role"),
            (
                b'{"prompt": "a"}\n{"prompt": \n',
                ": row 2 is not JSON (unexpected end of data: line 1 column 12 (char 11))",
            ),
            (b'{"prompt": "\xff"}\n', ": row 1 is not UTF-8"),
            (b'{"prompt": "a", "max_tokens": 3}\n', ": row 1 has an unknown field 'max_tokens'"),
            (b'{"id": "a"}\n', ": row 1 has neither prompt nor messages"),
            (b'{"prompt": "a", "messages": []}\n', ": row 1 has both prompt and messages"),
            (b'{"prompt": ""}\n', ": row 1 has a prompt that is not a text"),
            (b'{"prompt": ["a"]}\n', ": row 1 has a prompt that is not a text"),
            (b'{"messages": []}\n', ": row 1 has messages that are not a list, or empty"),
            (
                b'{"messages": [{"content": "a"}]}\n',
                ": row 1 has a message that is not an object with a role",
            ),
            (
                b'{"messages": [{"role": "user", "content": 1}]}\n',
                ": row 1 has a message whose content is neither a text nor a list of parts",
            ),
            (
                b'{"messages": [{"role": "user"}]}\n',
                ": row 1 has a message whose content is neither a text nor a list of parts",
            ),
            *(
                (
                    f'{{"prompt": "a", "{name}": {value}}}'.encode(),
                    f": row 1 has {name} {json.loads(value)!r}, which is not a number of tokens "
                    "from 1 to 10,000,000",
                )
                for name in ("input_tokens", "output_tokens")
                for value in ("0", "-1", "1.5", "true", '"5"', "10000001", "9223372036854775808")
            ),
        ],
    )
    def test_json_lines_that_are_none_are_refused_with_the_row(self, write, content, problem):
        path = write(content)
        with pytest.raises(BadInput) as refused:
            prompts(path, 5)
        assert str(refused.value) == f"--dataset-path: {path}{problem}; {REMEDY}"

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("prompt\n", " has no rows"),
            ("prompt,answer\na,b\n", ": its header has an unknown field 'answer'"),
            ("prompt,id,prompt\na,b,c\n", ": its header contains 'prompt' twice"),
            ("prompt,id\na\n", ": row 1 has 1 columns, and the header has 2"),
            ('prompt\na\n"b\n', ": row 2 is not CSV: a quote is misplaced, or not closed"),
            ('prompt,id\n5" disk,"a"\n', ": row 1 is not CSV: a quote is misplaced, or not closed"),
            (b"prompt\n\xff\n", ": row 1 is not UTF-8"),
            (
                "prompt,input_tokens\na,many\n",
                ": row 1 has a number, messages or extra_body that cannot be read "
                "(invalid literal for int() with base 10: 'many')",
            ),
        ],
    )
    def test_csv_that_is_none_is_refused_with_the_row(self, write, content, problem):
        path = write(content, "csv")
        with pytest.raises(BadInput) as refused:
            prompts(path, 5, "csv")
        assert str(refused.value) == f"--dataset-path: {path}{problem}; {REMEDY}"

    @pytest.mark.parametrize(
        ("name", "why"), [("nothing", "No such file or directory"), (".", "Is a directory")]
    )
    def test_a_path_to_no_file(self, tmp_path, name, why):
        with pytest.raises(BadInput) as refused:
            prompts(tmp_path / name, 1)
        assert (
            str(refused.value)
            == f"--dataset-path: {tmp_path / name} cannot be read ({why}); {REMEDY}"
        )

    def test_missing_path_is_refused(self):
        with pytest.raises(
            BadInput, match="--dataset-path: is missing: the data set csv needs a file; give rows"
        ):
            datasets.create(RunSettings(dataset_name="csv"))

    def test_a_row_to_be_counted_and_no_tokenizer(self, write):
        with pytest.raises(BadInput, match="--tokenizer: is missing"):
            prompts(write([{"prompt": "a"}]), 1, tokenizer=None)

    def test_with_vllms_minus_one_a_row_that_says_no_length(self, write):
        told = [{"prompt": "a", "input_tokens": 1, "output_tokens": 5}]
        assert [
            prompt.output_tokens for prompt in prompts(write(told), 1, custom_output_len=-1)
        ] == [5]
        with pytest.raises(BadInput) as refused:
            prompts(write([{"prompt": "a", "input_tokens": 1}]), 1, custom_output_len=-1)
        assert (
            str(refused.value)
            == "--custom-output-len: is -1, and a row has no output_tokens; give a length"
        )
