"""SGLang: the flags of its `bench_serving`, whose meaning is often another than that of vLLM's of the same name."""

import json
import math
from typing import Any

from loadgen.cli.compat.theirs import (
    ADAPTER,
    NONE,
    ONE,
    ONE_MODEL,
    POST,
    PROFILER,
    SOME,
    TEMPLATE,
    Given,
    Theirs,
    idle,
    names_a_server,
    refused,
    same,
)
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

COMPLETIONS = {"sglang-oai": 30000, "vllm": 8000, "lmdeploy": 23333}  # and where each listens unless told
CHAT = {"sglang-oai-chat": 30000, "vllm-chat": 30000, "lmdeploy-chat": 30000}
DATASETS = {
    "random": {"dataset_name": "random"},
    "random-ids": {"dataset_name": "random"},
    "sharegpt": {"dataset_name": "sharegpt"},
    "custom": {"dataset_name": "custom"},
    "mooncake": {"dataset_name": "trace", "trace_format": "mooncake"},
    "generated-shared-prefix": {"dataset_name": "prefix_repetition"},
}
# Our flags of these names are replaced by those below: they mean something else.
REPLACED = ("backend", "dataset_name", "random_range_ratio")
DEFAULTS: dict[str, Any] = {
    "backend": "openai",
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
EXACT: dict[str, Any] = {"random_range_ratio": 1.0}  # lengths are what is named, not up to it
GROUPS, PER_GROUP = 64, 16  # of generated-shared-prefix
PREFIX_LENS = {
    "prefix_repetition_num_prefixes": GROUPS,
    "prefix_repetition_prefix_len": 2048,
    "prefix_repetition_suffix_len": 128,
    "prefix_repetition_output_len": 256,
}
NO_MEDIA = "prompts are text here: there are no images"


def defaults(given: Given) -> dict[str, Any]:
    """What `bench_serving` takes for granted beside what is given; a workload keeps its lengths."""
    found = DEFAULTS | ({} if names_a_server(given) else ADDRESS) | (EXACT if given.get("workload") else {})
    if given.get("dataset_name") == "prefix_repetition":
        groups = given.get("prefix_repetition_num_prefixes", GROUPS)
        found |= PREFIX_LENS | {"num_prompts": groups * PER_GROUP}
    return found


def ranged(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with lengths drawn as SGLang draws them: from `--random-range-ratio` of the whole up to it.

    A file that SGLang would take the words of random prompts from is left out.

    Raises:
        BadInput: The ratio is no share.
    """
    ratio = _share(settings.pop("random_range_ratio"))
    if settings["dataset_name"] != "random":
        return settings
    settings.pop("dataset_path", None)
    for name in ("random_input_len", "random_output_len"):
        most = settings[name]
        if isinstance(most, int):
            least = max(int(most * ratio), 1)
            settings[name] = most if least == most else f"{least}:{most}"
    return settings


def _share(ratio: float | str) -> float:
    try:
        found = float(ratio)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise BadInput("--random-range-ratio", f"{ratio} is no share", "give a number from 0 to 1")
    return found


def _backend(value: str, given: Given) -> dict[str, Any]:
    for kind, ports in (("openai", COMPLETIONS), ("openai-chat", CHAT)):
        if value in ports:
            by_host = not names_a_server(given) and "port" not in given
            return {"backend": kind} | ({"port": ports[value]} if by_host else {})
    if value in ("sglang", "sglang-native"):
        raise BadInput(
            "--backend", f"{value} is SGLang's own API, which is not asked", "use sglang-oai-chat or sglang-oai"
        )
    raise BadInput("--backend", f"{value!r} is not had", f"choose from {', '.join([*COMPLETIONS, *CHAT])}")


def _dataset(value: str, given: Given) -> dict[str, Any]:
    if value not in DATASETS:
        raise BadInput("--dataset-name", f"{value!r} is not had", f"choose from {', '.join(DATASETS)}")
    return dict(DATASETS[value])


def _body(value: str, given: Given) -> dict[str, Any]:
    try:
        body = json.loads(value)
    except ValueError as error:
        raise BadInput("--extra-request-body", f"{value!r} is no JSON", "write a JSON object") from error
    return {"extra_body": body}


def _slowdown(value: float, given: Given) -> dict[str, Any]:
    if not value > 0:
        raise BadInput("--mooncake-slowdown-factor", f"{value:g} is out of range", "give a number above 0")
    return {"time_scale": 1 / value}


def _per_group(value: int, given: Given) -> dict[str, Any]:
    return {"num_prompts": value * given.get("prefix_repetition_num_prefixes", GROUPS)}


FLAGS: tuple[Theirs, ...] = (
    Theirs("--backend", _backend, "sglang-oai, vllm, lmdeploy: completions; with -chat: chat; others are refused"),
    Theirs("--dataset-name", _dataset, f"{', '.join(DATASETS)}; others are refused"),
    Theirs(
        "--random-range-ratio",
        lambda value, given: {"random_range_ratio": value},
        "lengths from R * LEN to LEN, as SGLang draws them: `--random-input-len A:B`",
        kind=number,
    ),
    Theirs("--extra-request-body", _body, "`--extra-body`"),
    Theirs(
        "--output-file",
        lambda value, given: {"result_filename": value, "append_result": True},
        "`--result-filename FILE --append-result`; without it nothing is saved",
    ),
    Theirs("--output-details", lambda value, given: {"save_detailed": True}, "`--save-detailed`", takes=NONE),
    same("--warmup-requests", "num_warmups", integer),
    Theirs("--disable-ignore-eos", lambda value, given: {"ignore_eos": False}, "`--no-ignore-eos`", takes=NONE),
    Theirs("--tag", lambda value, given: {"metadata": (f"tag={value}",)}, "`--metadata tag=TAG`"),
    Theirs("--mooncake-slowdown-factor", _slowdown, "`--time-scale`, of which it is the reciprocal", kind=number),
    refused("--mooncake-num-rounds", "a trace's turns are its own", "leave it out", harmless=1),
    refused("--mooncake-workload", "no trace is downloaded", "name its file with --dataset-path"),
    idle("--use-trace-timestamps", "a trace always keeps its times"),
    same("--gsp-num-groups", "prefix_repetition_num_prefixes", integer),
    Theirs("--gsp-prompts-per-group", _per_group, "`--num-prompts`, of all groups together", kind=integer),
    same("--gsp-system-prompt-len", "prefix_repetition_prefix_len", integer),
    same("--gsp-question-len", "prefix_repetition_suffix_len", integer),
    same("--gsp-output-len", "prefix_repetition_output_len", integer),
    refused("--gsp-range-ratio", "these lengths are not drawn", "leave it out", harmless=1.0),
    refused("--gsp-num-turns", "these prompts have one turn", "--dataset-name multi_turn without --compat", harmless=1),
    idle("--gsp-fast-prepare", "prompts are made fast anyway"),
    refused("--gsp-send-routing-key", "no routing key is sent", "give --header", NONE),
    refused("--gsp-ordered", "prompts of the groups are mixed", "leave it out", NONE),
    refused("--gsp-group-distribution", "every group has as many prompts", "leave it out"),
    refused("--gsp-zipf-alpha", "every group has as many prompts", "leave it out"),
    idle("--cache-report", "cached tokens are read wherever a server tells them"),
    idle("--pd-separated", "servers that split prefill and decode are asked as any other"),
    idle("--rust-client", "the client is compiled anyway"),
    idle("--rust-worker-threads", "the client is compiled anyway", ONE),
    refused("--dataset-offset", "a file is read from its start", "cut the file", harmless=0),
    refused("--sharegpt-context-len", "conversations are kept by vLLM's rule", "leave it out"),
    refused("--prompt-suffix", "prompts are sent as they are", "write it into the file", harmless=""),
    refused("--apply-chat-template", TEMPLATE, "use --backend sglang-oai-chat", NONE),
    refused("--tokenize-prompt", "prompts are sent as text", "leave it out: their lengths are exact", NONE),
    refused("--disable-stream", "latencies of tokens need a stream", "leave it out", NONE),
    refused("--print-requests", "requests are not printed", "--records FILE keeps a line for each", NONE),
    refused("--plot-throughput", "there is no such plot", "--html FILE.html draws the rates", NONE),
    refused("--flush-cache", "the server's cache is left as it is", "POST to /flush_cache before the run", NONE),
    refused("--flush-cache-timeout", "the server's cache is left as it is", "POST to /flush_cache before the run"),
    refused("--fake-prefill", "every prompt is prefilled", "leave it out", NONE),
    refused("--return-logprob", "SGLang's own API is not asked", "--extra-request-body '{\"logprobs\": true}'", NONE),
    refused("--top-logprobs-num", "SGLang's own API is not asked", "use --extra-request-body", harmless=0),
    refused("--token-ids-logprob", "SGLang's own API is not asked", "use --extra-request-body", SOME),
    refused("--logprob-start-len", "SGLang's own API is not asked", "use --extra-request-body", harmless=-1),
    refused("--return-routed-experts", "SGLang's own API is not asked", "use --extra-request-body", NONE),
    refused("--profile", PROFILER, POST, NONE),
    refused("--profile-by-stage", PROFILER, POST, NONE),
    *(
        refused(f"--profile-{name}", PROFILER, POST, SOME)
        for name in (
            "activities",
            "start-step",
            "steps",
            "num-steps",
            "stages",
            "output-dir",
            "prefix",
            "prefill-url",
            "decode-url",
        )
    ),
    refused("--lora-name", ONE_MODEL, ADAPTER, SOME),
    refused("--lora-request-distribution", ONE_MODEL, ADAPTER),
    refused("--lora-zipf-alpha", ONE_MODEL, ADAPTER),
    *(refused(f"--image-{name}", NO_MEDIA, "leave it out") for name in ("count", "resolution", "format", "content")),
    refused("--random-image-count", NO_MEDIA, "leave it out", NONE),
    refused("--agentic-max-turns", "this data set is not had", "--dataset-name multi_turn without --compat"),
    refused("--speed-bench-category", "this data set is not had", "write it as JSON lines: --dataset-name custom"),
    refused("--speed-bench-output-len", "this data set is not had", "write it as JSON lines: --dataset-name custom"),
)

# Flags of the same name whose meaning has a limit here.
NOTES = {"--dataset-path": "of random it is not read: the words are loadgen's own, of the lengths asked for"}
