"""Data sets that vLLM knows by name give the prompts that vLLM makes of the same records."""

import base64
import json
from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets.hub_layouts import KNOWN, known_name
from loadgen.workload.image import images
from tests.helpers.hub_rows import ROWS, SPEC_BENCH, SPEED_BENCH
from tests.workload.test_random_words import SIMULATOR

# Prompts, input tokens and output tokens of ten requests of each data set: the sampling classes of
# vLLM 0.33 were executed by hand on the records of tests/helpers/hub_rows.py, with --seed 0,
# datasets 5.2 and the simulator's tokenizer, without the chat template.
MADE_BY_VLLM = json.loads((Path(__file__).parent / "golden" / "vllm_hub_prompts.json").read_text())

EXAM = "mgoin/mlperf-inference-llama2-data"


def write(folder, name, records):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


def made(count=10, name="hf", **settings):
    asked = RunSettings(dataset_name=name, tokenizer=str(SIMULATOR), **settings)
    prompts = datasets.create(asked).prompts(count)
    return [[prompt.text, prompt.input_tokens, prompt.output_tokens] for prompt in prompts]


@pytest.mark.parametrize("name", [name for name in ROWS if name != EXAM])
def test_local_copy_gives_the_prompts_of_vllm(tmp_path, name):
    write(tmp_path / name, "train.jsonl", ROWS[name])
    assert made(dataset_path=str(tmp_path / name)) == MADE_BY_VLLM[name]


def test_name_of_a_copy_may_be_given_apart(tmp_path):
    write(tmp_path, "rows.jsonl", ROWS["philschmid/mt-bench"])
    found = made(dataset_path=str(tmp_path / "rows.jsonl"), hf_name="philschmid/mt-bench")
    assert found == MADE_BY_VLLM["philschmid/mt-bench"]


def test_spec_bench_is_shuffled_within_its_category(tmp_path):
    write(tmp_path, "question.jsonl", SPEC_BENCH)
    path = str(tmp_path / "question.jsonl")
    assert (
        made(name="spec_bench", dataset_path=path, hf_where=("category=writing",))
        == MADE_BY_VLLM["spec_bench"]
    )


def test_speed_bench_reads_the_file_of_its_subset(tmp_path):
    write(tmp_path, "qualitative.jsonl", SPEED_BENCH)
    write(
        tmp_path,
        "throughput_1k.jsonl",
        [{"messages": [{"role": "user", "content": "one"}], "category": "mixed"}],
    )
    assert made(name="speed_bench", dataset_path=str(tmp_path)) == MADE_BY_VLLM["speed_bench"]
    assert made(1, name="speed_bench", dataset_path=str(tmp_path), hf_subset="throughput_1k") == [
        ["one", 1, 4096]
    ]


def test_speed_bench_as_published_leaves_masked_and_longer_conversations_out(tmp_path):
    rows = [
        {
            "turns": ["FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"],
            "category": "a",
            "multiturn": False,
        },
        {"turns": ["one", "two"], "category": "a", "multiturn": True},
        {"turns": ["three"], "category": "a", "multiturn": False},
    ]
    write(tmp_path, "throughput_1k.jsonl", rows)
    assert (
        made(2, name="speed_bench", dataset_path=str(tmp_path / "throughput_1k.jsonl"))
        == [["three", 1, 4096]] * 2
    )


def test_exams_of_mlperf_are_chats_of_two_messages(tmp_path):
    """vLLM makes a text of them, with the chat template; here it was a line for each message."""
    write(tmp_path / EXAM, "train.jsonl", ROWS[EXAM])
    found = made(dataset_path=str(tmp_path / EXAM))
    assert [(text, wanted) for text, _, wanted in found] == [
        (text, wanted) for text, _, wanted in MADE_BY_VLLM[EXAM]
    ]
    asked = RunSettings(
        dataset_name="hf", tokenizer=str(SIMULATOR), dataset_path=str(tmp_path / EXAM)
    )
    (prompt,) = datasets.create(asked).prompts(1)
    assert [message["role"] for message in prompt.messages] == ["system", "user"]


def test_bounds_hold_only_for_recorded_answers(tmp_path):
    name = "Aeala/ShareGPT_Vicuna_unfiltered"
    write(tmp_path / name, "train.jsonl", ROWS[name])
    prompts = made(9, dataset_path=str(tmp_path / name), hf_output_len=5, disable_shuffle=True)
    assert [text[:2] for text, _, _ in prompts[7:]] == ["Hm", " a"]
    assert {wanted for _, _, wanted in prompts} == {5}


def test_reading_of_longbench_asks_after_the_context(tmp_path):
    write(
        tmp_path / "THUDM/LongBench/narrativeqa",
        "test.jsonl",
        [{"context": "A tale.", "input": "Who?"}],
    )
    found = made(
        1, dataset_path=str(tmp_path / "THUDM/LongBench"), hf_subset="narrativeqa", hf_split="test"
    )
    assert found == [["A tale.\n\nWho?", 7, 128]]


def test_columns_of_a_known_data_set_may_be_named(tmp_path):
    name = "openai/gsm8k"
    write(tmp_path / name, "test.jsonl", ROWS[name])
    found = made(
        1, dataset_path=str(tmp_path / name), hf_column=("prompt=answer",), disable_shuffle=True
    )
    assert found[0][0] == "#### 0"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("openai/gsm8k", "openai/gsm8k"),
        ("/copies/openai/gsm8k/", "openai/gsm8k"),
        ("/cache/hub/datasets--openai--gsm8k/snapshots/abc", "openai/gsm8k"),
        ("other/gsm8k", None),
        ("gsm8k", None),
    ],
)
def test_name_is_found_in_a_path(path, name):
    assert known_name(path) == name


def test_split_of_a_test_is_test():
    assert {name for name, layout in KNOWN.items() if layout.split == "test"} == {
        "openai/openai_humaneval",
        "openai/gsm8k",
    }


PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
QUESTION = {"type": "text", "text": "one two"}


@pytest.mark.parametrize(
    ("name", "record"),
    [
        (
            "lmarena-ai/VisionArena-Chat",
            {"conversation": [[{"role": "user", "content": "one two"}]]},
        ),
        (
            "lmarena-ai/vision-arena-bench-v0.1",
            {"turns": [[{"role": "user", "content": "one two"}]]},
        ),
        ("lmarena-ai/vision-arena-bench-v0.1", {"turns": [["one two"]]}),
    ],
)
def test_first_image_of_a_record_follows_its_question(tmp_path, name, record):
    write(tmp_path / name, "train.jsonl", [record | {"images": ["a.png", "b.png"]}])
    asked = RunSettings(
        dataset_name="hf", tokenizer=str(SIMULATOR), dataset_path=str(tmp_path / name)
    )
    (prompt,) = datasets.create(asked).prompts(1)
    image = {"type": "image_url", "image_url": {"url": "file://a.png"}}
    assert prompt.messages == ({"role": "user", "content": [QUESTION, image]},)
    assert (prompt.input_tokens, prompt.output_tokens) == (2, 128)


def test_image_of_parquet_is_sent_as_its_bytes():
    row = KNOWN["lmarena-ai/VisionArena-Chat"].read(
        {"conversation": [[{"content": "one two"}]], "images": [{"bytes": PNG, "path": None}]},
        "hf/0",
    )
    (url,) = images(row.messages)
    assert url.url() == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


@pytest.mark.parametrize("name", ["Lin-Chen/MMStar", "openslr/librispeech_asr", "yale-nlp/MMVU"])
def test_more_than_text_is_refused_before_anything_is_read(name):
    with pytest.raises(
        BadInput, match=rf"--dataset-path: {name} has .*, which loadgen does not send"
    ):
        made(dataset_path=name)


def test_record_of_another_form_is_named_with_its_columns(tmp_path):
    write(tmp_path / "philschmid/mt-bench", "train.jsonl", [{"question": "a"}])
    with pytest.raises(
        BadInput, match=r"hf/0 of .* has no column 'turns'; give its columns: .* of question"
    ):
        made(dataset_path=str(tmp_path / "philschmid/mt-bench"))
