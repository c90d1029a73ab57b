"""random-mm: the prompts of random as chats, with images in the numbers and sizes that were
asked.
"""

import shutil
from collections import Counter

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets.prompt_rows import line
from loadgen.workload.datasets.random_images import ImageShapes
from loadgen.workload.image import images
from loadgen.workload.target import Target
from tests.helpers.source import ROOT

SIMULATOR = str(ROOT / "engines" / "sim" / "tokenizer.json")
NAMED = {
    "tokenizer": SIMULATOR,
    "backend": "openai-chat",
    "dataset_name": "random-mm",
    "image_format": "png",
}


def settings(**options):
    return RunSettings(**NAMED | options).implied()


def prompts(count, **options):
    return list(datasets.create(settings(**options)).prompts(count))


def shapes(prompt):
    return [(found.height, found.width) for found in images(prompt.messages)]


def test_a_prompt_is_a_chat_of_its_text_and_then_its_images():
    (prompt,) = prompts(1, images=2, image_sizes="4x6", random_input_len=5)
    (message,) = prompt.messages
    assert message["role"] == "user"
    text, *pictures = message["content"]
    assert text == {"type": "text", "text": prompt.text}
    assert [picture["type"] for picture in pictures] == ["image_url", "image_url"]
    assert shapes(prompt) == [(4, 6), (4, 6)]
    assert (prompt.input_tokens, prompt.server_tokens, prompt.source) == (5, None, "random-mm/0/0")


def test_images_may_come_first():
    (prompt,) = prompts(1, image_position="first", image_sizes="4x6")
    assert [part["type"] for part in prompt.messages[0]["content"]] == ["image_url", "text"]


def test_texts_and_answers_are_those_of_random():
    plain = list(datasets.create(settings(dataset_name="random", image_format="jpeg")).prompts(20))
    pictured = prompts(20)
    assert [(p.text, p.input_tokens, p.output_tokens) for p in pictured] == [
        (p.text, p.input_tokens, p.output_tokens) for p in plain
    ]


def test_prompts_and_images_are_the_same_in_every_call_and_distinct():
    chosen = {"images": "1:3", "image_sizes": "8x8-16x16", "random_input_len": 4}
    first, again = prompts(50, **chosen), prompts(50, **chosen)
    assert first == again
    urls = [found.url() for prompt in first for found in images(prompt.messages)]
    assert len(set(urls)) == len(urls)
    assert prompts(50, **chosen, seed_prompts=1) != first


def test_an_image_belongs_to_its_row_not_to_the_order():
    by_row = [
        {
            prompt.source: shapes(prompt)
            for prompt in prompts(30, image_sizes="1x1-999x999", seed_order=seed)
        }
        for seed in (1, 2)
    ]
    assert by_row[0] == by_row[1]


def test_prompts_beyond_a_run_go_on_with_new_rows():
    beyond = datasets.create(settings()).beyond(5)
    assert [next(beyond).source for _ in range(3)] == [f"random-mm/0/{row}" for row in (5, 6, 7)]


@pytest.mark.slow
def test_numbers_of_images_are_uniform_in_their_range():
    counts = Counter(
        len(shapes(prompt)) for prompt in prompts(3000, images="0:2", random_input_len=1)
    )
    assert set(counts) == {0, 1, 2}
    assert all(900 <= count <= 1100 for count in counts.values())


@pytest.mark.slow
def test_sizes_have_their_shares():
    drawn = Counter(
        shapes(p)[0]
        for p in prompts(3000, image_sizes="2x3:0.5, 4x5:1.5,6x7:0", random_input_len=1)
    )
    assert set(drawn) == {(2, 3), (4, 5)}
    assert 650 <= drawn[2, 3] <= 850


def test_a_range_has_all_its_heights_and_widths():
    drawn = [
        shapes(prompt)[0] for prompt in prompts(500, image_sizes="2x10-4x12", random_input_len=1)
    ]
    assert {height for height, _ in drawn} == {2, 3, 4}
    assert {width for _, width in drawn} == {10, 11, 12}


@pytest.mark.parametrize(
    ("field", "given"),
    [
        *(("images", text) for text in ("x", "-1", "3:2", "1:", "1001", "1:2:3")),
        *(
            ("image_sizes", text)
            for text in (
                "",
                "256",
                "0x4",
                "4x65536",
                "9x9-4x4",
                "4x4:-1",
                "4x4:inf",
                "4x4:0",
                "4x4:",
            )
        ),
        ("image_format", "gif"),
    ],
)
def test_what_cannot_be_drawn_is_refused(field, given):
    with pytest.raises(BadInput, match=f"^--{field.replace('_', '-')}: "):
        datasets.create(settings(**{field: given}))


def test_images_need_a_chat():
    with pytest.raises(BadInput, match="use --backend openai-chat"):
        datasets.create(settings(backend="openai"))


def test_sglangs_own_api_gets_the_text_with_placeholders_and_the_images_apart(tmp_path):
    native = {"backend": "sglang-native", "image_sizes": "4x6", "images": 2, "random_input_len": 3}
    (prompt,) = prompts(1, **native)
    body = orjson.loads(Target.from_settings(settings(**native), "m").body(prompt))
    assert body["text"].startswith("<image>")  # the simulator's tokenizer has no template
    assert [url.partition(";")[0] for url in body["image_data"]] == ["data:image/png"] * 2
    shutil.copy(SIMULATOR, tmp_path / "tokenizer.json")
    (tmp_path / "chat_template.jinja").write_text(
        "{% for part in messages[0].content %}{{ '<pad>' if part.type == 'image' else part.text "
        "}}{% endfor %}<end>"
    )
    (templated,) = prompts(1, **native, tokenizer=str(tmp_path))
    assert templated.text == f"{body['text'].removeprefix('<image>')}<pad><pad><end>"
    assert templated.input_tokens == 3


def test_without_images_sglangs_own_api_gets_the_text_alone():
    (prompt,) = prompts(1, backend="sglang-native", images=0)
    assert "image_data" not in orjson.loads(
        Target.from_settings(settings(backend="sglang-native"), "m").body(prompt)
    )


def test_flags_of_images_are_refused_by_other_data_sets():
    with pytest.raises(BadInput, match=r"^--images: has no effect on the data set random"):
        datasets.create(settings(dataset_name="random", image_format="jpeg", images=3))


def test_answers_have_their_full_length():
    assert settings().ignore_eos


def test_the_provenance_says_what_was_drawn():
    about = datasets.create(settings(images="1:3", image_sizes="2x3,4x5-6x7:3")).provenance()
    assert about["name"] == "random-mm"
    assert (about["images_per_prompt"], about["image_sizes"]) == ([1, 3], "2x3:0.25,4x5-6x7:0.75")
    assert (about["image_format"], about["image_content"], about["image_position"]) == (
        "png",
        "random",
        "last",
    )


def test_a_body_is_a_chat_with_data_urls():
    (prompt,) = prompts(1, image_sizes="4x6", random_output_len=9)
    body = orjson.loads(Target.from_settings(settings(), "m").body(prompt))
    assert body["messages"][0]["content"][1]["image_url"]["url"].startswith(
        "data:image/png;base64,iVBOR"
    )
    assert body["max_completion_tokens"] == 9


def test_an_exported_row_has_the_images():
    (prompt,) = prompts(1, image_sizes="4x6")
    assert b"data:image/png;base64," in line(prompt)


def test_shapes_have_one_form_for_a_number_and_a_text():
    assert ImageShapes.parse(2, "3x4") == ImageShapes.parse("2:2", "3x4:7")
