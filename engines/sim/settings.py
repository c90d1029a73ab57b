"""Settings of the simulator: one frozen object; every field is a flag."""

from dataclasses import asdict, dataclass
from typing import Any

from loadgen.engines.sim import profiles
from loadgen.engines.sim.flags import check, flag, setting
from loadgen.engines.sim.scheduler import Limits, StepCosts
from loadgen.errors import BadInput

POLICIES = FCFS, PRIORITY = ("fcfs", "priority")
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

    The defaults describe a large, fast deployment that sustains 1,000 requests/s of 1,024-token prompts and 128-token
    answers at half its capacity. A profile has other defaults, which `of` applies.

    Raises:
        BadInput: A value is out of range, or two contradict each other.
    """

    host: str = setting("127.0.0.1", "address to listen on")
    port: int = setting(8000, "port to listen on; 0 takes a free one", minimum=0, maximum=65535)
    served_model_name: str = setting("sim", "model name that requests must use")
    lora_modules: str = setting("", "names of LoRA adapters that requests may use in its place, with commas")
    seed: int = setting(0, "seed of the answers' words and lengths, and of the noise")
    noise_seed: int = setting(0, "added to --seed for the noise alone; a study gives each start another one")

    profile: str = setting("", f"GPU and model whose costs and sizes are simulated: {', '.join(profiles.PROFILES)}")
    tensor_parallel_size: int = setting(1, "GPUs of the profile that share each layer", minimum=1, short="-tp")
    pipeline_parallel_size: int = setting(1, "groups of its layers, each on its own GPUs", minimum=1, short="-pp")
    data_parallel_size: int = setting(
        1, "engine cores of this server, each with these settings", minimum=1, short="-dp"
    )
    quantization: str = setting(
        "", "format of its weights: fp8, awq or gptq", choices=tuple(profiles.FORMATS), short="-q"
    )
    kv_cache_dtype: str = setting("auto", "type of its KV cache", choices=tuple(profiles.KV_BYTES))
    gpu_memory_utilization: float = setting(0.9, "share of its GPUs' memory that is used", minimum=0.01, maximum=1.0)

    max_model_len: int = setting(65536, "maximum tokens of prompt and answer together", minimum=2)
    max_num_seqs: int = setting(4096, "maximum sequences running at once", minimum=1)
    scheduling_policy: str = setting(
        "fcfs",
        "order of waiting requests: fcfs, or by the field priority, a lower number earlier",
        choices=POLICIES,
    )
    max_num_batched_tokens: int = setting(32768, "maximum tokens computed in one step", minimum=1)
    num_kv_tokens: int = setting(4194304, "tokens of KV cache", minimum=1)
    enable_chunked_prefill: bool = setting(True, "compute long prompts in chunks, between decodes")
    enable_prefix_caching: bool = setting(False, "keep the KV cache of prompts, and reuse common prefixes")

    step_base_ms: float = setting(8.0, "time of an engine step without work", minimum=0.001)
    weights_ms: float = setting(0.0, "minimum time of a step's matrix products: reading the weights", minimum=0)
    matmul_us_per_token: float = setting(0.0, "time of matrix products for each token, if that is longer", minimum=0)
    prefill_us_per_token: float = setting(0.1, "additional step time for each prompt token", minimum=0)
    decode_us_per_seq: float = setting(0.5, "additional step time for each decoding sequence", minimum=0)
    kv_ns_per_token: float = setting(0.0, "additional step time for each token of KV cache that it reads", minimum=0)
    attention_ns_per_pair: float = setting(
        0.0, "additional step time for each prompt token and token before it", minimum=0
    )
    frontend_ms: float = setting(12.0, "time from a request's arrival until the scheduler sees it", minimum=0)
    noise: float = setting(0.0, "relative standard deviation of a step's time", minimum=0, maximum=1)
    start_noise: float = setting(0.0, "the same for all steps together, drawn once for a start", minimum=0, maximum=1)
    startup_s: float = setting(0.0, "time from the start of the process until it listens", minimum=0)

    mean_answer_tokens: float = setting(
        0.0,
        "mean of the geometric length at which answers end by themselves, unless ignore_eos; 0: at max_tokens",
        minimum=0,
    )
    reasoning_tokens: int = setting(0, "tokens at the start of each answer that are reasoning", minimum=0)
    tokens_per_event: int = setting(1, "tokens in one event of a stream", minimum=1, maximum=4096)
    image_tokens: int = setting(256, "tokens of each image of a prompt", minimum=0)
    chat_template_tokens: int = setting(0, "tokens that a chat template adds to each prompt", minimum=0)

    def __post_init__(self) -> None:
        check(self)
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise BadInput(
                "--max-num-batched-tokens",
                f"{self.max_num_batched_tokens} is less than --max-num-seqs {self.max_num_seqs}",
                "raise it, or lower --max-num-seqs: each running sequence takes a token of every step",
            )
        if not self.enable_chunked_prefill and self.max_num_batched_tokens < self.max_model_len:
            raise BadInput(
                "--max-num-batched-tokens",
                f"{self.max_num_batched_tokens} is less than --max-model-len {self.max_model_len}",
                "raise it, lower --max-model-len, or allow --enable-chunked-prefill: a prompt must fit into one step",
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
            return cls(**(profiles.profile_settings(asdict(plain), given) | given))
        default = cls()
        for name in NEEDS_PROFILE:
            if getattr(plain, name) != getattr(default, name):
                raise BadInput(flag(name), "it has no effect without a profile", "give --profile too")
        return cls(**given)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The names that requests may use: the model, then its adapters."""
        return self.served_model_name, *filter(None, self.lora_modules.split(","))

    @property
    def limits(self) -> Limits:
        """The scheduler's limits."""
        return Limits(self.max_num_seqs, self.max_num_batched_tokens, self.num_kv_tokens, self.enable_chunked_prefill)

    @property
    def costs(self) -> StepCosts:
        """The coefficients of the cost model, ns."""
        costs = profiles.COSTS.items()
        return StepCosts(**{coefficient: getattr(self, name) * unit_ns for name, (coefficient, unit_ns) in costs})
