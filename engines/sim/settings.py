"""The simulator's knobs: one frozen object, every field of which is a flag."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from loadgen.engines.sim import profiles
from loadgen.engines.sim.flags import check, flag, knob
from loadgen.engines.sim.scheduler import Limits, StepCosts
from loadgen.errors import BadInput

# What is said of GPUs and models that only a profile knows.
NEEDS_PROFILE = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "quantization",
    "kv_cache_dtype",
    "gpu_memory_utilization",
)


@dataclass(frozen=True, kw_only=True)
class SimSettings:
    """How the simulated engine serves; names are vLLM's where it has the knob.

    The defaults describe a large, fast deployment that sustains 1,000 requests/s of 1,024-token prompts and 128-token
    answers at half its capacity; a profile has others, see `of`.

    Raises:
        BadInput: A value is out of range, or two contradict each other.
    """

    host: str = knob("127.0.0.1", "address to listen on")
    port: int = knob(8000, "port to listen on; 0 takes a free one", least=0, most=65535)
    served_model_name: str = knob("sim", "model name that requests must use")
    seed: int = knob(0, "seed of the answers' words and lengths, and of the noise")

    profile: str = knob("", f"GPU and model whose costs and sizes are simulated: {', '.join(profiles.PROFILES)}")
    tensor_parallel_size: int = knob(1, "GPUs of the profile that share each layer", least=1, short="-tp")
    pipeline_parallel_size: int = knob(1, "groups of its layers, each on GPUs of its own", least=1, short="-pp")
    data_parallel_size: int = knob(
        1, "engine cores behind this server, each as the other flags say", least=1, short="-dp"
    )
    quantization: str = knob("", "of its weights: fp8, awq or gptq", choices=tuple(profiles.FORMATS), short="-q")
    kv_cache_dtype: str = knob("auto", "type of its KV cache", choices=tuple(profiles.KV_BYTES))
    gpu_memory_utilization: float = knob(0.9, "share of its GPUs' memory that is used", least=0.01, most=1.0)

    max_model_len: int = knob(65536, "most tokens of prompt and answer together", least=2)
    max_num_seqs: int = knob(4096, "most sequences running at once", least=1)
    max_num_batched_tokens: int = knob(32768, "most tokens computed in one step", least=1)
    num_kv_tokens: int = knob(4194304, "tokens of KV cache", least=1)
    enable_chunked_prefill: bool = knob(True, "compute long prompts in pieces, between decodes")
    enable_prefix_caching: bool = knob(False, "keep the KV cache of prompts, and use common beginnings again")

    step_base_ms: float = knob(8.0, "time of an engine step without work", least=0.001)
    weights_ms: float = knob(0.0, "least time of a step's matrix products: reading the weights", least=0)
    matmul_us_per_token: float = knob(0.0, "their time for each token, where that is longer", least=0)
    prefill_us_per_token: float = knob(0.1, "time a step takes longer for each prompt token", least=0)
    decode_us_per_seq: float = knob(0.5, "time a step takes longer for each decoding sequence", least=0)
    kv_ns_per_token: float = knob(0.0, "time a step takes longer for each token of KV cache it reads", least=0)
    attention_ns_per_pair: float = knob(0.0, "the same for each prompt token and token before it", least=0)
    frontend_ms: float = knob(12.0, "time from a request's arrival until the scheduler sees it", least=0)
    noise: float = knob(0.0, "relative standard deviation of a step's time", least=0, most=1)
    start_noise: float = knob(0.0, "the same of all steps together, drawn once by --seed", least=0, most=1)
    startup_s: float = knob(0.0, "time from the start of the process until it listens", least=0)

    mean_answer_tokens: float = knob(
        0.0,
        "draw where answers end by themselves, geometric with this mean, unless ignore_eos; 0: at max_tokens",
        least=0,
    )
    reasoning_tokens: int = knob(0, "tokens of each answer that are streamed as reasoning", least=0)
    tokens_per_event: int = knob(1, "tokens that come in one event of a stream", least=1, most=4096)
    chat_template_tokens: int = knob(0, "tokens that a chat template adds to each prompt", least=0)

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
        """Return what is given, and of the rest what the profile decides.

        Raises:
            BadInput: A value is of no use, or would change nothing.
            StartFailed: The profile's model has no room in its GPUs' memory.
        """
        plain = cls(**{name: given[name] for name in ("profile", *NEEDS_PROFILE) if name in given})
        if plain.profile:
            return cls(**(profiles.decided(asdict(plain), given) | given))
        default = cls()
        for name in NEEDS_PROFILE:
            if getattr(plain, name) != getattr(default, name):
                raise BadInput(flag(name), "it changes nothing without a profile", "give --profile too")
        return cls(**given)

    @property
    def limits(self) -> Limits:
        """The scheduler's limits."""
        return Limits(self.max_num_seqs, self.max_num_batched_tokens, self.num_kv_tokens, self.enable_chunked_prefill)

    @property
    def costs(self) -> StepCosts:
        """The cost model, in ns."""
        return StepCosts(
            base_ns=self.step_base_ms * 1e6,
            prefill_ns_per_token=self.prefill_us_per_token * 1e3,
            decode_ns_per_seq=self.decode_us_per_seq * 1e3,
            kv_ns_per_token=self.kv_ns_per_token,
            weights_ns=self.weights_ms * 1e6,
            matmul_ns_per_token=self.matmul_us_per_token * 1e3,
            attention_ns_per_pair=self.attention_ns_per_pair,
        )

    def told(self) -> Mapping[str, Any]:
        """The settings by the names of their flags, with underscores."""
        return asdict(self)
