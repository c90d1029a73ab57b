"""Deployment: step costs and KV cache of a model on GPUs, and the profiles that have both.

EQUATIONS.md has the equations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.engines.sim.scheduler import StepCosts
from loadgen.errors import BadInput, EngineError

GIB = 2**30
# Assumptions: the share of the hardware's peak that a good engine reaches, and its overheads.
COMPUTE_SHARE = 0.6  # of the peak FLOP/s, in matrix products
BANDWIDTH_SHARE = 0.8  # of the memory's bandwidth
LINK_SHARE = 0.7  # of one direction of the links between GPUs
STEP_S = 1e-3  # scheduling and launching, for each batch
SEQUENCE_S = 5e-6  # sampling and putting out one token
ALL_REDUCE_S = 8e-6  # latency of one, before its first byte moves
RUNTIME_BYTES = 1.5 * GIB  # the driver's context, graphs, buffers of collectives
LOAD_BYTES_PER_S = 3e9  # weights, from disk to one GPU
STARTUP_S = 20.0  # imports, compiling, capturing graphs
BF16_BYTES = 2  # also of what flows between layers


class StartFailed(EngineError):
    """A deployment that cannot start; the message is the last line that vLLM would log."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """An accelerator, by its data sheet.

    Attributes:
        flops: Peak FLOP/s in bfloat16, dense.
        flops_fp8: Peak FLOP/s in 8-bit floats; 0: not supported, bfloat16 is used.
        bytes_per_s: Memory bandwidth.
        memory_bytes: Size of the memory.
        link_bytes_per_s: Bandwidth to the other GPUs of the machine, one direction.
        max_num_seqs: vLLM's default on this GPU.
        max_num_batched_tokens: vLLM's default on this GPU.
    """

    flops: float
    flops_fp8: float
    bytes_per_s: float
    memory_bytes: float
    link_bytes_per_s: float
    max_num_seqs: int
    max_num_batched_tokens: int


@dataclass(frozen=True, slots=True)
class Model:
    """A dense decoder with grouped-query attention and a gated feed-forward network, by its
    published configuration.

    Attributes:
        layers: Number of layers, each with attention and a feed-forward network.
        hidden: Width between layers.
        heads: Number of attention heads.
        kv_heads: Number of key-value heads.
        head_dim: Width of each head.
        intermediate: Width inside the feed-forward network.
        vocabulary: Number of tokens; embedding and output layer are two matrices of hidden times
            vocabulary.
        context: Maximum tokens of prompt and answer together.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    context: int

    @property
    def layer_parameters(self) -> int:
        """Number of parameters in the layers."""
        attention = 2 * self.hidden * (self.heads + self.kv_heads) * self.head_dim
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def output_parameters(self) -> int:
        """Number of parameters of the output layer; the embedding has as many."""
        return self.hidden * self.vocabulary


@dataclass(frozen=True, slots=True)
class Format:
    """Storage format of the layers' weights.

    Attributes:
        bytes: Bytes of one parameter, with its share of the scales.
        fp8: Whether products are computed in 8-bit floats if the GPU supports them.
    """

    bytes: float
    fp8: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A model on GPUs.

    Attributes:
        gpu: The kind of GPU.
        model: The model.
        weights: Format of the layers' weights; embedding and output layer stay in bfloat16.
        kv_bytes: Bytes of one element of the KV cache.
        tensor_parallel: GPUs that share each layer.
        pipeline_parallel: Groups of layers, each on its own GPUs.
        utilization: Share of a GPU's memory that may be used.

    Raises:
        BadInput: The model cannot be split into these parts.
    """

    gpu: Gpu
    model: Model
    weights: Format
    kv_bytes: float
    tensor_parallel: int
    pipeline_parallel: int
    utilization: float

    def __post_init__(self) -> None:
        for name, number, parts, what in (
            ("tensor", self.tensor_parallel, self.model.heads, "attention heads"),
            ("pipeline", self.pipeline_parallel, self.model.layers, "layers"),
        ):
            if parts % number:
                problem = f"{number} does not divide the model's {parts} {what}"
                raise BadInput(f"--{name}-parallel-size", problem, f"give a divisor of {parts}")

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights on one GPU."""
        model = self.model
        whole = (
            model.layer_parameters * self.weights.bytes + 2 * model.output_parameters * BF16_BYTES
        )
        return whole / (self.tensor_parallel * self.pipeline_parallel)

    @property
    def kv_token_bytes(self) -> float:
        """Bytes of one token's keys and values on one GPU, which holds at least one head."""
        heads = max(1.0, self.model.kv_heads / self.tensor_parallel)
        return (
            2
            * self.model.layers
            / self.pipeline_parallel
            * heads
            * self.model.head_dim
            * self.kv_bytes
        )

    @property
    def startup_s(self) -> float:
        """Time from the start of the process until it listens, s."""
        return STARTUP_S + self.weight_bytes / LOAD_BYTES_PER_S

    def step_costs(self) -> StepCosts:
        """Return the costs of an engine step: one batch, or one batch in each stage of a
        pipeline.
        """
        gpu = self.gpu
        model = self.model
        shared = self.tensor_parallel
        stages = self.pipeline_parallel
        compute = gpu.flops * COMPUTE_SHARE * shared
        layers = compute * (
            gpu.flops_fp8 / gpu.flops if self.weights.fp8 and gpu.flops_fp8 else 1.0
        )
        read = gpu.bytes_per_s * BANDWIDTH_SHARE
        collectives = 2 * model.layers if shared > 1 else 0
        moved = 2 * (shared - 1) / shared * model.hidden * BF16_BYTES
        exchange_s = collectives * moved / (gpu.link_bytes_per_s * LINK_SHARE) / stages
        once = (
            model.layer_parameters * self.weights.bytes + model.output_parameters * BF16_BYTES
        ) / shared
        return StepCosts(
            base_ns=(STEP_S * stages + collectives * ALL_REDUCE_S) * 1e9,
            prefill_ns_per_token=exchange_s * 1e9,
            decode_ns_per_seq=(exchange_s + SEQUENCE_S + 2 * model.output_parameters / compute)
            * 1e9,
            kv_ns_per_token=self.kv_token_bytes / read * 1e9,
            weights_ns=once / read * 1e9,
            matmul_ns_per_token=2 * model.layer_parameters / layers / stages * 1e9,
            attention_ns_per_pair=4
            * model.layers
            * model.heads
            * model.head_dim
            / compute
            / stages
            * 1e9,
        )

    def kv_tokens(self, max_num_batched_tokens: int, max_model_len: int) -> int:
        """Return how many tokens of KV cache fit into the memory.

        Args:
            max_num_batched_tokens: Tokens of one step, whose activations need memory too.
            max_model_len: Tokens of one sequence, which must fit.

        Raises:
            StartFailed: The weights or the cache of one sequence do not fit.
        """
        gpu = self.gpu
        model = self.model
        activations = (
            max_num_batched_tokens
            * (4 * model.hidden + 2 * model.intermediate / self.tensor_parallel)
            * BF16_BYTES
        )
        if self.weight_bytes + RUNTIME_BYTES > gpu.memory_bytes:
            tried = model.hidden * model.intermediate * self.weights.bytes / self.tensor_parallel
            raise StartFailed(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                f"{tried / 2**20:.2f} MiB. GPU 0 has a total capacity of "
                f"{gpu.memory_bytes / GIB:.2f} GiB of which {tried / 2**21:.2f} MiB is free."
            )
        free = gpu.memory_bytes * self.utilization - self.weight_bytes - RUNTIME_BYTES - activations
        if free <= 0:
            raise StartFailed(
                "ValueError: No available memory for the cache blocks. Try increasing "
                "`gpu_memory_utilization` when initializing the engine."
            )
        tokens = int(free / self.kv_token_bytes)
        if tokens < max_model_len:
            raise StartFailed(
                "ValueError: To serve at least one request with the models's max seq len "
                f"({max_model_len}), ({max_model_len * self.kv_token_bytes / GIB:.2f} GiB KV cache "
                f"is needed, which is larger than the available KV cache memory ({free / GIB:.2f} "
                "GiB). Based on the available memory, the estimated maximum model length is "
                f"{tokens}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` "
                "when initializing the engine."
            )
        return tokens


# Data sheets of NVIDIA's SXM modules, without sparsity; the last two numbers are vLLM's defaults
# for such a GPU.
GPUS = {
    "a100": Gpu(312e12, 0, 2.039e12, 80 * GIB, 300e9, 256, 2048),
    "h100": Gpu(989e12, 1979e12, 3.35e12, 80 * GIB, 450e9, 1024, 8192),
    "h200": Gpu(989e12, 1979e12, 4.8e12, 141 * GIB, 450e9, 1024, 8192),
}
# The config.json of each.
MODELS = {
    "qwen3-8b": Model(36, 4096, 32, 8, 128, 12288, 151936, 40960),
    "qwen3-14b": Model(40, 5120, 40, 8, 128, 17408, 151936, 40960),
    "qwen3-32b": Model(64, 5120, 64, 8, 128, 25600, 151936, 40960),
}
PROFILES = tuple(f"{gpu}-{model}" for gpu in GPUS for model in MODELS)
# Groups of 128 four-bit weights have a scale and a zero point of two bytes each.
FORMATS = {
    "": Format(2.0),
    "fp8": Format(1.0, fp8=True),
    "awq": Format(0.5 + 4 / 128),
    "gptq": Format(0.5 + 4 / 128),
}
KV_BYTES = {"auto": 2.0, "bfloat16": 2.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0}
# Settings that give the costs of a step: the coefficient of `StepCosts`, and how many ns the unit
# has.
COSTS = {
    "step_base_ms": ("base_ns", 1e6),
    "weights_ms": ("weights_ns", 1e6),
    "matmul_us_per_token": ("matmul_ns_per_token", 1e3),
    "prefill_us_per_token": ("prefill_ns_per_token", 1e3),
    "decode_us_per_seq": ("decode_ns_per_seq", 1e3),
    "kv_ns_per_token": ("kv_ns_per_token", 1),
    "attention_ns_per_pair": ("attention_ns_per_pair", 1),
}
FRONTEND_MS = 3.0  # assumed: parsing a request, applying the template, tokenizing


def deployment(settings: Mapping[str, Any]) -> Deployment:
    """Return the deployment of a profile and the settings that modify it.

    Raises:
        BadInput: The profile is unknown, or the model cannot be split as requested.
    """
    name = settings["profile"]
    if name not in PROFILES:
        raise BadInput(
            "--profile", f"unknown profile {name!r}", f"use one of {', '.join(PROFILES)}"
        )
    gpu, _, model = name.partition("-")
    return Deployment(
        gpu=GPUS[gpu],
        model=MODELS[model],
        weights=FORMATS[settings["quantization"]],
        kv_bytes=KV_BYTES[settings["kv_cache_dtype"]],
        tensor_parallel=settings["tensor_parallel_size"],
        pipeline_parallel=settings["pipeline_parallel_size"],
        utilization=settings["gpu_memory_utilization"],
    )


def profile_settings(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a profile determines.

    Args:
        settings: All settings, with the defaults without a profile.
        given: Settings that the user gave; a profile does not change them.

    Raises:
        BadInput: As `deployment`.
        StartFailed: The model does not fit into the GPUs' memory.
    """
    deployed = deployment(settings)
    gpu = deployed.gpu
    costs = deployed.step_costs()
    length = given.get("max_model_len", deployed.model.context)
    min_batch = length if given.get("enable_chunked_prefill") is False else 0
    seqs = given.get("max_num_seqs", gpu.max_num_seqs)
    batch = given.get("max_num_batched_tokens", max(gpu.max_num_batched_tokens, min_batch, seqs))
    determined = {
        "max_model_len": length,
        "max_num_seqs": seqs,
        "max_num_batched_tokens": batch,
        "enable_prefix_caching": True,
        **{
            name: getattr(costs, coefficient) / unit_ns
            for name, (coefficient, unit_ns) in COSTS.items()
        },
        "frontend_ms": FRONTEND_MS,
        "startup_s": deployed.startup_s,
    }
    if "num_kv_tokens" not in given:
        determined["num_kv_tokens"] = deployed.kv_tokens(batch, length)
    return determined
