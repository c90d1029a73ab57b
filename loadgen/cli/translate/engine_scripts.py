"""Scripts of engines: older releases of vLLM's benchmark of servers, the offline ones, and
SGLang's bench_serving.
"""

from collections.abc import Iterable

from loadgen.cli import compat
from loadgen.cli.translate.flag_table import Given, Tool, flags_of
from loadgen.cli.translate.translation import Translation

OLDER = "vllm-0.11"  # the oldest release whose defaults loadgen has
SERVING = flags_of("vllm-serving")
OFFLINE = flags_of("vllm-offline")


def serving(given: Given, result: Translation) -> None:
    """Translate a command of an older vLLM: today's flags are passed on."""
    others = [name for name in given if not any(flag.is_named(name) for flag in SERVING)]
    _pass_on(others, given, result, compat.NO_TOOL)
    for name in given:
        values = given.all(name)
        if name == "--dataset":
            result.put("--dataset-name", "sharegpt")
            result.put("--dataset-path", *values)
        elif name == "--best-of":
            result.body({"best_of": int(values[-1]) if values[-1].isdigit() else values[-1]})
        elif name == "--backend":
            result.put(name, *values)
    if (base := result.value("--base-url")).endswith("/v1"):
        result.put("--base-url", base.removesuffix("/v1"))
        result.put("--endpoint", f"/v1{result.value('--endpoint') or '/completions'}")
    if "bench" not in result.written:
        result.put("--compat", OLDER)
        result.differ("defaults", f"those of {OLDER}; scripts of older releases may differ")


def sglang(given: Given, result: Translation) -> None:
    """Translate a command of SGLang's bench_serving: --compat reads its flags."""
    _pass_on(given, given, result, compat.TOOLS["sglang"])
    result.put("--compat", "sglang")


def _pass_on(names: Iterable[str], given: Given, result: Translation, tool: compat.Tool) -> None:
    """Put flags as they are, abbreviated ones in full; say which of them `loadgen run` does not
    know, or refuses.
    """
    refused = {flag.name: flag for flag in tool.flags if flag.convert is None}
    for name in names:
        values = given.all(name)
        full = min((known for known in tool.names if known.startswith(name)), default="")
        if not full:
            result.block(f"{name}: not known of {result.title}, maybe of a fork")
        elif full in refused and values != [str(refused[full].no_op_value)]:
            result.block(f"{name}: {refused[full].reason}; {refused[full].remedy}")
        else:
            result.put(full, *values)


def offline(given: Given, result: Translation) -> None:
    """Translate a command that loads the model into its own process: the server is measured."""
    result.block(
        "an offline measurement: it loads the model into its own process and sends no HTTP "
        "request; here --engine vllm starts a server, and all requests are sent at once"
    )
    result.differ("offline", "the server's HTTP is part of what is measured")
    result.put("--engine", "vllm")
    known = [name for name in given if any(flag.is_named(name) for flag in OFFLINE)]
    others = [" ".join([name, *given.all(name)]) for name in given if name not in known]
    if others:
        result.put("--engine-arg", *others)
    if path := given.get("--dataset"):
        result.put("--dataset-path", path)
    if result.value("--dataset-path") and not result.value("--dataset-name"):
        result.put("--dataset-name", "sharegpt")
    if batch := given.get("--batch-size", "8" if "latency" in result.written else ""):
        result.put("--max-concurrency", batch)
        result.put("--num-prompts", f"{int(batch) * int(given.get('--num-iters', '30'))}")
    result.eos(ignored=True)
    result.save(file=given.get("--output-json"))


VLLM_SERVING = Tool(
    "vLLM",
    (
        *("vllm bench serve", "benchmark_serving.py", "vllm.benchmarks.serve"),
        "vllm.entrypoints.cli.main bench serve",
    ),
    SERVING,
    serving,
    passes_others=True,
)
VLLM_OFFLINE = Tool(
    "vLLM",
    (
        *("vllm bench throughput", "vllm bench latency"),
        *("benchmark_throughput.py", "benchmark_latency.py"),
    ),
    OFFLINE,
    offline,
    passes_others=True,
)
SGLANG = Tool(
    "SGLang", ("sglang.bench_serving", "bench_serving.py"), (), sglang, passes_others=True
)
