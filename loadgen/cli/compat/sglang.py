"""The flags of SGLang's `bench_serving`, which often differ in meaning from vLLM's."""

import json
from collections.abc import Sequence
from os.path import abspath
from typing import Any

from loadgen.cli.compat import sglang_prefixes
from loadgen.cli.compat.shared_data import SGLANG_DEFAULTS, SPEED_BENCH, with_length_ranges
from loadgen.cli.compat.tool_flags import (
    NONE,
    ONE,
    SOME,
    Settings,
    ToolFlag,
    body_field,
    names_a_server,
    refused,
    renamed,
    switch,
    with_fields,
)
from loadgen.cli.output import say
from loadgen.config import request_class
from loadgen.config.data import PREFIX_REPETITION, RANDOM_IMAGES, TRACE
from loadgen.config.load import COLD
from loadgen.config.option import ABOVE_0, ABOVE_1, FINITE, Range
from loadgen.config.option import flag as spelled
from loadgen.config.output import SGLANG_ARGUMENTS, SGLANG_PERCENTILES
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

COMPLETIONS = {"sglang-oai": 30000, "vllm": 8000, "lmdeploy": 23333}  # with their default ports
OPENAI_OF_SGLANG = ("sglang-oai", "sglang-oai-chat")
NATIVE = {"sglang": 30000, "sglang-native": 30000}
CHAT = {"sglang-oai-chat": 30000, "vllm-chat": 30000, "lmdeploy-chat": 30000}
LONGBENCH_V2 = "THUDM/LongBench-v2"
WORKLOADS = {  # of --mooncake-workload: files of Mooncake's repository
    "conversation": "traces/conversation_trace.jsonl",
    "mooncake": "arxiv-trace/mooncake_trace.jsonl",
    "synthetic": "traces/synthetic_trace.jsonl",
    "toolagent": "traces/toolagent_trace.jsonl",
}
MOONCAKE = {"dataset_name": TRACE, "trace_format": "mooncake", "no_oversample": True}
DATASETS: dict[str, dict[str, Any]] = {
    "random": {"dataset_name": "random"},
    "random-ids": {"dataset_name": "random"},
    "sharegpt": {"dataset_name": "sharegpt"},
    "custom": {"dataset_name": "custom"},
    "image": {"dataset_name": RANDOM_IMAGES},
    **dict.fromkeys(("mooncake", *(f"mooncake-{name}" for name in WORKLOADS)), MOONCAKE),
    "generated-shared-prefix": {"dataset_name": PREFIX_REPETITION},
    "speed-bench": {"dataset_name": "speed_bench"},
    "longbench_v2": {"dataset_name": "hf", "hf_name": LONGBENCH_V2},
}
# Settings whose flags mean something else in SGLang, and are replaced by those below.
REPLACED = ("backend", "dataset_name", "random_range_ratio", "image_format", "warmup")
DEFAULTS: dict[str, Any] = {
    "backend": "sglang-native",
    "dataset_name": "sharegpt",
    "seed": 42,
    "temperature": 0.0,
    "ignore_eos": True,
    "num_warmups": 1,
    "warmup_prompt": "first",
    "latency_from": "sent",
    "random_input_len": 1024,
    "random_output_len": 1024,
    "random_range_ratio": 0.0,
}
ADDRESS: dict[str, Any] = {"host": "127.0.0.1", "port": 30000}
# the setting with the arguments that SGLang's result repeats, as they were given
RESULT = "sglang_result"
# Markers: fields that only SGLang's own API has, and some of its flags.
NATIVE_BODY, APPLIED, CACHED = "_native_body", "_apply_chat_template", "_cache_report"
# Data sets of which SGLang has its own rule, and --apply-chat-template an effect.
TEMPLATED = ("sharegpt", "custom")
NATIVE_DEFAULTS: dict[str, Any] = {
    "lora_path": None,
    "return_logprob": False,
    "return_routed_experts": False,
    "logprob_start_len": -1,
}
# Arguments by SGLang's own names, and their defaults.
RENAMED = {"backend": "sglang", "dataset_name": "sharegpt"}
EXACT: dict[str, Any] = {"random_range_ratio": 1.0}  # exact lengths, not ranges
# Height and width.
SIDES = {"4k": "2160x3840", "1080p": "1080x1920", "720p": "720x1280", "360p": "360x640"}
ANY_COUNT = "_random_image_count"
IMAGE_DEFAULTS: dict[str, Any] = {
    "images": 1,
    "image_sizes": SIDES["1080p"],
    "image_format": "jpeg:85",
    "image_position": "first",
}
# Beside skewed.
DISTRIBUTIONS = {"uniform": request_class.RANDOM, "distinct": request_class.IN_TURN}
ALPHA, ZIPF_ALPHA = "_lora_zipf_alpha", 1.5  # a marker, and its default
PROFILE_BODY = "profile_body"
STAGE_STEPS = 5  # the default


def defaults(settings: Settings) -> dict[str, Any]:
    """Return the defaults of `bench_serving`; a workload keeps its lengths."""
    result = (
        DEFAULTS
        | ({} if names_a_server(settings) else ADDRESS)
        | (EXACT if settings.get("workload") else {})
    )
    result |= sglang_prefixes.defaults(settings)
    if settings.get("dataset_name") == RANDOM_IMAGES:
        result |= IMAGE_DEFAULTS
    return result | SGLANG_DEFAULTS.get(str(settings.get("dataset_name")), {})


def as_sent(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with SGLang's ranges of lengths, its rule for ShareGPT, the fields of its
    own API, and its result.

    The file from which SGLang takes the words of random prompts is left out.

    Raises:
        BadInput: The ratio of the ranges is not between 0 and 1, or flags exclude each other.
    """
    result = with_length_ranges(settings) | _result(settings)
    native, backend = result.get(NATIVE_BODY, {}), result[RESULT]["backend"]
    if result.get(ANY_COUNT):
        result["images"] = f"1:{result.get('images', 1)}"
    result = sglang_prefixes.applied(result)
    if not result["ignore_eos"]:
        result = with_fields(result, {"ignore_eos": False})
    if result.get(CACHED) and backend in OPENAI_OF_SGLANG:
        result = with_fields(result, {"return_cached_tokens_details": True})
    if result["backend"] == "sglang-native":
        result = with_fields(result, NATIVE_DEFAULTS | native)
    else:
        if result.get("lora_modules"):
            result = with_fields(result, {"lora_path": None})  # each request fills it in
        if result["backend"] == "openai":
            result = with_fields(result, {"best_of": 1} | _logprobs(native))
    _tell_ignored(result, native)
    if result["dataset_name"] in TEMPLATED:
        result.setdefault("dataset_rule", "sglang")
    if result.get("hf_name") == LONGBENCH_V2 and "sharegpt_output_len" in result:
        result.setdefault("hf_output_len", result["sharegpt_output_len"])
    if result["dataset_name"] == TRACE and not result.get("dataset_path"):
        _workload("conversation", result)
    if result["dataset_name"] == "random":
        result.pop("dataset_path", None)
    if result.get(APPLIED):
        if result["dataset_name"] in TEMPLATED:
            result.setdefault("render_chat_template", "without-bos")
        else:
            say(
                f"--apply-chat-template has no effect on the data set {result['dataset_name']}, "
                "as in SGLang"
            )
    return result


def _result(settings: Settings) -> dict[str, Any]:
    """Return the settings of a result as SGLang writes it: the arguments that it repeats, and
    its percentiles.
    """
    arguments = {"tag": None} | {
        name: settings.get(name) for name in SGLANG_ARGUMENTS if name not in RENAMED
    }
    percentiles = [
        str(settings.get("metric_percentiles", "")),
        *(f"{p:g}" for p in SGLANG_PERCENTILES),
    ]
    listed = dict.fromkeys(",".join(filter(None, percentiles)).split(","))
    return {
        RESULT: RENAMED | arguments | settings.get(RESULT, {}),
        "metric_percentiles": ",".join(listed),
    }


def _repeated(name: str, value: Any, settings: Settings) -> dict[str, Any]:
    return {RESULT: settings.get(RESULT, {}) | {name: value}}


def _logprobs(native: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of completions for flags of SGLang's own API."""
    count = native.get("top_logprobs_num", 0)
    return {"logprobs": count} if native.get("return_logprob") and count > 0 else {}


def _tell_ignored(result: dict[str, Any], native: dict[str, Any]) -> None:
    """Write which flags of SGLang's own API have no effect on the API that was chosen."""
    if result["backend"] == "sglang-native":
        return
    used = (
        {"return_logprob", "top_logprobs_num"}
        if result["backend"] == "openai" and _logprobs(native)
        else set()
    )
    for field in sorted(native.keys() - used):
        say(f"{spelled(field)} has no effect on {result['backend']}, as in SGLang")


def _backend(value: str, settings: Settings) -> dict[str, Any]:
    for kind, ports in (("openai", COMPLETIONS), ("openai-chat", CHAT), ("sglang-native", NATIVE)):
        if value in ports:
            by_host = not names_a_server(settings) and "port" not in settings
            port = {"port": ports[value]} if by_host else {}
            return {"backend": kind} | port | _repeated("backend", value, settings)
    raise BadInput(
        "--backend",
        f"{value!r} is not supported",
        f"choose from {', '.join([*NATIVE, *COMPLETIONS, *CHAT])}",
    )


def _dataset(value: str, settings: Settings) -> dict[str, Any]:
    if value not in DATASETS:
        raise BadInput(
            "--dataset-name", f"{value!r} is not supported", f"choose from {', '.join(DATASETS)}"
        )
    return DATASETS[value] | _repeated("dataset_name", value, settings)


def _body(value: str, settings: Settings) -> dict[str, Any]:
    try:
        body = json.loads(value)
    except ValueError as error:
        raise BadInput(
            "--extra-request-body", f"{value!r} is not valid JSON", "write a JSON object"
        ) from error
    if not isinstance(body, dict):
        raise BadInput(
            "--extra-request-body",
            f"{value} is not a JSON object",
            "write for example '{\"min_p\": 0.1}'",
        )
    return {"extra_body": body}


def _slowdown(value: float, settings: Settings) -> dict[str, Any]:
    Range("a number from 0.000001 to 1,000", 1e-6, 1e3).check("--mooncake-slowdown-factor", value)
    return {"time_scale": 1 / value}


def _workload(value: str, settings: Settings) -> dict[str, Any]:
    if settings.get("dataset_path"):
        return {}
    if value not in WORKLOADS:
        raise BadInput(
            "--mooncake-workload", f"{value!r} is unknown", f"choose from {', '.join(WORKLOADS)}"
        )
    file = f"FAST25-release/{WORKLOADS[value]} of https://github.com/kvcache-ai/Mooncake"
    raise BadInput(
        "--mooncake-workload", "loadgen downloads no trace", f"give --dataset-path a copy of {file}"
    )


def _profile_by_stage(value: Any, settings: Settings) -> dict[str, Any]:
    body = {"num_steps": STAGE_STEPS} | (settings.get(PROFILE_BODY) or {})
    return {PROFILE_BODY: body | {"profile_by_stage": True}}


def _profile_url(value: Sequence[str], settings: Settings) -> dict[str, Any]:
    return {"profile_url": (*settings.get("profile_url", ()), *value)}


def _flush_timeout(value: float, settings: Settings) -> dict[str, Any]:
    Range("seconds above 0", ABOVE_0, FINITE).check("--flush-cache-timeout", value)
    return {}


def _names(value: Sequence[str], settings: Settings) -> dict[str, Any]:
    if not value:
        raise BadInput(
            "--lora-name", "names no adapter", "give the names that the server lists in /v1/models"
        )
    return {"lora_modules": tuple(value)}


def _distribution(value: str, settings: Settings) -> dict[str, Any]:
    if value == request_class.SKEWED:
        return {"lora_assignment": _skewed(settings.get(ALPHA, ZIPF_ALPHA))}
    if value not in DISTRIBUTIONS:
        remedy = f"choose from {', '.join(DISTRIBUTIONS)}, {request_class.SKEWED}"
        raise BadInput("--lora-request-distribution", f"unknown distribution {value!r}", remedy)
    return {"lora_assignment": DISTRIBUTIONS[value]}


def _zipf_alpha(value: float, settings: Settings) -> dict[str, Any]:
    Range("a number above 1", ABOVE_1).check("--lora-zipf-alpha", value)
    is_skewed = str(settings.get("lora_assignment")).startswith(request_class.SKEWED)
    return {ALPHA: value} | ({"lora_assignment": _skewed(value)} if is_skewed else {})


def _skewed(alpha: float) -> str:
    return f"{request_class.SKEWED}:{alpha:g}"


def _sizes(resolution: str) -> str:
    """Return the sizes of images; names of resolutions may be the bounds of a range, too."""
    text = resolution.strip().lower().removeprefix("random:")
    return "-".join(SIDES.get(side, side) for side in text.split("-", 1))


def _format(value: str) -> str:
    return IMAGE_DEFAULTS["image_format"] if value.lower() in ("jpeg", "jpg") else value.lower()


FLAGS = (
    ToolFlag("--backend", _backend),
    ToolFlag("--dataset-name", _dataset),
    renamed("--random-range-ratio", "random_range_ratio", number),
    ToolFlag("--extra-request-body", _body),
    ToolFlag(
        "--output-file", lambda value, settings: {"result_filename": value, "append_result": True}
    ),
    switch("--output-details", {"save_detailed": True}),
    renamed("--warmup-requests", "num_warmups", integer),
    switch("--disable-ignore-eos", {"ignore_eos": False}),
    body_field("--tag", RESULT, "tag"),
    ToolFlag("--mooncake-slowdown-factor", _slowdown, type_=number),
    refused("--mooncake-num-rounds", "a trace has its own turns", "leave it out", no_op_value=1),
    ToolFlag("--mooncake-workload", _workload),
    switch("--use-trace-timestamps", {}, SOME),
    *sglang_prefixes.FLAGS,
    *(switch(name, {}) for name in ("--trust-remote-code", "--pd-separated", "--rust-client")),
    switch("--rust-worker-threads", {}, ONE),
    switch("--cache-report", {CACHED: True}),
    refused("--dataset-offset", "a file is read from its start", "shorten the file", no_op_value=0),
    refused(
        "--sharegpt-context-len",
        "conversations are as long as they are",
        "leave out the long ones in the file",
    ),
    refused(
        "--prompt-suffix",
        "prompts are sent unchanged",
        "add it to the prompts in the file",
        no_op_value="",
    ),
    switch("--apply-chat-template", {APPLIED: True}),
    switch("--tokenize-prompt", {"prompt_token_ids": True}),
    refused(
        "--print-requests",
        "requests are not printed",
        "use --records FILE, which writes a line for each",
        NONE,
    ),
    refused(
        "--plot-throughput",
        "this plot is not available",
        "use --html FILE.html, which draws the rates",
        NONE,
    ),
    refused("--fake-prefill", "every prompt is prefilled", "leave it out", NONE),
    body_field("--return-logprob", NATIVE_BODY, "return_logprob", NONE),
    body_field("--return-routed-experts", NATIVE_BODY, "return_routed_experts", NONE),
    body_field("--top-logprobs-num", NATIVE_BODY, "top_logprobs_num", type_=integer),
    body_field("--logprob-start-len", NATIVE_BODY, "logprob_start_len", type_=integer),
    body_field("--token-ids-logprob", NATIVE_BODY, "token_ids_logprob", SOME, integer),
    refused(
        "--agentic-max-turns",
        "the data set agentic-trace is not supported",
        "without --compat, --dataset-name sharegpt --turns N reads conversations, and multi_turn "
        "makes them",
    ),
    *SPEED_BENCH,
    switch("--flush-cache", {"cache": COLD}),
    ToolFlag("--flush-cache-timeout", _flush_timeout, type_=number),
    ToolFlag("--profile-by-stage", _profile_by_stage, values=NONE),
    body_field("--profile-activities", PROFILE_BODY, "activities", SOME),
    body_field("--profile-start-step", PROFILE_BODY, "start_step", type_=integer),
    body_field("--profile-steps", PROFILE_BODY, "num_steps", type_=integer),
    body_field("--profile-num-steps", PROFILE_BODY, "num_steps", type_=integer),
    body_field("--profile-stages", PROFILE_BODY, "profile_stages", SOME),
    body_field("--profile-prefix", PROFILE_BODY, "profile_prefix"),
    body_field("--profile-output-dir", PROFILE_BODY, "output_dir", type_=abspath),
    *(
        ToolFlag(f"--profile-{workers}-url", _profile_url, values=SOME)
        for workers in ("prefill", "decode")
    ),
    ToolFlag("--lora-name", _names, values=SOME),
    ToolFlag("--lora-request-distribution", _distribution),
    ToolFlag("--lora-zipf-alpha", _zipf_alpha, type_=number),
    renamed("--image-count", "images", integer),
    switch("--random-image-count", {ANY_COUNT: True}),
    renamed("--image-resolution", "image_sizes", _sizes),
    renamed("--image-format", "image_format", _format),
)

# Its flags that are settings of loadgen, too.
SHARED = frozenset(
    (
        "--base-url",
        "--dataset-path",
        "--disable-stream",
        "--disable-tqdm",
        "--goodput",
        "--header",
        "--host",
        "--image-content",
        "--max-concurrency",
        "--model",
        "--num-prompts",
        "--port",
        "--profile",
        "--random-input-len",
        "--random-output-len",
        "--ready-check-timeout-sec",
        "--request-rate",
        "--seed",
        "--served-model-name",
        "--sharegpt-output-len",
        "--temperature",
        "--tokenizer",
        "--top-p",
    )
)
