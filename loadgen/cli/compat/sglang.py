"""SGLang: the flags of its `bench_serving`, which often differ in meaning from vLLM's flags of the same name."""

import json
import sys
from collections.abc import Callable, Sequence
from os.path import abspath
from typing import Any

from loadgen.cli.compat import hub_data
from loadgen.cli.compat.length_range import with_length_ranges
from loadgen.cli.compat.tool_flags import (
    NONE,
    ONE,
    SOME,
    Given,
    ToolFlag,
    names_a_server,
    no_op,
    refused,
    renamed,
    with_fields,
)
from loadgen.config import lora
from loadgen.config.data import RANDOM_IMAGES, TRACE
from loadgen.config.option import flag as spelled
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

COMPLETIONS = {"sglang-oai": 30000, "vllm": 8000, "lmdeploy": 23333}  # with their default ports
NATIVE = {"sglang": 30000, "sglang-native": 30000}
CHAT = {"sglang-oai-chat": 30000, "vllm-chat": 30000, "lmdeploy-chat": 30000}
LONGBENCH_V2 = "THUDM/LongBench-v2"
DATASETS: dict[str, dict[str, Any]] = {
    "random": {"dataset_name": "random"},
    "random-ids": {"dataset_name": "random"},
    "sharegpt": {"dataset_name": "sharegpt"},
    "custom": {"dataset_name": "custom"},
    "image": {"dataset_name": RANDOM_IMAGES},
    "mooncake": {"dataset_name": TRACE, "trace_format": "mooncake", "no_oversample": True},
    "generated-shared-prefix": {"dataset_name": "prefix_repetition"},
    "speed-bench": {"dataset_name": "speed_bench"},
    "longbench_v2": {"dataset_name": "hf", "hf_name": LONGBENCH_V2},
}
WORKLOADS = {  # of --mooncake-workload: files of Mooncake's repository
    "conversation": "traces/conversation_trace.jsonl",
    "mooncake": "arxiv-trace/mooncake_trace.jsonl",
    "synthetic": "traces/synthetic_trace.jsonl",
    "toolagent": "traces/toolagent_trace.jsonl",
}
# Settings whose flags mean something else in SGLang, and are replaced by those below.
REPLACED = ("backend", "dataset_name", "random_range_ratio", "image_format")
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
# Markers, removed by `as_sent`: fields that only SGLang's own API has, its name of the backend, and some of its flags.
NATIVE_BODY, BACKEND, APPLIED = "native_body", "sglang_backend", "apply_chat_template"
FLUSH, FLUSH_TIMEOUT = "flush_cache", "flush_cache_timeout"
FLUSH_S, STAGE_STEPS = 60.0, 5  # defaults
TEMPLATED = ("sharegpt", "custom")  # data sets on which --apply-chat-template has an effect
NATIVE_DEFAULTS: dict[str, Any] = {
    "lora_path": None,
    "return_logprob": False,
    "return_routed_experts": False,
    "logprob_start_len": -1,
}
EXACT: dict[str, Any] = {"random_range_ratio": 1.0}  # exact lengths, not ranges
GROUPS, PER_GROUP = 64, 16  # defaults of generated-shared-prefix
PREFIX_LENS = {
    "prefix_repetition_num_prefixes": GROUPS,
    "prefix_repetition_prefix_len": 2048,
    "prefix_repetition_suffix_len": 128,
    "prefix_repetition_output_len": 256,
}
DISTRIBUTIONS = {"uniform": lora.RANDOM, "distinct": lora.IN_TURN}  # beside skewed
ALPHA, ZIPF_ALPHA = "lora_zipf_alpha", 1.5  # a marker, removed by `as_sent`, and its default
SIDES = {"4k": "2160x3840", "1080p": "1080x1920", "720p": "720x1280", "360p": "360x640"}  # height and width
ANY_COUNT = "random_image_count"  # a marker, removed by `as_sent`
IMAGES: dict[str, Any] = {
    "images": 1,
    "image_sizes": SIDES["1080p"],
    "image_format": "jpeg:85",
    "image_position": "first",
}


def defaults(given: Given) -> dict[str, Any]:
    """Return the defaults of `bench_serving`; a workload keeps its lengths."""
    found = DEFAULTS | ({} if names_a_server(given) else ADDRESS) | (EXACT if given.get("workload") else {})
    if given.get("dataset_name") == "prefix_repetition":
        groups = given.get("prefix_repetition_num_prefixes", GROUPS)
        found |= PREFIX_LENS | {"num_prompts": groups * PER_GROUP}
    if given.get("dataset_name") == RANDOM_IMAGES:
        found |= IMAGES
    return found | hub_data.SGLANG_DEFAULTS.get(str(given.get("dataset_name")), {})


def as_sent(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with SGLang's ranges of lengths, its rule for ShareGPT, and the fields of its own API.

    The file from which SGLang takes the words of random prompts is left out.

    Raises:
        BadInput: The ratio of the ranges is not between 0 and 1.
    """
    found = with_length_ranges(settings)
    native, backend = found.pop(NATIVE_BODY, {}), found.pop(BACKEND, "sglang")
    found.pop(ALPHA, None)
    if found.pop(ANY_COUNT, False):
        found["images"] = f"1:{found.get('images', 1)}"
    flush, timeout_s = found.pop(FLUSH, False), found.pop(FLUSH_TIMEOUT, FLUSH_S)
    if flush:
        found["call_before"] = (*found.get("call_before", ()), _flush_call(backend, timeout_s))
    if found["backend"] == "sglang-native":
        found = with_fields(found, NATIVE_DEFAULTS | native)
    else:
        if found.get("lora_modules"):
            found = with_fields(found, {"lora_path": None})  # each request fills it in
        if found["backend"] == "openai":
            found = with_fields(found, {"best_of": 1} | _logprobs(native))
    _tell_ignored(found, native)
    if found["dataset_name"] == "sharegpt":
        found.setdefault("dataset_rule", "sglang")
    if found.get("hf_name") == LONGBENCH_V2 and "sharegpt_output_len" in found:
        found.setdefault("hf_output_len", found["sharegpt_output_len"])
    if found["dataset_name"] == TRACE and not found.get("dataset_path"):
        _workload("conversation", found)
    if found["dataset_name"] == "random":
        found.pop("dataset_path", None)
    if found.pop(APPLIED, False):
        if found["dataset_name"] in TEMPLATED:
            found.setdefault("render_chat_template", "without-bos")
        else:
            _tell(f"--apply-chat-template has no effect on the data set {found['dataset_name']}")
    return found


def _logprobs(native: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of completions for flags of SGLang's own API."""
    count = native.get("top_logprobs_num", 0)
    return {"logprobs": count} if native.get("return_logprob") and count > 0 else {}


def _tell_ignored(found: dict[str, Any], native: dict[str, Any]) -> None:
    """Write which flags of SGLang's own API have no effect on the API that was chosen."""
    if found["backend"] == "sglang-native":
        return
    used = {"return_logprob", "top_logprobs_num"} if found["backend"] == "openai" and _logprobs(native) else set()
    for field in sorted(native.keys() - used):
        _tell(f"{spelled(field)} has no effect on {found['backend']}")


def _tell(text: str) -> None:
    print(f"loadgen: {text}, as in SGLang", file=sys.stderr)


def _backend(value: str, given: Given) -> dict[str, Any]:
    for kind, ports in (("openai", COMPLETIONS), ("openai-chat", CHAT), ("sglang-native", NATIVE)):
        if value in ports:
            by_host = not names_a_server(given) and "port" not in given
            return {"backend": kind, BACKEND: value} | ({"port": ports[value]} if by_host else {})
    raise BadInput(
        "--backend", f"{value!r} is not supported", f"choose from {', '.join([*NATIVE, *COMPLETIONS, *CHAT])}"
    )


def _dataset(value: str, given: Given) -> dict[str, Any]:
    if value not in DATASETS:
        raise BadInput("--dataset-name", f"{value!r} is not supported", f"choose from {', '.join(DATASETS)}")
    return dict(DATASETS[value])


def _body(value: str, given: Given) -> dict[str, Any]:
    try:
        body = json.loads(value)
    except ValueError as error:
        raise BadInput("--extra-request-body", f"{value!r} is not valid JSON", "write a JSON object") from error
    if not isinstance(body, dict):
        raise BadInput("--extra-request-body", f"{value} is not a JSON object", "write for example '{\"min_p\": 0.1}'")
    return {"extra_body": body}


def _body_field(
    name: str, setting: str, field: str, meaning: str, values: str = ONE, type_: Callable[[str], Any] = str
) -> ToolFlag:
    """Return a flag that sets a field of the JSON object in a setting."""

    def convert(value: Any, given: Given) -> dict[str, Any]:
        return {setting: (given.get(setting) or {}) | {field: True if values == NONE else value}}

    return ToolFlag(name, convert, meaning, values=values, type_=type_)


def _native(name: str, field: str, values: str = ONE, type_: Callable[[str], Any] = str) -> ToolFlag:
    """Return a flag that sets a field of SGLang's own API; other APIs are not sent it."""
    meaning = f"`--extra-body` with {field}, only with SGLang's own API"
    return _body_field(name, NATIVE_BODY, field, meaning, values, type_)


def _profile(name: str, field: str, values: str = ONE, type_: Callable[[str], Any] = str) -> ToolFlag:
    """Return a flag that sets a field of the request that starts the profiler."""
    return _body_field(name, "profile_body", field, f"`--profile-body` with {field}", values, type_)


def _profile_by_stage(value: Any, given: Given) -> dict[str, Any]:
    return {"profile_body": {"num_steps": STAGE_STEPS} | (given.get("profile_body") or {}) | {"profile_by_stage": True}}


def _output_dir(value: str, given: Given) -> dict[str, Any]:
    return {"profile_body": (given.get("profile_body") or {}) | {"output_dir": abspath(value)}}


def _profile_url(value: Sequence[str], given: Given) -> dict[str, Any]:
    return {"profile_url": (*given.get("profile_url", ()), *value)}


def _flush_call(backend: str, timeout_s: float) -> str:
    """Return the path that empties the server's prefix cache, as SGLang's tool chooses it for this backend."""
    if backend.startswith("vllm"):
        return "/reset_prefix_cache"
    return f"/flush_cache?timeout={timeout_s:g}" if backend.startswith("sglang") else "/flush_cache"


def _slowdown(value: float, given: Given) -> dict[str, Any]:
    if not value > 0:
        raise BadInput("--mooncake-slowdown-factor", f"{value:g} is out of range", "give a number above 0")
    return {"time_scale": 1 / value}


def _workload(value: str, given: Given) -> dict[str, Any]:
    if given.get("dataset_path"):
        return {}
    if value not in WORKLOADS:
        raise BadInput("--mooncake-workload", f"{value!r} is unknown", f"choose from {', '.join(WORKLOADS)}")
    file = f"FAST25-release/{WORKLOADS[value]} of https://github.com/kvcache-ai/Mooncake"
    raise BadInput("--mooncake-workload", "loadgen downloads no trace", f"give --dataset-path a copy of {file}")


def _tag(value: str, given: Given) -> dict[str, Any]:
    return {"metadata": (*given.get("metadata", ()), f"tag={value}")}


def _sizes(resolution: str) -> str:
    """Return the sizes of images; names of resolutions may be the bounds of a range, too."""
    text = resolution.strip().lower().removeprefix("random:")
    return "-".join(SIDES.get(side, side) for side in text.split("-", 1))


def _format(value: str) -> str:
    return IMAGES["image_format"] if value.lower() in ("jpeg", "jpg") else value.lower()


def _distribution(value: str, given: Given) -> dict[str, Any]:
    if value == lora.SKEWED:
        return {"lora_assignment": _skewed(given.get(ALPHA, ZIPF_ALPHA))}
    if value not in DISTRIBUTIONS:
        remedy = f"choose from {', '.join(DISTRIBUTIONS)}, {lora.SKEWED}"
        raise BadInput("--lora-request-distribution", f"unknown distribution {value!r}", remedy)
    return {"lora_assignment": DISTRIBUTIONS[value]}


def _zipf_alpha(value: float, given: Given) -> dict[str, Any]:
    if not value > 1:
        raise BadInput("--lora-zipf-alpha", f"{value:g} is out of range", "give a number above 1")
    is_skewed = str(given.get("lora_assignment")).startswith(lora.SKEWED)
    return {ALPHA: value} | ({"lora_assignment": _skewed(value)} if is_skewed else {})


def _skewed(alpha: float) -> str:
    return f"{lora.SKEWED}:{alpha:g}"


def _per_group(value: int, given: Given) -> dict[str, Any]:
    return {"num_prompts": value * given.get("prefix_repetition_num_prefixes", GROUPS)}


FLAGS: tuple[ToolFlag, ...] = (
    ToolFlag(
        "--backend",
        _backend,
        "sglang: its own API; sglang-oai, vllm, lmdeploy: completions; with -chat: chat; others are refused",
    ),
    ToolFlag("--dataset-name", _dataset, f"{', '.join(DATASETS)}; others are refused"),
    ToolFlag(
        "--random-range-ratio",
        lambda value, given: {"random_range_ratio": value},
        "lengths from R * LEN to LEN, as SGLang draws them: `--random-input-len A:B`",
        type_=number,
    ),
    ToolFlag("--extra-request-body", _body, "`--extra-body`"),
    ToolFlag(
        "--output-file",
        lambda value, given: {"result_filename": value, "append_result": True},
        "`--result-filename FILE --append-result`; without it nothing is saved",
    ),
    ToolFlag("--output-details", lambda value, given: {"save_detailed": True}, "`--save-detailed`", values=NONE),
    renamed("--warmup-requests", "num_warmups", integer),
    ToolFlag("--disable-ignore-eos", lambda value, given: {"ignore_eos": False}, "`--no-ignore-eos`", values=NONE),
    ToolFlag(
        "--tag", lambda value, given: {"metadata": (*given.get("metadata", ()), f"tag={value}")}, "`--metadata tag=TAG`"
    ),
    ToolFlag("--mooncake-slowdown-factor", _slowdown, "`--time-scale`, with the reciprocal value", type_=number),
    refused("--mooncake-num-rounds", "a trace has its own turns", "leave it out", no_op_value=1),
    ToolFlag("--mooncake-workload", _workload, "no effect beside `--dataset-path`; without it refused"),
    no_op("--use-trace-timestamps", "no effect: a trace keeps its times", SOME),
    renamed("--gsp-num-groups", "prefix_repetition_num_prefixes", integer),
    ToolFlag("--gsp-prompts-per-group", _per_group, "`--num-prompts`, for all groups together", type_=integer),
    renamed("--gsp-system-prompt-len", "prefix_repetition_prefix_len", integer),
    renamed("--gsp-question-len", "prefix_repetition_suffix_len", integer),
    renamed("--gsp-output-len", "prefix_repetition_output_len", integer),
    refused("--gsp-range-ratio", "these lengths are fixed", "leave it out", no_op_value=1.0),
    refused(
        "--gsp-num-turns",
        "these prompts have one turn",
        "use --dataset-name multi_turn without --compat",
        no_op_value=1,
    ),
    no_op("--gsp-fast-prepare", "no effect: prompts are made fast anyway"),
    refused("--gsp-send-routing-key", "loadgen sends no routing key", "use --header", NONE),
    refused("--gsp-ordered", "the prompts of all groups are shuffled", "leave it out", NONE),
    refused("--gsp-group-distribution", "all groups have the same number of prompts", "leave it out"),
    refused("--gsp-zipf-alpha", "all groups have the same number of prompts", "leave it out"),
    no_op("--trust-remote-code", "no effect: loadgen runs no code of a model"),
    no_op("--cache-report", "no effect: cached tokens are always read if the server reports them"),
    no_op("--pd-separated", "no effect: disaggregated servers are measured like any other"),
    no_op("--rust-client", "no effect: the client is compiled anyway"),
    no_op("--rust-worker-threads", "no effect: the client is compiled anyway", ONE),
    refused("--dataset-offset", "a file is read from its start", "shorten the file", no_op_value=0),
    refused("--sharegpt-context-len", "conversations are as long as they are", "leave out the long ones in the file"),
    refused("--prompt-suffix", "prompts are sent unchanged", "add it to the prompts in the file", no_op_value=""),
    ToolFlag(
        "--apply-chat-template",
        lambda value, given: {APPLIED: True},
        "`--render-chat-template without-bos`; no effect on other data sets than sharegpt and custom",
        values=NONE,
    ),
    ToolFlag(
        "--tokenize-prompt",
        lambda value, given: {"prompt_token_ids": True},
        "`--prompt-token-ids`, also with completions",
        values=NONE,
    ),
    refused("--print-requests", "requests are not printed", "use --records FILE, which writes a line for each", NONE),
    refused("--plot-throughput", "this plot is not available", "use --html FILE.html, which draws the rates", NONE),
    ToolFlag(
        "--flush-cache",
        lambda value, given: {FLUSH: True},
        "`--call-before /flush_cache?timeout=60`; /reset_prefix_cache with --backend vllm and vllm-chat",
        values=NONE,
    ),
    ToolFlag(
        "--flush-cache-timeout",
        lambda value, given: {FLUSH_TIMEOUT: value},
        "the timeout in `--call-before /flush_cache?timeout=S`",
        type_=number,
    ),
    refused("--fake-prefill", "every prompt is prefilled", "leave it out", NONE),
    _native("--return-logprob", "return_logprob", NONE),
    _native("--return-routed-experts", "return_routed_experts", NONE),
    _native("--top-logprobs-num", "top_logprobs_num", type_=integer),
    _native("--logprob-start-len", "logprob_start_len", type_=integer),
    _native("--token-ids-logprob", "token_ids_logprob", SOME, integer),
    ToolFlag(
        "--profile-by-stage",
        _profile_by_stage,
        f"`--profile-body` with profile_by_stage, and with {STAGE_STEPS} num_steps unless they are given",
        values=NONE,
    ),
    _profile("--profile-activities", "activities", SOME),
    _profile("--profile-start-step", "start_step", type_=integer),
    _profile("--profile-steps", "num_steps", type_=integer),
    _profile("--profile-num-steps", "num_steps", type_=integer),
    _profile("--profile-stages", "profile_stages", SOME),
    _profile("--profile-prefix", "profile_prefix"),
    ToolFlag(
        "--profile-output-dir",
        _output_dir,
        "`--profile-body` with output_dir; the traces lie in this folder itself, not in one named by the time",
    ),
    *(
        ToolFlag(f"--profile-{workers}-url", _profile_url, "`--profile-url`", values=SOME)
        for workers in ("prefill", "decode")
    ),
    ToolFlag("--lora-name", lambda value, given: {"lora_modules": tuple(value)}, "`--lora-modules`", values=SOME),
    ToolFlag("--lora-request-distribution", _distribution, "`--lora-assignment`: random, round-robin or skewed"),
    ToolFlag("--lora-zipf-alpha", _zipf_alpha, "`--lora-assignment skewed:ALPHA`", type_=number),
    renamed("--image-count", "images", integer),
    ToolFlag("--random-image-count", lambda value, given: {ANY_COUNT: True}, "`--images 1:COUNT`", values=NONE),
    ToolFlag("--image-resolution", lambda value, given: {"image_sizes": _sizes(value)}, "`--image-sizes`"),
    ToolFlag("--image-format", lambda value, given: {"image_format": _format(value)}, "the same; jpeg is jpeg:85"),
    refused(
        "--agentic-max-turns",
        "the data set agentic-trace is not supported",
        "without --compat, --dataset-name sharegpt --turns N reads conversations, and multi_turn makes them",
    ),
    *hub_data.SPEED_BENCH,
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

# Notes on flags of the same name that do less here.
NOTES = {
    "--dataset-path": "not read for random prompts: loadgen uses its own words, with the requested lengths",
    "--profile": "a server that refuses to start its profiler ends the run; in SGLang the run goes on without",
}
