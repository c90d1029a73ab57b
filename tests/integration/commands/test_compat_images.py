"""Images and LoRA adapters of vLLM and SGLang: their flags as settings of loadgen."""

import pytest

from tests.helpers.compat_lines import read, refusal

MM = "--model m --backend openai-chat --dataset-name random-mm"
LIMIT = "--random-mm-limit-mm-per-prompt"
SG = "--compat sglang --model m --backend sglang-oai-chat --dataset-name image"


@pytest.mark.parametrize(
    ("flags", "images"),
    [
        ("", 1),
        ("--random-mm-base-items-per-request 2", "2:2"),
        ("--random-mm-base-items-per-request 3 --random-mm-num-mm-items-range-ratio 0.5", "1:5"),
        ("--random-mm-num-mm-items-range-ratio 1", "0:2"),
        (
            "--random-mm-base-items-per-request 3 --random-mm-num-mm-items-range-ratio 0.5 "
            f'{LIMIT} {{"image":4}}',
            "1:4",
        ),
        ("--enable-multimodal-chat", 1),
    ],
)
def test_vllm_draws_numbers_of_images_around_the_base(flags, images) -> None:
    assert read(f"{MM} {flags}").images == images


def test_vllm_buckets_are_sizes_with_shares() -> None:
    flags = "--random-mm-bucket-config"
    assert read(f"{MM} {flags} {{(224,448,1):1.0,(720,1280,16):0}}").image_sizes == "224x448:1.0"
    assert read(f'{MM} {flags} {{"(2,3,1)":0.25,(4,5,1):1}}').image_sizes == "2x3:0.25,4x5:1.0"


def test_vllm_defaults_are_loadgens() -> None:
    drawn = read(MM)
    assert (drawn.image_sizes, drawn.image_format, drawn.image_position) == (
        "256x256,720x1280",
        "jpeg",
        "last",
    )


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--random-mm-bucket-config {(720,1280,16):1}", "is a video"),
        ("--random-mm-bucket-config {(720,1280):1}", "invalid buckets"),
        ("--random-mm-bucket-config [1]", "invalid buckets"),
        ("--random-mm-bucket-config {(7,7,1):-1}", "out of range"),
        ("--random-mm-bucket-config {(7,7,1):0}", "no bucket has a share above 0"),
        ("--random-mm-num-mm-items-range-ratio 1.5", "out of range"),
        ("--random-mm-base-items-per-request -1", "out of range"),
        (f'--random-mm-base-items-per-request 3 {LIMIT} {{"image":2}}', "fewer than the 3"),
        (f'{LIMIT} {{"video":2}}', "no number of images"),
        (f"{LIMIT} x", "not valid JSON"),
    ],
)
def test_what_vllm_cannot_draw_is_refused_by_the_name_of_its_flag(flags, says) -> None:
    text = refusal(f"{MM} {flags}")
    assert text.startswith(flags.split()[0] if LIMIT not in flags else LIMIT)
    assert says in text


def test_flags_of_random_mm_are_refused_with_other_data_sets() -> None:
    text = refusal("--model m --random-mm-base-items-per-request 2")
    assert text.startswith(
        "--random-mm-base-items-per-request: has no effect on the data set random"
    )


def test_sglang_images_come_first_in_its_size_and_quality() -> None:
    drawn = read(SG)
    assert (drawn.dataset_name, drawn.images, drawn.image_sizes) == ("random-mm", 1, "1080x1920")
    assert (drawn.image_format, drawn.image_content, drawn.image_position) == (
        "jpeg:85",
        "random",
        "first",
    )
    assert (drawn.random_input_len, drawn.random_output_len) == ("1:1024", "1:1024")


@pytest.mark.parametrize(
    ("flags", "changed"),
    [
        ("--image-count 3", {"images": 3}),
        ("--image-count 3 --random-image-count", {"images": "1:3"}),
        ("--random-image-count --image-count 3", {"images": "1:3"}),
        ("--image-resolution 720p", {"image_sizes": "720x1280"}),
        ("--image-resolution 300x500", {"image_sizes": "300x500"}),
        ("--image-resolution random:256x256-4k", {"image_sizes": "256x256-2160x3840"}),
        (
            "--image-format png --image-content blank",
            {"image_format": "png", "image_content": "blank"},
        ),
        ("--image-format jpeg", {"image_format": "jpeg:85"}),
    ],
)
def test_sglang_flags_of_images(flags, changed) -> None:
    drawn = read(f"{SG} {flags}")
    assert {name: getattr(drawn, name) for name in changed} == changed


def test_vllm_adapters_are_loadgens() -> None:
    drawn = read("--model m --lora-modules a b --lora-assignment round-robin")
    assert (drawn.lora_modules, drawn.lora_assignment) == (("a", "b"), "round-robin")
    assert read("--model m --lora-modules a b").lora_assignment is None  # which is random


@pytest.mark.parametrize(
    ("flags", "assignment"),
    [
        ("", None),  # which is random
        ("--lora-request-distribution uniform", "random"),
        ("--lora-request-distribution distinct", "round-robin"),
        ("--lora-request-distribution skewed", "skewed:1.5"),
        ("--lora-request-distribution skewed --lora-zipf-alpha 3", "skewed:3"),
        ("--lora-zipf-alpha 3 --lora-request-distribution skewed", "skewed:3"),
        ("--lora-zipf-alpha 3", None),
    ],
)
def test_sglang_distributions_of_adapters(flags, assignment) -> None:
    drawn = read(f"--compat sglang --model m --dataset-name random --lora-name a b {flags}")
    assert (drawn.lora_modules, drawn.lora_assignment) == (("a", "b"), assignment)


def test_sglang_names_the_adapter_as_lora_path_too() -> None:
    drawn = read(
        "--compat sglang --model m --backend sglang-oai --dataset-name random --lora-name a"
    )
    assert drawn.extra_body == {"best_of": 1, "lora_path": None}


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        ("--lora-zipf-alpha 1", "--lora-zipf-alpha"),
        ("--lora-request-distribution zipf", "--lora-request-distribution"),
    ],
)
def test_wrong_distributions_of_adapters_are_refused(flags, field) -> None:
    assert refusal(
        f"--compat sglang --model m --dataset-name random --lora-name a b {flags}"
    ).startswith(field)
