"""vLLM: the flags of `vllm bench serve` that `loadgen run` does not have, and the defaults of each release."""

import sys
from typing import Any

from loadgen.cli.compat import hub_data, timed_trace, vllm_images, vllm_plots
from loadgen.cli.compat.tool_flags import (
    NONE,
    Given,
    ToolFlag,
    names_a_server,
    no_op,
    refused,
    renamed,
)
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer
from loadgen.workload import vllm_load
from loadgen.workload.endpoints.openai import COMPLETIONS

COMPLETIONS_NAMES = ("lmdeploy", "scalellm", "sglang", "llama.cpp")  # vLLM's other names for the completions API
TOKENIZERS = ("auto", "hf", "slow")  # modes that use tokenizer.json
OUTPUT_LENS = ("random", "sharegpt", "custom", "hf", "prefix_repetition", "sonnet")
NO_MEDIA = "audio and video are not supported"
TEXT = "send text, or use vLLM's own tool for this data set"

ADDRESS: dict[str, Any] = {"host": "127.0.0.1"}
SKIPPED = "skip_chat_template"  # a marker, removed by `without_ignored`


def defaults_0_11(given: Given) -> dict[str, Any]:
    """Return the defaults of 0.11."""
    return vllm_load.defaults_0_11(given) | server(given)


def defaults_0_32(given: Given) -> dict[str, Any]:
    """Return the defaults of 0.32 and 0.33."""
    return vllm_load.defaults_0_32(given) | server(given)


def server(given: Given) -> dict[str, Any]:
    """Return address and API of a server, where they are not named; a path means an API, too."""
    found = {} if names_a_server(given) else ADDRESS
    return found if given.get("endpoint") else {"backend": "openai"} | found


def without_ignored(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without markers, and without a file that vLLM does not read.

    Raises:
        BadInput: A flag of images is invalid.
    """
    found = vllm_plots.with_page(vllm_images.with_images(settings))
    found.pop(SKIPPED, None)
    if (
        found.get("dataset_name", "random") == "random"
        and found.pop("dataset_path", None)
        and not found.get("workload")
    ):
        print("loadgen: --dataset-path has no effect on random prompts, as in vLLM", file=sys.stderr)
    return found


def as_sent(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with which bodies and prompts are those of vLLM's own tool.

    Raises:
        BadInput: The backend is unknown, or a flag of images is invalid.
    """
    return vllm_load.as_sent(without_ignored(settings), templated=not settings.get(SKIPPED))


def _backend(value: str) -> str:
    return "openai" if value in COMPLETIONS_NAMES else value


def _output_len(value: int, given: Given) -> dict[str, Any]:
    return {f"{name}_output_len": value for name in OUTPUT_LENS}


def _logprobs(value: int, given: Given) -> dict[str, Any]:
    if vllm_load.api_of(given) is not COMPLETIONS:
        return {}  # vLLM requests them only from the completions API
    return {"extra_body": {"logprobs": value} | (given.get("extra_body") or {})}


def _tokenizer_mode(value: str, given: Given) -> dict[str, Any]:
    if value in TOKENIZERS:
        return {}
    from loadgen.workload.tokenizer.tokenizer import tokenizer_file

    path = tokenizer_file(RunSettings(tokenizer=given.get("tokenizer"), model=given.get("model")))
    if path is None:
        remedy = "give --tokenizer a tokenizer.json of the model, or its folder"
        raise BadInput("--tokenizer-mode", f"{value!r} does not use a tokenizer.json", remedy)
    print(f"loadgen: --tokenizer-mode {value} has no effect: {path} is used", file=sys.stderr)
    return {}


FLAGS: tuple[ToolFlag, ...] = (
    ToolFlag("--endpoint-type", lambda value, given: {"backend": _backend(value)}, "`--backend`, its new name"),
    renamed("--input-len", "random_input_len", integer),
    ToolFlag("--output-len", _output_len, "the output length of the chosen data set", type_=integer),
    ToolFlag("--logprobs", _logprobs, "`--extra-body '{\"logprobs\": N}'`, only with completions", type_=integer),
    ToolFlag(
        "--tokenizer-mode",
        _tokenizer_mode,
        "no effect: a tokenizer.json is used; others than auto, hf and slow are refused without one",
    ),
    no_op("--trust-remote-code", "no effect: loadgen runs no code of a model"),
    no_op("--skip-tokenizer-init", "no effect: a tokenizer is loaded only if it is needed"),
    no_op("--use-beam-search", "no effect, in vLLM's own tool either"),
    *(
        ToolFlag(name, lambda value, given: {SKIPPED: True}, "the same; the default without `--compat`", values=NONE)
        for name in ("--skip-chat-template", "--custom-skip-chat-template")
    ),
    no_op("--no-stream", "no effect: rows are shuffled as in a stream, which is the same for fewer than 1000 rows"),
    refused(
        "--chat-template-kwargs",
        "the template's variables are fields of the body",
        "use --extra-body '{\"chat_template_kwargs\": {...}}'",
    ),
    *vllm_plots.FLAGS,
    no_op("--enable-multimodal-chat", "no effect: the messages are the same with and without it"),
    *vllm_images.FLAGS,
    *(refused(f"--asr-{bound}-audio-len-sec", NO_MEDIA, TEXT) for bound in ("min", "max")),
    refused("--bfcl-categories", "the tools of its requests are not supported", "leave it out, and use text"),
    refused("--speed-bench-max-input-len", "prompts are sent whole", "choose a subset of shorter prompts"),
    *hub_data.FLAGS,
    *timed_trace.FLAGS,
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
        "--percentile-metrics",
        "--port",
        "--prefix-repetition-num-prefixes",
        "--prefix-repetition-output-len",
        "--prefix-repetition-prefix-len",
        "--prefix-repetition-suffix-len",
        "--presence-penalty",
        "--probe-request-rate",
        "--profile",
        "--ramp-up-end-rps",
        "--ramp-up-start-rps",
        "--ramp-up-strategy",
        "--random-batch-size",
        "--random-input-len",
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
        "--top-k",
        "--top-p",
    )
)

# Notes on flags of the same name that do less or more here.
NOTES = {
    "--backend": "openai-chat; openai-responses; openai, also as vllm, lmdeploy, scalellm, sglang, llama.cpp; "
    "openai-embeddings, openai-embeddings-chat, infinity-embeddings, vllm-pooling, vllm-rerank; others are refused",
    "--base-url": "repeat it for several servers",
    "--burstiness": "also inf: evenly spaced",
    "--custom-ensure-client-side-data": "files are sent as they are, and images on the network are refused",
    "--custom-output-len": "the default for rows without a length; in vLLM a row's own length counts only with -1",
    "--dataset-name": "those of vLLM in docs/datasets.md, and loadgen's own; others are refused",
    "--goodput": "failed and unfinished requests count as not good",
    "--header": "@FILE keeps a secret off the command line",
    "--hf-name": "also found from the last two folders of --dataset-path",
    "--ignore-eos": "the default for random prompts, as in vLLM 0.32; `--no-ignore-eos` switches it off",
    "--lora-assignment": "also skewed:ALPHA",
    "--lora-modules": "each a class of the result; also for warm-ups, which vLLM sends to the model itself",
    "--num-prompts": "1000, unless --duration is given; -1: all prompts of a file",
    "--num-warmups": "warm-ups use other prompts than the run; with `--compat` its first one, as in vLLM",
    "--percentile-metrics": "client_queue_time is the wait for a slot, which a request of a run at --rate inf does not "
    "have: it is due when a slot is free",
    "--probe-request-rate": "of several servers the first is probed",
    "--profile": "a server that refuses to start its profiler ends the run; in vLLM the run goes on without",
    "--random-input-len": "also distributions",
    "--random-range-ratio": "prompts have exactly the drawn lengths",
    "--sonnet-input-len": "from loadgen's own text",
    "--temperature": "the server's default, as in vLLM 0.32; 0 with `--compat vllm-0.11`",
    "--ready-check-timeout-sec": "0, as in vLLM 0.32; 600 with `--compat vllm-0.11`; also the time to "
    "wait for a server that does not listen yet",
    "--tokenizer": "a tokenizer.json, its folder, a .gguf or a hub name",
    "--request-rate": "also `--rate`; several values, as 1,2,4, make one run each",
    "--max-concurrency": "several values, as 1,2,4, make one run each",
}
