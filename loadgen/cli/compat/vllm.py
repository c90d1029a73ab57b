"""vLLM: the flags of `vllm bench serve` that `loadgen run` does not have, and what each release took for granted."""

from typing import Any

from loadgen.cli.compat.others import PROFILES
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
from loadgen.util.argument_parser import integer

COMPLETIONS = ("lmdeploy", "scalellm", "sglang", "llama.cpp")  # other names of vLLM's for completions
TOKENIZERS = ("auto", "hf", "slow")  # whose tokens are those of tokenizer.json
OUTPUT_LENS = ("random", "sharegpt", "custom", "hf", "prefix_repetition", "sonnet")
NO_MEDIA = "prompts are text here: there are no images, audio or video"
TEXT = "ask with text, or keep vLLM's own tool for this data set"
ROWS = "write it as JSON lines: --dataset-name jsonl"
TRACE = (
    "--dataset-name trace reads traces of Mooncake, BurstGPT and Azure with their times; --time-scale stretches them"
)

# What a release did without being told, where that is not what loadgen does.
V0_11: dict[str, Any] = {
    "temperature": 0.0,
    "ignore_eos": False,
    "latency_from": "sent",
    "warmup_prompt": "first",
    "ready_check_timeout_sec": 600.0,
}
V0_32: dict[str, Any] = {"latency_from": "sent", "warmup_prompt": "first"}
ADDRESS: dict[str, Any] = {"host": "127.0.0.1"}
SKIPPED = "skip_chat_template"  # given, until the settings are whole
TEMPLATED = ("custom", "sonnet")  # whose prompts vLLM puts into the chat template unless told not to
CHATS = {"backend": "chat", "endpoint": "chat/completions"}  # how the words end that ask for chats
RULED = ("random", "sharegpt")  # whose prompts 0.11 made by a rule that is known here


def defaults_0_11(given: Given) -> dict[str, Any]:
    """What 0.11 took for granted beside what is given."""
    by_rule = given.get("dataset_name", "random") in RULED and not given.get("workload")
    return V0_11 | ({"dataset_rule": "vllm-0.11"} if by_rule else {}) | _address(given)


def defaults_0_32(given: Given) -> dict[str, Any]:
    """What 0.32, and 0.33 with it, took for granted beside what is given."""
    return V0_32 | _address(given)


def _address(given: Given) -> dict[str, Any]:
    return {} if names_a_server(given) else ADDRESS


def unmarked(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without the word of a flag that is no setting of a run."""
    return {name: value for name, value in settings.items() if name != SKIPPED}


def as_sent(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, of which vLLM's own tool would send the same prompts.

    Raises:
        BadInput: It would put them into the model's chat template.
    """
    name = settings.get("dataset_name")
    if name in TEMPLATED and not settings.get(SKIPPED) and not _asks_chat(settings):
        problem = f"vLLM puts prompts of {name} into the chat template, and here they are sent as they are"
        remedy = "take --backend openai-chat, where the server does it, or say --skip-chat-template"
        raise BadInput("--dataset-name", problem, remedy)
    return unmarked(settings)


def _asks_chat(given: Given) -> bool:
    return any(str(given.get(name) or "").endswith(end) for name, end in CHATS.items())


def _backend(value: str) -> str:
    return "openai" if value in COMPLETIONS else value


def _output_len(value: int, given: Given) -> dict[str, Any]:
    return {f"{name}_output_len": value for name in OUTPUT_LENS}


def _logprobs(value: int, given: Given) -> dict[str, Any]:
    if _asks_chat(given):
        return {}  # vLLM asks for them of completions alone
    return {"extra_body": {"logprobs": value} | (given.get("extra_body") or {})}


def _tokenizer_mode(value: str, given: Given) -> dict[str, Any]:
    if value in TOKENIZERS:
        return {}
    remedy = "give --tokenizer a tokenizer.json of the model"
    raise BadInput("--tokenizer-mode", f"{value!r} is no tokenizer.json's", remedy)


FLAGS: tuple[Theirs, ...] = (
    Theirs("--endpoint-type", lambda value, given: {"backend": _backend(value)}, "`--backend`, whose old name it is"),
    same("--input-len", "random_input_len", integer),
    Theirs("--output-len", _output_len, "the length of the data set's answers, whichever it is", kind=integer),
    Theirs("--logprobs", _logprobs, "`--extra-body '{\"logprobs\": N}'`, of completions alone", kind=integer),
    Theirs("--tokenizer-mode", _tokenizer_mode, "auto, hf and slow are the same here; others are refused"),
    idle("--trust-remote-code", "tokenizers are data here: no code of a model is run"),
    idle("--skip-tokenizer-init", "a tokenizer is loaded only where one is needed"),
    idle("--use-beam-search", "vLLM's own tool does nothing with it"),
    *(
        Theirs(
            name, lambda value, given: {SKIPPED: True}, "the same, which is so anyway without `--compat`", takes=NONE
        )
        for name in ("--skip-chat-template", "--custom-skip-chat-template")
    ),
    idle("--no-stream", "data sets of the hub are read as a stream or whole, the prompts are the same"),
    refused(
        "--no-oversample",
        "where a file has too few prompts, some are asked again",
        "give --num-prompts as many as `loadgen dataset` counts",
        NONE,
    ),
    refused("--profile", PROFILER, f"{POST}; of guidellm's profiles {PROFILES}", SOME),
    refused("--lora-modules", ONE_MODEL, ADAPTER, SOME),
    refused("--lora-assignment", ONE_MODEL, ADAPTER),
    refused(
        "--probe-request-rate",
        "there is no second load beside the first",
        "run a second `loadgen run --rate R --random-input-len 8 --random-output-len 1` beside it",
        harmless=0.0,
    ),
    refused("--chat-template-kwargs", TEMPLATE, "give it --extra-body '{\"chat_template_kwargs\": {...}}'"),
    refused("--plot-timeline", "there is no such plot", "--html FILE.html draws the run over time", NONE),
    idle("--timeline-itl-thresholds", "colours of a plot", ONE),
    refused("--plot-dataset-stats", "there is no such plot", "`loadgen dataset` prints the lengths", NONE),
    refused("--random-batch-size", "embeddings are not measured", "leave it out", harmless=1),
    refused("--no-reranker", "rerankers are not measured", "leave it out", NONE),
    refused("--enable-multimodal-chat", NO_MEDIA, TEXT, NONE),
    refused("--custom-ensure-client-side-data", NO_MEDIA, TEXT, NONE),
    *(
        refused(f"--random-mm-{name}", NO_MEDIA, TEXT)
        for name in (
            "base-items-per-request",
            "num-mm-items-range-ratio",
            "limit-mm-per-prompt",
            "bucket-config",
        )
    ),
    *(refused(f"--asr-{bound}-audio-len-sec", NO_MEDIA, TEXT) for bound in ("min", "max")),
    *(
        refused(name, "this data set is not had", ROWS)
        for name in (
            "--spec-bench-output-len",
            "--spec-bench-category",
            "--blazedit-min-distance",
            "--blazedit-max-distance",
            "--bfcl-categories",
            "--speed-bench-dataset-subset",
            "--speed-bench-output-len",
            "--speed-bench-category",
        )
    ),
    refused("--hf-name", "data sets are known by their columns, not by name", "name the columns with --hf-column"),
    *(
        refused(name, "traces keep their own times here, other data sets have none", TRACE, NONE)
        for name in ("--self-timed", "--no-self-timed")
    ),
    *(
        refused(f"--timed-trace-{name}", "traces of this form are not read", TRACE)
        for name in (
            "chunk-hash-size",
            "sec-multiplier",
            "label-timestamp",
            "label-input-length",
            "label-output-length",
            "label-hash-ids",
        )
    ),
)

# Flags of the same name whose meaning has a limit or an extension here.
NOTES = {
    "--backend": "openai-chat, or openai, also as vllm, lmdeploy, scalellm, sglang, llama.cpp; others are refused",
    "--base-url": "given again, one more server to share the load",
    "--burstiness": "inf too: evenly spaced",
    "--custom-output-len": "where rows say no length: a row's own goes first, in vLLM only with -1",
    "--dataset-name": "random, prefix_repetition, sharegpt, custom, sonnet, hf, and loadgen's own; others are refused",
    "--goodput": "requests that failed or did not end count as not good in the share",
    "--header": "@FILE keeps a secret off the command line",
    "--ignore-eos": "set by itself for random prompts, as vLLM 0.32 does; `--no-ignore-eos` says no",
    "--num-prompts": "1000, unless --duration is given",
    "--num-warmups": "of other prompts than the run's; with `--compat` of its first one, as vLLM does",
    "--percentile-metrics": "ttft, tpot, itl, e2el; client_queue_time and e2el_including_client_queue are refused: "
    "they stand below the block",
    "--random-input-len": "distributions too",
    "--random-range-ratio": "prompts of the lengths drawn are exact",
    "--sonnet-input-len": "of a text of loadgen's own",
    "--temperature": "the server's default, as in vLLM 0.32; 0 with `--compat vllm-0.11`",
    "--ready-check-timeout-sec": "0, as in vLLM 0.32; 600 with `--compat vllm-0.11`; a server that does not "
    "listen yet is waited for as long",
    "--tokenizer": "a tokenizer.json, its folder, a .gguf or a hub name",
    "--request-rate": "also `--rate`; several, as 1,2,4: a run each",
    "--max-concurrency": "several, as 1,2,4: a run each",
}
