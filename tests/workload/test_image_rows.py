"""custom_image: rows of a prompt with image files, or of content parts, as vLLM reads them."""

import base64
import json

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.encoded_images import ImageFile, referred
from loadgen.workload.prompt import PromptDigest
from loadgen.workload.target import Target
from tests.helpers.source import ROOT

SIMULATOR = str(ROOT / "engines" / "sim" / "tokenizer.json")
DATA = b"\x89PNG\r\n\x1a\nnot really"
SENT = f"data:image/png;base64,{base64.b64encode(DATA).decode()}"


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(DATA)
    return str(path)


@pytest.fixture
def read(tmp_path):
    def prompts(*rows, **options):
        file = tmp_path / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        named = {"dataset_name": "custom_image", "dataset_path": str(file), "tokenizer": SIMULATOR}
        settings = RunSettings(
            **{"backend": "openai-chat", "disable_shuffle": True} | named | options
        )
        return list(datasets.create(settings).prompts(len(rows)))

    return prompts


def contents(prompts):
    target = Target.from_settings(RunSettings(backend="openai-chat"), "m")
    return [orjson.loads(target.body(prompt))["messages"][0]["content"] for prompt in prompts]


def url(address, **others):
    return {"type": "image_url", "image_url": {"url": address, **others}}


def text(words):
    return {"type": "text", "text": words}


def test_image_files_follow_the_prompt_and_are_read_by_the_server(read, picture):
    files = [picture, "https://x/y.jpg", "data:image/png;base64,eA==", "file:///z.png"]
    (found,) = contents(read({"prompt": "What?", "image_files": files}))
    assert found == [text("What?"), *map(url, [f"file://{picture}", *files[1:]])]


def test_image_files_are_sent_in_the_body_if_asked(read, picture):
    rows = {
        "prompt": "What?",
        "image_files": [picture, f"file://{picture}", "data:image/png;base64,eA=="],
    }
    (found,) = contents(read(rows, custom_ensure_client_side_data=True))
    assert found == [text("What?"), url(SENT), url(SENT), url("data:image/png;base64,eA==")]


def test_content_keeps_its_order_and_the_fields_of_its_images(read, picture):
    content = [
        {"type": "image", "image": picture},
        {"type": "text", "text": "and", "cached": True},
        {"type": "image_url", "image_url": "https://x"},
        {"type": "image_url", "image_url": {"url": picture, "detail": "low"}},
    ]
    (found,) = contents(read({"content": content}))
    assert found == [
        url(f"file://{picture}"),
        text("and"),
        url("https://x"),
        url(f"file://{picture}", detail="low"),
    ]


def test_rows_have_their_lengths_or_the_default(read, picture):
    row = {"prompt": "one two", "image_files": [picture]}
    prompts = read(row | {"output_tokens": 7, "id": "a", "further": 1}, row, custom_output_len=9)
    assert [(p.input_tokens, p.output_tokens) for p in prompts] == [(2, 7), (2, 9)]
    assert prompts[0].source == "a"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"prompt": "What?"}, "has neither content nor a prompt with a list of image_files"),
        ({"prompt": "What?", "image_files": []}, "has neither content nor a prompt"),
        ({"prompt": 3, "image_files": ["x"]}, "has neither content nor a prompt"),
        ({"prompt": "What?", "image_files": [3]}, "not a path or a URL"),
        ({"content": []}, "not a list, or empty"),
        ({"content": "words"}, "not a list, or empty"),
        ({"content": ["words"]}, "type None"),
        ({"content": [{"type": "video_url", "video_url": "x"}]}, "type 'video_url'"),
        ({"content": [{"type": "text"}]}, "without a text"),
        ({"content": [{"type": "image_url", "image_url": {}}]}, "not a path or a URL"),
    ],
)
def test_a_row_that_cannot_be_sent_is_refused_by_its_number(read, row, problem):
    with pytest.raises(
        BadInput, match=rf"^--dataset-path: .*rows\.jsonl: row 1 .*{problem}"
    ) as refused:
        read(row)
    assert refused.value.remedy == "give JSON lines with prompt and image_files, or with content"


def test_what_cannot_be_sent_in_the_body_is_refused(tmp_path, picture):
    (tmp_path / "a.txt").write_text("words")
    for given, problem in {
        "https://x/y.png": "on the network: download it",
        str(tmp_path / "a.txt"): "is no image",
        str(tmp_path / "b.png"): "cannot be read",
    }.items():
        with pytest.raises(ValueError, match=problem):
            referred(given, embeds=True)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"RIFF\0\0\0\0WEBP", "webp"),
        (b"GIF89a", "gif"),
        (b"BM", "bmp"),
    ],
)
def test_the_first_bytes_tell_the_format(tmp_path, head, kind):
    (tmp_path / "a").write_bytes(head + b"rest")
    found = ImageFile.of(str(tmp_path / "a"))
    assert found.url().startswith(f"data:image/{kind};base64,")
    assert abs(len(found.url()) - found.estimated_bytes()) < 40


def test_the_hash_of_a_prompt_covers_the_bytes_of_a_file_and_not_its_path(read, picture, tmp_path):
    def sha256(path):
        digest = PromptDigest()
        (prompt,) = read(
            {"prompt": "What?", "image_files": [str(path)]}, custom_ensure_client_side_data=True
        )
        digest.add(prompt)
        return digest.sha256

    (tmp_path / "same.png").write_bytes(DATA)
    (tmp_path / "other.png").write_bytes(DATA + b"!")
    assert sha256(picture) == sha256(tmp_path / "same.png") != sha256(tmp_path / "other.png")


def test_rows_are_shuffled_as_those_of_custom(read, picture):
    rows = [{"prompt": f"{number}", "image_files": [picture]} for number in range(9)]
    shuffled = [prompt.text for prompt in read(*rows, disable_shuffle=False)]
    assert sorted(shuffled) == [row["prompt"] for row in rows] != shuffled


def test_audio_is_refused():
    with pytest.raises(BadInput, match="audio is not supported"):
        datasets.create(RunSettings(dataset_name="custom_audio"))
