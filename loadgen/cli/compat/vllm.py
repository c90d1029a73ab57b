"""vLLM: the flags of `vllm bench serve` that `loadgen run` does not have, and the defaults of each
release.

InferenceX (InferenceMAX) and others have copies of an older `benchmark_serving.py` of vLLM, with
its flags.
"""

import ast
import json
import math
from pathlib import Path
from typing import Any

from loadgen.cli.compat.shared_data import HUB_FLAGS, TIMED_TRACE_FLAGS, with_length_ranges
from loadgen.cli.compat.tool_flags import (
    NONE,
    ONE,
    Settings,
    ToolFlag,
    marked,
    names_a_server,
    refused,
    renamed,
    switch,
    with_fields,
)
from loadgen.cli.output import say
from loadgen.config.data import RANDOM_IMAGES
from loadgen.config.option import SHARE, Range
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number
from loadgen.workload import vllm_load
from loadgen.workload.endpoints.generation import COMPLETIONS

# VLLM's other names for the completions API.
COMPLETIONS_NAMES = ("lmdeploy", "scalellm", "sglang", "llama.cpp")
TOKENIZERS = ("auto", "hf", "slow")  # modes that use tokenizer.json
OUTPUT_LENS = ("random", "sharegpt", "custom", "hf", "prefix_repetition", "sonnet")
NO_MEDIA = "audio and video are not supported"
TEXT = "send text, or use vLLM's own tool for this data set"

ADDRESS: dict[str, Any] = {"host": "127.0.0.1"}
SKIPPED, TIMELINE = "_skip_chat_template", "_plot_timeline"  # markers
TIMELINE_ENDING = ".timeline.html"  # of the file that vLLM writes
# Flags of the data set random-mm.
IMAGES = "_random_mm"  # a marker: values of the flags by name
BASE, RATIO = "--random-mm-base-items-per-request", "--random-mm-num-mm-items-range-ratio"
LIMIT, BUCKETS = "--random-mm-limit-mm-per-prompt", "--random-mm-bucket-config"
MAX_IMAGES = 255  # vLLM's default of the limit
BUCKET_FORM = 'write "{(HEIGHT, WIDTH, 1): SHARE, ...}"'
VIDEO = "loadgen sends images, and no video"
# Settings whose flags mean something else in InferenceX.
INFERENCEX_REPLACED = ("random_range_ratio",)
INFERENCEX_DEFAULTS: dict[str, Any] = {
    "dataset_name": "sharegpt",
    "random_input_len": 1024,
    "random_output_len": 128,
    "random_range_ratio": 1.0,
    "temperature": 0.0,
    "ignore_eos": False,
    "latency_from": "sent",
    "warmup_prompt": "first",
}


def defaults(release: str, settings: Settings) -> dict[str, Any]:
    """Return the defaults of a release, a name in `vllm_load.RELEASES`."""
    return vllm_load.RELEASES[release](settings) | server(settings)


def server(settings: Settings) -> dict[str, Any]:
    """Return address and API of a server, where they are not named; a path means an API, too."""
    result = {} if names_a_server(settings) else ADDRESS
    return result if settings.get("endpoint") else {"backend": "openai"} | result


def without_ignored(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without a file that vLLM does not read.

    Raises:
        BadInput: A flag of images is invalid.
    """
    result = with_images(settings)
    if result.get(TIMELINE):  # the page of the run stands for it
        name = Path(result.get("result_filename") or "vllm.json")
        result.setdefault(
            "html", str(Path(result.get("result_dir") or "") / name.with_suffix(TIMELINE_ENDING))
        )
    if (
        result.get("dataset_name", "random") == "random"
        and result.pop("dataset_path", None)
        and not result.get("workload")
    ):
        say("--dataset-path has no effect on random prompts, as in vLLM")
    return result


def as_sent(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with which bodies and prompts are those of vLLM's own tool.

    Raises:
        BadInput: The backend is unknown, or a flag of images is invalid.
    """
    return vllm_load.as_sent(without_ignored(settings), templated=not settings.get(SKIPPED))


def _backend(value: str) -> str:
    return "openai" if value in COMPLETIONS_NAMES else value


def _output_len(value: int, settings: Settings) -> dict[str, Any]:
    return {f"{name}_output_len": value for name in OUTPUT_LENS}


def _logprobs(value: int, settings: Settings) -> dict[str, Any]:
    if vllm_load.api_of(settings) is not COMPLETIONS:
        return {}  # vLLM requests them only from the completions API
    return {"extra_body": {"logprobs": value} | (settings.get("extra_body") or {})}


def _tokenizer_mode(value: str, settings: Settings) -> dict[str, Any]:
    if value in TOKENIZERS:
        return {}
    from loadgen.workload.tokenizer.tokenizer import tokenizer_file

    path = tokenizer_file(
        RunSettings(tokenizer=settings.get("tokenizer"), model=settings.get("model"))
    )
    if path is None:
        remedy = "give --tokenizer a tokenizer.json of the model, or its folder"
        raise BadInput("--tokenizer-mode", f"{value!r} does not use a tokenizer.json", remedy)
    say(f"--tokenizer-mode {value} has no effect: {path} is used")
    return {}


def inferencex_defaults(settings: Settings) -> dict[str, Any]:
    """Return the defaults of InferenceX."""
    return (
        INFERENCEX_DEFAULTS
        | server(settings)
        | ({"dataset_name": "random"} if settings.get("workload") else {})
    )


def as_inferencex_sends(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the ranges of lengths, and the fields that completions always have.

    Raises:
        BadInput: The ratio of the ranges is not between 0 and 1.
    """
    result = with_length_ranges(without_ignored(settings))
    if vllm_load.api_of(result) is not COMPLETIONS:
        return {"content_parts": True} | result
    return with_fields(result, {"best_of": 1, "logprobs": None})


def with_images(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the number and the sizes of images that the flags mean.

    Raises:
        BadInput: A value is invalid, asks for videos, or has no effect.
    """
    result = dict(settings)
    values: Settings = result.get(IMAGES, {})
    if not values:
        return result
    if result.get("dataset_name") != RANDOM_IMAGES:
        problem = f"has no effect on the data set {result.get('dataset_name', 'random')}"
        raise BadInput(
            next(iter(values)), problem, f"leave it out, or use --dataset-name {RANDOM_IMAGES}"
        )
    if values.keys() & {BASE, RATIO, LIMIT}:
        base = values.get(BASE, 1)
        ratio = values.get(RATIO, 0.0)
        limit = _limit(values.get(LIMIT))
        Range("0 or more", 0).check(BASE, base)
        SHARE.check(RATIO, ratio)
        fewest = math.floor(base * (1 - ratio))
        most = min(limit, math.ceil(base * (1 + ratio)))
        if fewest > most:
            problem = f"{limit} images are fewer than the {fewest} that each request has"
            raise BadInput(LIMIT, problem, f"lower {BASE}")
        result["images"] = f"{fewest}:{most}"
    if BUCKETS in values:
        result["image_sizes"] = _sizes(values[BUCKETS])
    return result


def _limit(text: str | None) -> int:
    if text is None:
        return MAX_IMAGES
    try:
        limits = json.loads(text)
    except ValueError as error:
        raise BadInput(
            LIMIT, f"{text!r} is not valid JSON", "write for example '{\"image\": 3}'"
        ) from error
    most = limits.get("image") if isinstance(limits, dict) else None
    if type(most) is not int or most < 0:
        raise BadInput(
            LIMIT, f"{text} has no number of images", "write for example '{\"image\": 3}'"
        )
    return most


def _sizes(text: str) -> str:
    """Return the sizes of buckets with their shares; those with a share of 0 are left out."""
    try:
        buckets = ast.literal_eval(text)
        shares = {_key(key): float(share) for key, share in buckets.items()}
    except (
        ValueError,
        SyntaxError,
        TypeError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as error:
        raise BadInput(BUCKETS, f"invalid buckets {text!r}", BUCKET_FORM) from error
    sizes = []
    for (height, width, frames), share in shares.items():
        if share < 0:
            raise BadInput(BUCKETS, f"the share {share:g} is out of range", "give 0 or more")
        if share and frames != 1:
            raise BadInput(
                BUCKETS,
                f"{(height, width, frames)} is a video: {VIDEO}",
                "give buckets of one frame",
            )
        if share:
            sizes.append(f"{height}x{width}:{share!r}")
    if not sizes:
        raise BadInput(BUCKETS, "no bucket has a share above 0", BUCKET_FORM)
    return ",".join(sizes)


def _key(key: object) -> tuple[int, int, int]:
    """Return height, width and frames of a bucket, which may be written as a text."""
    result = ast.literal_eval(key) if isinstance(key, str) else key
    if not (
        isinstance(result, tuple)
        and len(result) == 3
        and all(type(side) is int and side > 0 for side in result)
    ):
        raise ValueError(key)
    return result


NO_EFFECT = (
    "--trust-remote-code",
    "--skip-tokenizer-init",
    "--use-beam-search",
    "--no-stream",
    "--enable-multimodal-chat",
)
FLAGS = (
    renamed("--endpoint-type", "backend", _backend),
    renamed("--input-len", "random_input_len", integer),
    ToolFlag(
        "--output-len",
        _output_len,
        type_=integer,
        text="maximum tokens of each answer, of any data set",
    ),
    ToolFlag("--logprobs", _logprobs, type_=integer),
    ToolFlag("--tokenizer-mode", _tokenizer_mode),
    *(
        switch(name, {SKIPPED: True})
        for name in ("--skip-chat-template", "--custom-skip-chat-template")
    ),
    refused(
        "--chat-template-kwargs",
        "the template's variables are fields of the body",
        "use --extra-body '{\"chat_template_kwargs\": {...}}'",
    ),
    switch("--plot-timeline", {TIMELINE: True}, becomes=("html",)),
    switch("--timeline-itl-thresholds", {}, ONE),
    refused(
        "--plot-dataset-stats",
        "this plot is not available",
        "use `loadgen dataset`, which prints the lengths",
        NONE,
    ),
    *(switch(name, {}) for name in NO_EFFECT),
    marked(IMAGES, BASE, integer),
    marked(IMAGES, RATIO, number),
    marked(IMAGES, LIMIT),
    marked(IMAGES, BUCKETS),
    *(refused(f"--asr-{bound}-audio-len-sec", NO_MEDIA, TEXT) for bound in ("min", "max")),
    refused(
        "--bfcl-categories",
        "the tools of its requests are not supported",
        "leave it out, and use text",
    ),
    refused(
        "--speed-bench-max-input-len",
        "prompts are sent whole",
        "choose a subset of shorter prompts",
    ),
    *HUB_FLAGS,
    *TIMED_TRACE_FLAGS,
)
# Shortened names in many published commands, which argparse completes; without --compat only
# these are known.
SHORTENED_FLAGS = (
    renamed("--num-prompt", "num_prompts", integer),
    renamed("--random-input", "random_input_len", integer),
    renamed("--random-output", "random_output_len", integer),
)
INFERENCEX_FLAGS = (
    *FLAGS,
    renamed("--random-range-ratio", "random_range_ratio", number),
    ToolFlag(
        "--dataset", lambda value, settings: {"dataset_name": "sharegpt", "dataset_path": value}
    ),
    refused("--best-of", "a request has one answer", "leave it out", no_op_value=1),
    switch("--use-chat-template", {"render_chat_template": "whole", "input_len_counts": "server"}),
)

# Its flags that are settings of loadgen, too.
SHARED = frozenset(
    (
        "--append-result",
        "--backend",
        "--base-url",
        "--burstiness",
        "--custom-ensure-client-side-data",
        "--custom-output-len",
        "--dataset-name",
        "--dataset-path",
        "--disable-shuffle",
        "--disable-tqdm",
        "--endpoint",
        "--extra-body",
        "--frequency-penalty",
        "--goodput",
        "--header",
        "--hf-name",
        "--hf-output-len",
        "--hf-split",
        "--hf-subset",
        "--host",
        "--ignore-eos",
        "--insecure",
        "--label",
        "--lora-assignment",
        "--lora-modules",
        "--max-concurrency",
        "--metadata",
        "--metric-percentiles",
        "--min-p",
        "--model",
        "--no-reranker",
        "--no-oversample",
        "--num-prompts",
        "--num-warmups",
        *("--percentile-metrics", "--port", "--prefix-repetition-num-prefixes"),
        "--prefix-repetition-output-len",
        "--prefix-repetition-prefix-len",
        "--prefix-repetition-suffix-len",
        *("--presence-penalty", "--probe-request-rate", "--profile", "--ramp-up-end-rps"),
        *("--ramp-up-start-rps", "--ramp-up-strategy", "--random-batch-size", "--random-input-len"),
        "--random-output-len",
        "--random-prefix-len",
        "--random-range-ratio",
        "--ready-check-timeout-sec",
        "--repetition-penalty",
        "--request-id-prefix",
        "--request-rate",
        "--result-dir",
        "--result-filename",
        "--save-detailed",
        "--save-result",
        "--seed",
        "--served-model-name",
        "--sharegpt-output-len",
        "--sonnet-input-len",
        "--sonnet-output-len",
        "--sonnet-prefix-len",
        "--temperature",
        "--tokenizer",
        *("--top-k", "--top-p"),
    )
)
