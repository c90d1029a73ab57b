"""vLLM: the flags of `vllm bench serve` that `loadgen run` does not have, and the defaults of each release."""

from pathlib import Path
from typing import Any

from loadgen.cli.compat import hub_data, timed_trace, vllm_images
from loadgen.cli.compat.tool_flags import NONE, ONE, Given, ToolFlag, names_a_server, refused, renamed, switch
from loadgen.cli.stderr import say
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer
from loadgen.workload import vllm_load
from loadgen.workload.endpoints.generation import COMPLETIONS

COMPLETIONS_NAMES = ("lmdeploy", "scalellm", "sglang", "llama.cpp")  # vLLM's other names for the completions API
TOKENIZERS = ("auto", "hf", "slow")  # modes that use tokenizer.json
OUTPUT_LENS = ("random", "sharegpt", "custom", "hf", "prefix_repetition", "sonnet")
NO_MEDIA = "audio and video are not supported"
TEXT = "send text, or use vLLM's own tool for this data set"

ADDRESS: dict[str, Any] = {"host": "127.0.0.1"}
SKIPPED, TIMELINE = "_skip_chat_template", "_plot_timeline"  # markers
TIMELINE_ENDING = ".timeline.html"  # of the file that vLLM writes


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
    """Return the settings without a file that vLLM does not read."""
    found = vllm_images.with_images(settings)
    if found.get(TIMELINE):  # the page of the run stands for it
        name = Path(found.get("result_filename") or "vllm.json")
        found.setdefault("html", str(Path(found.get("result_dir") or "") / name.with_suffix(TIMELINE_ENDING)))
    if (
        found.get("dataset_name", "random") == "random"
        and found.pop("dataset_path", None)
        and not found.get("workload")
    ):
        say("--dataset-path has no effect on random prompts, as in vLLM")
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
    say(f"--tokenizer-mode {value} has no effect: {path} is used")
    return {}


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
    ToolFlag("--output-len", _output_len, type_=integer),
    ToolFlag("--logprobs", _logprobs, type_=integer),
    ToolFlag("--tokenizer-mode", _tokenizer_mode),
    *(switch(name, {SKIPPED: True}) for name in ("--skip-chat-template", "--custom-skip-chat-template")),
    refused(
        "--chat-template-kwargs",
        "the template's variables are fields of the body",
        "use --extra-body '{\"chat_template_kwargs\": {...}}'",
    ),
    switch("--plot-timeline", {TIMELINE: True}, becomes=("html",)),
    switch("--timeline-itl-thresholds", {}, ONE),
    refused(
        "--plot-dataset-stats", "this plot is not available", "use `loadgen dataset`, which prints the lengths", NONE
    ),
    *(switch(name, {}) for name in NO_EFFECT),
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
