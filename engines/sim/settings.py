"""Settings of the simulator: how it serves and which fault it has, each field a flag; and its
command line.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from loadgen.config.option import (
    FINITE,
    FROM_0,
    FROM_1,
    Range,
    argument,
    check_options,
    flag,
    options,
    options_about,
)
from loadgen.engines.sim.deployment import COSTS, PROFILES, profile_settings
from loadgen.engines.sim.scheduler import Limits, StepCosts
from loadgen.errors import FLAGS, BadInput, spelled
from loadgen.util.argument_parser import OneLineParser

sim_option = options_about("")
cost = partial(sim_option, range=FROM_0)  # a time that a step or a request takes


def add(parser: argparse.ArgumentParser, settings: type, title: str) -> None:
    """Add a flag for every field of a settings class; the parsed result has only the flags that
    were given.
    """
    group = parser.add_argument_group(title)
    for declared in options(settings).values():
        default = declared.default
        form: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
        if not isinstance(default, bool):
            form = argument(declared) | {"metavar": type(default).__name__.upper()}
        text = declared.help.replace("%", "%%")
        group.add_argument(
            *filter(None, (flag(declared.name), declared.alias)),
            **form,
            default=argparse.SUPPRESS,
            help=f"{text} ({default})" if default != "" else text,
        )


def given(flags: argparse.Namespace, settings: type) -> dict[str, Any]:
    """Return the fields of a settings class that were given on the command line."""
    return {name: getattr(flags, name) for name in options(settings) if name in flags}


PRIORITY = "priority"
# Settings of GPUs and models, which only a profile has.
NEEDS_PROFILE = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "quantization",
    "kv_cache_dtype",
    "gpu_memory_utilization",
)


@dataclass(frozen=True, kw_only=True)
class SimSettings:
    """How the simulated engine serves; settings that vLLM has too have its names.

    The defaults describe a large, fast deployment that sustains 1,000 requests/s of 1,024-token
    prompts and 128-token answers at half its capacity. A profile has other defaults, which `of`
    applies.

    Raises:
        BadInput: A value is out of range, or two contradict each other.
    """

    host: str = sim_option("127.0.0.1", "address to listen on")
    port: int = sim_option(
        8000, "port to listen on; 0 takes a free one", range=Range("0 to 65535", 0, 65535)
    )
    served_model_name: str = sim_option("sim", "model name that requests must use")
    lora_modules: str = sim_option(
        "", "names of LoRA adapters that requests may use in its place, with commas"
    )
    seed: int = sim_option(0, "seed of the answers' words and lengths, and of the noise")
    noise_seed: int = sim_option(
        0, "added to --seed for the noise alone; a study gives each start another one"
    )

    profile: str = sim_option(
        "", f"GPU and model whose costs and sizes are simulated: {', '.join(PROFILES)}"
    )
    tensor_parallel_size: int = sim_option(
        1, "GPUs of the profile that share each layer", range=FROM_1, alias="-tp"
    )
    pipeline_parallel_size: int = sim_option(
        1, "groups of its layers, each on its own GPUs", range=FROM_1, alias="-pp"
    )
    data_parallel_size: int = sim_option(
        1, "engine cores of this server, each with these settings", range=FROM_1, alias="-dp"
    )
    quantization: Literal["", "fp8", "awq", "gptq"] = sim_option(
        "", "format of its weights: fp8, awq or gptq", alias="-q"
    )
    kv_cache_dtype: Literal["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"] = sim_option(
        "auto", "type of its KV cache"
    )
    gpu_memory_utilization: float = sim_option(
        0.9, "share of its GPUs' memory that is used", range=Range("0.01 to 1.0", 0.01, 1.0)
    )

    max_model_len: int = sim_option(
        65536, "maximum tokens of prompt and answer together", range=Range("2 or more", 2, FINITE)
    )
    max_num_seqs: int = sim_option(4096, "maximum sequences running at once", range=FROM_1)
    scheduling_policy: Literal["fcfs", "priority"] = sim_option(
        "fcfs", "order of waiting requests: fcfs, or by the field priority, a lower number earlier"
    )
    max_num_batched_tokens: int = sim_option(
        32768, "maximum tokens computed in one step", range=FROM_1
    )
    num_kv_tokens: int = sim_option(4194304, "tokens of KV cache", range=FROM_1)
    enable_chunked_prefill: bool = sim_option(
        True, "compute long prompts in chunks, between decodes"
    )
    enable_prefix_caching: bool = sim_option(
        False, "keep the KV cache of prompts, and reuse common prefixes"
    )

    enable_per_request_metrics: bool = sim_option(
        False, "say the times of each answer beside its token counts, as vLLM does"
    )

    step_base_ms: float = sim_option(
        8.0, "time of an engine step without work", range=Range("0.001 or more", 0.001, FINITE)
    )
    weights_ms: float = cost(0.0, "minimum time of a step's matrix products: reading the weights")
    matmul_us_per_token: float = cost(
        0.0, "time of matrix products for each token, if that is longer"
    )
    prefill_us_per_token: float = cost(0.1, "additional step time for each prompt token")
    decode_us_per_seq: float = cost(0.5, "additional step time for each decoding sequence")
    kv_ns_per_token: float = cost(
        0.0, "additional step time for each token of KV cache that it reads"
    )
    attention_ns_per_pair: float = cost(
        0.0, "additional step time for each prompt token and token before it"
    )
    frontend_ms: float = cost(12.0, "time from a request's arrival until the scheduler sees it")
    noise: float = sim_option(
        0.0, "relative standard deviation of a step's time", range=Range("0 to 1", 0, 1)
    )
    start_noise: float = sim_option(
        0.0, "the same for all steps together, drawn once for a start", range=Range("0 to 1", 0, 1)
    )
    startup_s: float = cost(0.0, "time from the start of the process until it listens")

    mean_answer_tokens: float = sim_option(
        0.0,
        "mean of the geometric length at which answers end by themselves, unless ignore_eos; 0: "
        "at max_tokens",
        range=FROM_0,
    )
    reasoning_tokens: int = sim_option(
        0, "tokens at the start of each answer that are reasoning", range=FROM_0
    )
    tokens_per_event: int = sim_option(
        1, "tokens in one event of a stream", range=Range("1 to 4096", 1, 4096)
    )
    image_tokens: int = sim_option(256, "tokens of each image of a prompt", range=FROM_0)
    chat_template_tokens: int = sim_option(
        0, "tokens that a chat template adds to each prompt", range=FROM_0
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise BadInput(
                "--max-num-batched-tokens",
                f"{self.max_num_batched_tokens} is less than --max-num-seqs {self.max_num_seqs}",
                "raise it, or lower --max-num-seqs: each running sequence takes a token of every "
                "step",
            )
        if not self.enable_chunked_prefill and self.max_num_batched_tokens < self.max_model_len:
            raise BadInput(
                "--max-num-batched-tokens",
                f"{self.max_num_batched_tokens} is less than --max-model-len {self.max_model_len}",
                "raise it, lower --max-model-len, or allow --enable-chunked-prefill: a prompt "
                "must fit into one step",
            )
        if self.num_kv_tokens < self.max_model_len:
            raise BadInput(
                "--num-kv-tokens",
                f"{self.num_kv_tokens} is less than --max-model-len {self.max_model_len}",
                "raise it, or lower --max-model-len: one sequence of full length must fit",
            )

    @classmethod
    def of(cls, **given: Any) -> "SimSettings":
        """Return the given settings, with the profile's values for the others.

        Raises:
            BadInput: A value is invalid, or has no effect.
            StartFailed: The profile's model does not fit into its GPUs' memory.
        """
        plain = cls(**{name: given[name] for name in ("profile", *NEEDS_PROFILE) if name in given})
        if plain.profile:
            return cls(**(profile_settings(asdict(plain), given) | given))
        default = cls()
        for name in NEEDS_PROFILE:
            if getattr(plain, name) != getattr(default, name):
                raise BadInput(
                    flag(name), "it has no effect without a profile", "give --profile too"
                )
        return cls(**given)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The names that requests may use: the model, then its adapters."""
        return self.served_model_name, *filter(None, self.lora_modules.split(","))

    @property
    def limits(self) -> Limits:
        """The scheduler's limits."""
        return Limits(
            self.max_num_seqs,
            self.max_num_batched_tokens,
            self.num_kv_tokens,
            self.enable_chunked_prefill,
        )

    @property
    def costs(self) -> StepCosts:
        """The coefficients of the cost model, ns."""
        costs = COSTS.items()
        return StepCosts(
            **{coefficient: getattr(self, name) * unit_ns for name, (coefficient, unit_ns) in costs}
        )


HANG = "hang"
UNAVAILABLE = "unavailable"
# Messages of vLLM and its libraries; the keys are kinds of `loadgen.engines.launch.crash_cause`.
CRASHES = {
    "oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
    "total capacity of 79.11 GiB of which 1.02 GiB is free.",
    "oom_kv": "ValueError: No available memory for the cache blocks. Try increasing "
    "`gpu_memory_utilization` when initializing the engine.",
    "leaked_memory": "ValueError: Free memory on device (20.11/79.11 GiB) on startup is less than "
    "desired GPU memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU "
    "memory used by other processes.",
    "bad_checkpoint": "KeyError: 'layers.0.mlp.down_proj.weight'",
    "model_missing": "OSError: nowhere/model is not a local folder and is not a valid model "
    "identifier",
    "unsupported_hw": "RuntimeError: Unsupported SM version for FP8 block scaling GEMM",
    "unsupported_combo": "ValueError: Selected backend AttentionBackendEnum.CUTLASS_MLA is not "
    "valid for this configuration. Reason: ['head_size not supported']",
    "distributed": "RuntimeError: NCCL error: unhandled system error",
    "killed": "Worker proc VllmWorker-0 died unexpectedly, shutting down executor.",
}


@dataclass(frozen=True, kw_only=True)
class Faults:
    """The fault and when it occurs; by default there is none.

    Raises:
        BadInput: The fault is neither a known name nor a file.
    """

    fault: str = sim_option(
        "",
        f"the fault: {HANG} (healthy, but no more tokens), {UNAVAILABLE} (503 for ever), a crash "
        f"({', '.join(CRASHES)}), or the path of a file with the output of a crash",
    )
    fault_after: int = sim_option(
        0, "number of requests before the fault, the readiness check included", range=FROM_0
    )
    max_concurrent_requests: int = sim_option(
        0,
        "requests that it works on at once; a further one is refused with status 429 (0: no limit)",
        range=FROM_0,
    )
    retry_after_s: int = sim_option(1, "Retry-After of these refusals (0: none)", range=FROM_0)
    early_health: bool = sim_option(
        False, "listen and be healthy already during --startup-s, and refuse prompts with 503"
    )
    pause_every_s: float = sim_option(
        0.0, "time from one pause of the engine to the next (0: none)", range=FROM_0
    )
    pause_ms: float = sim_option(100.0, "how long such a pause lasts", range=FROM_0)
    freeze_every_s: float = sim_option(
        0.0, "time from one freeze of a single stream to the next (0: none)", range=FROM_0
    )
    freeze_ms: float = sim_option(
        100.0, "how long it is held back, as by a proxy; then all of it comes at once", range=FROM_0
    )
    early_headers: bool = sim_option(
        False, "send the headers of a stream after --frontend-ms, not with its first token"
    )
    orphan: bool = sim_option(False, "start a process in its own session, and leave it behind")
    ignore_sigterm: bool = sim_option(False, "ignore SIGTERM")

    def __post_init__(self) -> None:
        check_options(self)
        if self.fault and self.crash is None and self.fault not in (HANG, UNAVAILABLE):
            names = ", ".join((HANG, UNAVAILABLE, *CRASHES))
            raise BadInput(
                "--fault", f"unknown fault {self.fault!r}", f"use one of {names}, or name a file"
            )

    @property
    def crash(self) -> str | None:
        """Output of the crash; None if the fault is not a crash."""
        if self.fault in CRASHES:
            return log_of(CRASHES[self.fault])
        path = Path(self.fault)
        return path.read_text(errors="replace") if self.fault and path.is_file() else None


def log_of(cause: str) -> str:
    """Return the end of vLLM's log after an exception in its engine core: the cause, then its
    wrapper.
    """
    core = "(EngineCore_DP0 pid=2) ERROR 01-01 00:00:00 [core.py:708]"
    server = "(APIServer pid=1)"
    return (
        f"{core} EngineCore failed to start.\n{core} Traceback (maximum recent call "
        f"last):\n{core} {cause}\n"
        f"{server} RuntimeError: Engine core initialization failed. See root cause above. Failed "
        f"core proc(s): {{}}\n"
    )


def parser(*, add_help: bool = True) -> OneLineParser:
    """Return the parser of the simulator's command line.

    Args:
        add_help: Whether it has --help, which prints the flags and ends the program.
    """
    about = "Serve a simulated engine with the model name MODEL."
    result = OneLineParser("python -m loadgen.engines.sim", description=about, add_help=add_help)
    result.add_argument(
        "model", nargs="?", metavar="MODEL", help="any name; the model name in requests (sim)"
    )
    add(result, SimSettings, "settings; flags that vLLM has too have its names")
    add(result, Faults, "faults, to test programs that start servers")
    return result


def read(
    words: Sequence[str] | None, defaults: Mapping[str, Any] | None = None, *, add_help: bool = True
) -> tuple[SimSettings, Faults]:
    """Return the settings and the faults of a command line.

    Args:
        words: The words after the program; None: those of this process.
        defaults: Settings that the words override.
        add_help: As in `parser`.

    Raises:
        BadInput: A flag is unknown, or a value is invalid or has no effect.
        StartFailed: The model of its profile does not fit into the GPUs.
    """
    with spelled(FLAGS):
        flags = parser(add_help=add_help).parse_args(words)
        named = {"served_model_name": flags.model} if flags.model is not None else {}
        settings = SimSettings.of(**(named | dict(defaults or {}) | given(flags, SimSettings)))
        return settings, Faults(**given(flags, Faults))
