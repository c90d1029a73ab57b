"""llama.cpp's HTTP server from the package xllamacpp, with the flags of `llama-server`.

`python -m loadgen.engines.llamacpp_server --model FILE.gguf --port PORT [flags]` serves until
SIGINT or SIGTERM.
"""

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
NUMBERS = {  # fields of xllamacpp.CommonParams, and the flags that set them
    "n_batch": ("--batch-size", "-b"),
    "n_ubatch": ("--ubatch-size", "-ub"),
    "n_gpu_layers": ("--n-gpu-layers", "--gpu-layers", "-ngl"),
    "n_threads_http": ("--threads-http",),
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the supported flags; their names are those of `llama-server`."""
    # short: it stands in the log of one that fails
    usage = "%(prog)s --model FILE.gguf --port PORT [flags]"
    prog = "loadgen.engines.llamacpp_server"
    flags = argparse.ArgumentParser(prog, usage, description=__doc__, allow_abbrev=False)
    flags.add_argument("--model", "-m", required=True, help="path of a .gguf file")
    flags.add_argument("--alias", "-a", help="model name in requests")
    flags.add_argument("--host", default="127.0.0.1")
    flags.add_argument("--port", type=int, required=True)
    flags.add_argument("--threads", "-t", type=int)
    flags.add_argument(
        "--ctx-size", "-c", type=int, dest="n_ctx", help="tokens of context, shared over the slots"
    )
    flags.add_argument("--parallel", "-np", type=int, dest="n_parallel", help="slots")
    for dest, names in NUMBERS.items():
        flags.add_argument(*names, type=int, dest=dest)
    flags.add_argument("--cache-type-k", "-ctk", metavar="TYPE")
    flags.add_argument("--cache-type-v", "-ctv", metavar="TYPE")
    flags.add_argument("--flash-attn", "-fa", choices=["on", "off", "auto"])
    flags.add_argument(
        "--reasoning-format", choices=["none", "auto", "deepseek", "deepseek-legacy"]
    )
    flags.add_argument("--embedding", "--embeddings", action="store_true")
    flags.add_argument(
        "--reranking", "--rerank", action="store_true", help="short for --embedding --pooling rank"
    )
    flags.add_argument("--pooling", choices=["none", "mean", "cls", "last", "rank"])
    flags.add_argument("--cache-prompt", action=argparse.BooleanOptionalAction)
    flags.add_argument(
        "--cache-ram", type=int, dest="cache_ram_mib", help="MiB of prompts kept in memory; 0: none"
    )
    flags.add_argument(
        "--slot-save-path", help="folder of saved slots; needed to erase a slot, too"
    )
    flags.add_argument("--warmup", action=argparse.BooleanOptionalAction)
    flags.add_argument("--metrics", action="store_const", const=True, dest="endpoint_metrics")
    return flags


def params(flags: argparse.Namespace, xllamacpp: ModuleType) -> Any:
    """Return the flags as xllamacpp.CommonParams; a flag that is not given keeps llama.cpp's
    default.

    Raises:
        SystemExit: The type of the cache is unknown.
    """
    result = xllamacpp.CommonParams()
    result.model.path, result.hostnames, result.port = flags.model, [flags.host], flags.port
    result.model_alias = {flags.alias or Path(flags.model).stem}
    plain = (
        "n_ctx",
        "n_parallel",
        *NUMBERS,
        "cache_prompt",
        "cache_ram_mib",
        "slot_save_path",
        "warmup",
    )
    for name in (*plain, "endpoint_metrics"):
        if (value := getattr(flags, name)) is not None:
            setattr(result, name, value)
    if flags.threads is not None:
        result.cpuparams.n_threads = flags.threads
    types = {
        name.removeprefix("GGML_TYPE_").lower(): kind
        for name, kind in xllamacpp.ggml_type.__members__.items()
    }
    for name in ("cache_type_k", "cache_type_v"):
        if (value := getattr(flags, name)) is not None:
            if value not in types:
                sys.exit(
                    f"error: --{name.replace('_', '-')}: unknown type {value!r}; use f16, bf16, "
                    "q8_0 or q4_0"
                )
            setattr(result, name, types[value])
    attention = xllamacpp.llama_flash_attn_type
    if flags.flash_attn is not None:
        word = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}[flags.flash_attn]
        result.flash_attn_type = attention[f"LLAMA_FLASH_ATTN_TYPE_{word}"]
    result.embedding = flags.embedding or flags.reranking
    if (pooling := "rank" if flags.reranking else flags.pooling) is not None:
        result.pooling_type = xllamacpp.llama_pooling_type[f"LLAMA_POOLING_TYPE_{pooling.upper()}"]
    if flags.reasoning_format is not None:
        word = flags.reasoning_format.replace("-", "_").upper()
        result.reasoning_format = xllamacpp.common_reasoning_format[
            f"COMMON_REASONING_FORMAT_{word}"
        ]
    return result


def main(argv: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    flags = parser().parse_args(argv)
    try:
        xllamacpp = importlib.import_module("xllamacpp")  # slow, and it has no types
    except ImportError:
        print(
            "error: xllamacpp is not installed; pip install xllamacpp, or put llama-server into "
            "PATH",
            file=sys.stderr,
        )
        return 2
    if not Path(flags.model).is_file():
        print(
            f"error: --model: {flags.model} is not a file; give the path of a .gguf file",
            file=sys.stderr,
        )
        return 2
    # Before the server starts its threads, which inherit the mask: else one of them could get the
    # signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        server = xllamacpp.Server(params(flags, xllamacpp))
    except RuntimeError as error:  # the server has printed the reason
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"listening on {server.listening_address}", flush=True)
    signal.sigwait(STOP_SIGNALS)
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
