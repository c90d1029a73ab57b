"""TensorRT-LLM: flags for some knobs, a YAML file for others; the file overrides the flags
without a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.engines.kinds.engine import CommandEngine, Engine, Place, Probes
from loadgen.engines.kinds.flag_syntax import is_flag
from loadgen.engines.kinds.knob_forms import (
    CommandParts,
    ConfigEntry,
    Flag,
    Switch,
    plain_flags,
    tensor_parallel_size,
)
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import parse_speculation
from loadgen.errors import BadInput

CONFIG = "--extra_llm_api_options"
METHODS = {"mtp": "MTP", "eagle3": "Eagle", "ngram": "NGram", "draft_model": "DraftTarget"}


def _attention_dp(copies: int, knobs: Mapping[str, Any]) -> bool | None:
    """Return whether attention is copied to every accelerator of the tensor-parallel group; it
    is all or none.
    """
    width = knobs.get("tensor_parallel", 1)
    if copies not in (1, width):
        raise BadInput(
            "attention_data_parallel",
            f"{copies} copies in a group of {width}",
            f"give 1 or tensor_parallel's {width}",
        )
    return True if copies > 1 else None


def _speculative(value: Mapping[str, Any], knobs: Mapping[str, Any]) -> dict[str, Any]:
    draft = parse_speculation(value, METHODS)
    count = "num_nextn_predict_layers" if draft.method == "MTP" else "max_draft_len"
    model = {} if draft.model is None else {"speculative_model_dir": draft.model}
    return {"decoding_type": draft.method, count: draft.tokens, **model}


# All supported releases have the short names; the long ones came with 1.2.
TABLE = KnobTable(
    "trtllm",
    {
        **plain_flags({"host": "--host", "port": "--port"}),
        "tensor_parallel": (
            Flag("--tp_size", ("--tensor_parallel_size",), key=("tensor_parallel_size",)),
        ),
        "pipeline_parallel": (
            Flag("--pp_size", ("--pipeline_parallel_size",), key=("pipeline_parallel_size",)),
        ),
        "attention_data_parallel": (
            ConfigEntry(
                ("enable_attention_dp",),
                convert=_attention_dp,
                note="true where it is tensor_parallel's size",
            ),
        ),
        "expert_parallel": (
            Flag(
                "--ep_size",
                ("--moe_expert_parallel_size",),
                key=("moe_expert_parallel_size",),
                convert=tensor_parallel_size,
                note="the size of tensor_parallel",
            ),
        ),
        "context_len": (Flag("--max_seq_len", key=("max_seq_len",)),),
        "max_batched_tokens": (Flag("--max_num_tokens", key=("max_num_tokens",)),),
        "max_seqs": (Flag("--max_batch_size", key=("max_batch_size",)),),
        "chunked_prefill": (
            Switch(("--enable_chunked_prefill",), key=("enable_chunked_prefill",)),
        ),
        "prefix_cache": (ConfigEntry(("kv_cache_config", "enable_block_reuse")),),
        "kv_dtype": (ConfigEntry(("kv_cache_config", "dtype")),),
        "attention_backend": (ConfigEntry(("attn_backend",)),),
        "speculative": (ConfigEntry(("speculative_config",), convert=_speculative),),
        # In the file, since the file's kv_cache_config takes the place of what the flag says.
        "memory_fraction": (
            ConfigEntry(
                ("kv_cache_config", "free_gpu_memory_fraction"),
                {"--kv_cache_free_gpu_memory_fraction": ("--free_gpu_memory_fraction",)},
                note="of the memory that is free once the model is loaded",
            ),
        ),
        "reasoning_parser": (Flag("--reasoning_parser", key=("reasoning_parser",)),),
    },
    nearest={
        "served_name": "the model itself: requests name it, or the last part of its folder",
        "data_parallel": "attention_data_parallel, or several servers",
        "quantization": "a checkpoint that is quantized: name it as the model",
    },
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorRTLLM(CommandEngine):
    """`trtllm-serve`, with a configuration file if knobs need one."""

    def configure(
        self, user: CommandParts, knobs: Mapping[str, Any], raw: Sequence[str], place: Place
    ) -> tuple[tuple[str, ...], dict[Path, str]]:
        """Return the user's flags and the configuration file: the knobs' entries merged with the
        user's own file.

        Raises:
            BadInput: The user's file cannot be read, or sets the same thing as a knob or a flag.
        """
        words, theirs = _split(raw)
        config = _read(theirs) if theirs is not None else {}
        for name in knobs:
            for form in self.table.forms[name]:
                path = form.path if isinstance(form, ConfigEntry) else getattr(form, "key", ())
                if path and _has(config, path):
                    raise BadInput(
                        CONFIG,
                        f"the file and the knob {name} both set {'.'.join(path)}",
                        "set it once",
                    )
        if (
            "kv_cache_config" in config
            or any(path[0] == "kv_cache_config" for path in user.entries)
        ) and ("--kv_cache_free_gpu_memory_fraction" in self.table.raw_flags(words)):
            remedy = (
                "give memory_fraction or the entry kv_cache_config.free_gpu_memory_fraction instead"
            )
            raise BadInput(
                "--kv_cache_free_gpu_memory_fraction",
                "the file's kv_cache_config would override it",
                remedy,
            )
        if not user.entries:
            return tuple(raw), {}
        for path, value in user.entries.items():
            mapping = config
            for key in path[:-1]:
                mapping = mapping.setdefault(key, {})
                if not isinstance(mapping, dict):
                    raise BadInput(CONFIG, f"{key} is not a mapping", "write it as keys and values")
            mapping[path[-1]] = value
        import yaml

        target = place.folder / "extra_llm_api_options.yaml"
        return (*words, CONFIG, str(target)), {target: str(yaml.safe_dump(config, sort_keys=True))}


def _split(raw: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """Return the user's flags without the configuration file, and the path of that file."""
    words: list[str] = []
    path: str | None = None
    rest = iter(raw)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in (CONFIG, "--config"):
            words.append(word)
            continue
        value = value if equals else next(rest, "")
        if path is not None or not value or is_flag(value):
            raise BadInput(
                name,
                "it names no file, or a second file",
                "give it once, with the path of a YAML file",
            )
        path = value
    return tuple(words), path


def _read(path: str) -> dict[str, Any]:
    import yaml  # slow to import, and only here

    try:
        content = yaml.safe_load(Path(path).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(
            CONFIG, f"{path} cannot be read as YAML ({type(error).__name__})", "give a YAML file"
        ) from error
    if not isinstance(content, dict | None):
        raise BadInput(CONFIG, f"{path} is not a mapping", "write keys and values")
    return content or {}


def _has(config: Mapping[str, Any], path: Sequence[str]) -> bool:
    for key in path:
        if not isinstance(config, Mapping) or key not in config:
            return False
        config = config[key]
    return True


engine: Engine = TensorRTLLM(
    name="trtllm",
    head=("trtllm-serve",),
    table=TABLE,
    # Its /metrics is JSON of iterations, and reading it empties it.
    probes=Probes(health="/health_generate", version="/version"),
    packages=("tensorrt-llm",),
    env={"TRTLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
)
