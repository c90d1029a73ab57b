"""MindIE configuration: config.json and environment variables from flags and a place, with the
rules for the flags.

The flags are those of the GPUStack project's back end for MindIE, as published benchmarks write
them: MindIE has no command-line flags of its own. Each one sets an entry of config.json, or a
variable.
"""

import copy
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.engines.kinds.engine import Place
from loadgen.engines.kinds.flag_syntax import FlagSyntax, compact_json
from loadgen.engines.kinds.knobs import KINDS
from loadgen.errors import BadInput

Path = tuple[str | int, ...]
BACKEND: Path = ("BackendConfig",)
DEPLOY: Path = (*BACKEND, "ModelDeployConfig")
MODEL: Path = (*DEPLOY, "ModelConfig", 0)
SCHEDULE: Path = (*BACKEND, "ScheduleConfig")
SERVER: Path = ("ServerConfig",)
# Flags that change the model's own files.
OF_MODEL = {
    "--dtype": "config.json",
    "--rope-scaling": "config.json",
    "--rope-theta": "config.json",
    "--override-generation-config": "generation_config.json",
}
SMALL_BATCH = 50  # up to here asynchronous scheduling is turned off
PLUGINS = {
    "mtp": "--enable-multi-token-prediction",
    "memory_decoding": "--enable-memory-decoding",
    "la": "--enable-lookahead",
    "splitfuse": "--enable-split",
    "prefix_cache": "--enable-prefix-caching",
}
GUESSING = {"memory_decoding", "la"}  # plugins that work with no other one
LOOKAHEAD = ("level", "window", "guess_set_size")
PARALLEL = ("tensor", "pipeline", "data", "context", "sequence", "moe-expert", "moe-tensor")


@dataclass(frozen=True, slots=True)
class Setting:
    """One flag and what it sets.

    Attributes:
        kind: Type of the value: int, float, str, dict (a JSON object) or bool, which is a pair of
            flags, the second with `--no-`.
        section: Keys of the part of config.json that has its entry.
        key: Key of its entry there; empty: it sets a variable, or several entries with other flags.
        default: The value if the flag is not given; None: the value of config.json or of another
            flag.
        minimum: Smallest number.
        maximum: Largest number.
        alias: Short name.
    """

    kind: type
    section: Path = ()
    key: str = ""
    default: Any = None
    minimum: float = 0
    maximum: float = 2**31 - 1
    alias: str = ""


SETTINGS: Mapping[str, Setting] = {
    "--log-level": Setting(str, ("LogConfig",), "logLevel"),
    "--max-link-num": Setting(int, SERVER, "maxLinkNum", 1000, 1, 1000),
    "--token-timeout": Setting(int, SERVER, "tokenTimeout", 600, 1, 3600),
    "--e2e-timeout": Setting(int, SERVER, "e2eTimeout", 600, 1, 65535),
    "--kv-pool-config": Setting(dict, BACKEND, "kvPoolConfig"),
    "--max-seq-len": Setting(int, DEPLOY, "maxSeqLen", 8192, 1),
    "--max-input-token-len": Setting(int, DEPLOY, "maxInputTokenLen", None, 1),
    "--truncation": Setting(bool, DEPLOY, "truncation", False),
    "--cpu-mem-size": Setting(int, MODEL, "cpuMemSize", 0),
    "--trust-remote-code": Setting(bool, MODEL, "trustRemoteCode", False),
    "--models": Setting(dict, MODEL, "models"),
    "--async-scheduler-wait-time": Setting(int, MODEL, "async_scheduler_wait_time", None, 1),
    "--npu-memory-fraction": Setting(float, default=0.8, minimum=0.01, maximum=1),
    "--cache-block-size": Setting(int, SCHEDULE, "cacheBlockSize", 128, 1, 128),
    "--max-prefill-batch-size": Setting(int, SCHEDULE, "maxPrefillBatchSize", None, 1),
    "--max-prefill-tokens": Setting(int, SCHEDULE, "maxPrefillTokens", None, 1),
    "--prefill-time-ms-per-req": Setting(int, SCHEDULE, "prefillTimeMsPerReq", 150),
    "--prefill-policy-type": Setting(int, SCHEDULE, "prefillPolicyType", 0, 0, 3),
    "--max-batch-size": Setting(int, SCHEDULE, "maxBatchSize", 200, 1, 5000),
    "--max-iter-times": Setting(int, SCHEDULE, "maxIterTimes", None, 1),
    "--decode-time-ms-per-req": Setting(int, SCHEDULE, "decodeTimeMsPerReq", 50),
    "--decode-policy-type": Setting(int, SCHEDULE, "decodePolicyType", 0, 0, 3),
    "--max-preempt-count": Setting(int, SCHEDULE, "maxPreemptCount", 0),
    "--support-select-batch": Setting(bool, SCHEDULE, "supportSelectBatch", False),
    "--max-queue-delay-microseconds": Setting(int, SCHEDULE, "maxQueueDelayMicroseconds", 5000, 1),
    "--max-first-token-wait-time": Setting(int, SCHEDULE, "maxFirstTokenWaitTime"),
    "--enable-buffer-response": Setting(bool, SCHEDULE, "bufferResponseEnabled"),
    "--prefill-expected-time-ms": Setting(int, SCHEDULE, "prefillExpectedTime", None, 1),
    "--decode-expected-time-ms": Setting(int, SCHEDULE, "decodeExpectedTime", None, 1),
    "--enable-prefix-caching": Setting(bool, SCHEDULE, "enablePrefixCache", False),
    "--enable-split": Setting(bool, SCHEDULE, "enableSplit", False),
    "--policy-type": Setting(int, default=0, maximum=7),
    "--split-chunk-tokens": Setting(int, default=512, minimum=16, maximum=8192),
    "--split-start-batch-size": Setting(int, default=16),
    "--enable-multi-token-prediction": Setting(bool, default=False),
    "--multi-token-prediction-tokens": Setting(int, default=1, minimum=1),
    "--enable-memory-decoding": Setting(bool, default=False),
    "--memory-decoding-length": Setting(int, default=16, minimum=1, maximum=16),
    "--memory-decoding-dynamic-algo": Setting(bool, default=False),
    "--enable-lookahead": Setting(bool, default=False),
    "--lookahead-level": Setting(int, default=4, minimum=3, maximum=16),
    "--lookahead-window": Setting(int, default=5, minimum=1, maximum=16),
    "--lookahead-guess-set-size": Setting(int, default=5, minimum=1, maximum=16),
    "--tensor-parallel-size": Setting(int, MODEL, "tp", None, 1, alias="-tp"),
    "--pipeline-parallel-size": Setting(int, MODEL, "pp", None, 1, alias="-pp"),
    "--data-parallel-size": Setting(int, MODEL, "dp", None, 1, alias="-dp"),
    "--context-parallel-size": Setting(int, MODEL, "cp", None, 1, alias="-cp"),
    "--sequence-parallel-size": Setting(int, MODEL, "sp", None, 1, alias="-sp"),
    "--moe-expert-parallel-size": Setting(int, MODEL, "moe_ep", None, 1, alias="-moe-ep"),
    "--moe-tensor-parallel-size": Setting(int, MODEL, "moe_tp", None, 1, alias="-moe-tp"),
    "--no-metrics": Setting(bool, default=False),
    "--enforce-eager": Setting(bool, default=False),
}


FLAG_SYNTAX = FlagSyntax(
    {setting.alias: name for name, setting in SETTINGS.items() if setting.alias}
)


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Return every flag with its value, given or default.

    Raises:
        BadInput: A flag is unknown, which MindIE's own tools ignore silently, or its value cannot
            be used.
    """
    values = {name: setting.default for name, setting in SETTINGS.items()}
    head, *flags = FLAG_SYNTAX.parse(words)
    if len(head) > 1:
        raise BadInput(
            "raw", f"{head[1]!r} follows no flag", "give flags, each followed by its value"
        )
    for flag, *texts in flags:
        name = flag.replace("--no-", "--", 1) if flag not in SETTINGS else flag
        setting = SETTINGS.get(name)
        if name in OF_MODEL:
            remedy = (
                f"make the change in {OF_MODEL[name]} of a copy of the model's folder, and "
                "name that folder"
            )
            raise BadInput(flag, "loadgen changes no file of a model", remedy)
        if setting is None or (name != flag and setting.kind is not bool):
            raise BadInput(flag, "mindie has no such flag", f"use one of {', '.join(SETTINGS)}")
        if setting.kind is bool:
            if texts:
                raise BadInput(
                    flag, f"it takes no value, but {texts[0]!r} follows", "leave the value out"
                )
            values[name] = flag == name
        else:
            values[name] = _value(flag, setting, texts)
    return values


def _value(name: str, setting: Setting, texts: Sequence[str]) -> Any:
    if len(texts) != 1:
        raise BadInput(name, f"it has {len(texts)} values", "give one value")
    if setting.kind is str:
        return texts[0]
    try:
        if setting.kind is dict:
            mapping = json.loads(texts[0])
            if not isinstance(mapping, dict):
                raise ValueError(texts[0])
            return mapping
        value = setting.kind(texts[0])
    except ValueError:
        remedy = "give a JSON object" if setting.kind is dict else "give a number"
        raise BadInput(name, f"{texts[0]!r} is not {KINDS[setting.kind]}", remedy) from None
    if not setting.minimum <= value <= setting.maximum:
        raise BadInput(
            name, f"{value} is out of range", f"give {setting.minimum:g} to {setting.maximum:g}"
        )
    return value


def world_size(flags: Mapping[str, Any], place: Place) -> int:
    """Return the number of NPUs: by the flags, else all that the server may use, else one.

    Raises:
        BadInput: The parallel sizes contradict each other or the number of devices.
    """
    tp, pp, dp, cp, sp, moe_ep, moe_tp = (flags[f"--{name}-parallel-size"] for name in PARALLEL)
    for name in PARALLEL:
        size = flags[f"--{name}-parallel-size"]
        if size is not None and size & (size - 1):
            raise BadInput(
                f"--{name}-parallel-size", f"{size} is not a power of 2", "give 1, 2, 4, 8, ..."
            )
    for flag, size, other, other_size in (
        ("pipeline", pp, "data", dp),
        ("data", dp, "context", cp),
    ):
        if (size or 1) > 1 and (other_size or 1) > 1:
            raise _either(f"--{flag}-parallel-size", f"{other} parallelism")
    devices = len(place.devices) or None
    others = (pp or 1) * (dp or 1) * (cp or 1)
    world = others * tp if tp else max(devices or 1, others)
    if devices is not None and devices != world:
        raise BadInput(
            "devices", f"{devices} devices, but the parallel sizes need {world}", "make them equal"
        )
    if sp is not None and sp != (tp or world):
        raise BadInput(
            "--sequence-parallel-size",
            f"{sp} is not the tensor parallel size",
            f"give {tp or world}",
        )
    if (moe_ep or moe_tp) and (moe_ep or world // (moe_tp or 1)) * (
        moe_tp or world // (moe_ep or 1)
    ) != world:
        remedy = f"give sizes with the product {world}"
        raise BadInput(
            "--moe-expert-parallel-size", "the expert sizes do not match the devices", remedy
        )
    return world


def configure(
    base: Mapping[str, Any], flags: Mapping[str, Any], model: str, served_name: str, place: Place
) -> dict[str, Any]:
    """Return the server's config.json.

    Args:
        base: The installed config.json; entries that are not set here stay as they are.
        flags: The result of `parse`.
        model: Path of the weights.
        served_name: The model's name in requests.
        place: Where the server runs; one port serves requests, management and metrics.

    Raises:
        BadInput: Flags contradict each other.
    """
    flags = _derived(flags)
    config: dict[str, Any] = copy.deepcopy(dict(base))
    for name, setting in SETTINGS.items():
        if setting.key and flags[name] is not None:
            put(config, (*setting.section, setting.key), flags[name])
    world = world_size(flags, place)
    if flags["--moe-expert-parallel-size"] and not flags["--moe-tensor-parallel-size"]:
        put(config, (*MODEL, "moe_tp"), world // flags["--moe-expert-parallel-size"])
    for section, entries in _fixed(model, served_name, place, world).items():
        for key, value in entries.items():
            put(config, (*section, key), value)
    # Else management listens there and not at the host.
    config["ServerConfig"].pop("managementIpAddress", None)
    if flags["--enable-split"]:
        split = {
            "policyType": flags["--policy-type"],
            "splitChunkTokens": flags["--split-chunk-tokens"],
        }
        split |= {"splitStartBatchSize": flags["--split-start-batch-size"]}
        for key, value in (
            split | {"templateType": "Mix", "splitType": False, "splitStartType": False}
        ).items():
            put(config, (*SCHEDULE, key), value)
    if gamma := _speculation_gamma(flags):
        put(config, (*DEPLOY, "speculationGamma"), gamma)
    at = config["BackendConfig"]["ModelDeployConfig"]["ModelConfig"][0]
    at.pop("plugin_params", None)  # the installed ones would turn on what the flags do not
    if plugins := _plugins(flags):
        at["plugin_params"] = compact_json(plugins)
    return config


def variables(flags: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables that the flags decide."""
    eager = flags["--enforce-eager"]
    env = {
        "ATB_OPERATION_EXECUTE_ASYNC": "0" if eager else "1",
        "MIES_SERVICE_MONITOR_MODE": "0" if flags["--no-metrics"] else "1",
        "MIES_USE_MB_SWAPPER": "1" if flags["--cpu-mem-size"] else "0",
        "MINDIE_ASYNC_SCHEDULING_ENABLE": "0"
        if eager or flags["--max-batch-size"] <= SMALL_BATCH
        else "1",
        "NPU_MEMORY_FRACTION": str(flags["--npu-memory-fraction"]),
        "TASK_QUEUE_ENABLE": "0" if eager else "1",
    }
    if flags["--log-level"] is not None:
        env["MINDIE_LOG_LEVEL"] = flags["--log-level"].upper()
    return env | ({"ASCEND_LAUNCH_BLOCKING": "1"} if eager else {})


def put(config: dict[str, Any], path: Path, value: Any) -> None:
    """Set the entry at `path`; missing levels are created."""
    at: Any = config
    for key, following in itertools.pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(key, int):
            at.extend([empty] * (key + 1 - len(at)))
            at = at[key]
        else:
            at = at.setdefault(key, empty)
    at[path[-1]] = value


def _derived(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags with derived values, checked against each other."""
    seq = flags["--max-seq-len"]
    batch = flags["--max-batch-size"]
    implied = {
        "--max-input-token-len": min(seq, flags["--max-prefill-tokens"] or seq),
        "--max-prefill-tokens": seq,
        "--max-iter-times": seq,
        "--max-prefill-batch-size": min(50, batch),
    }
    derived = {**flags, **{name: value for name, value in implied.items() if flags[name] is None}}
    for less, more in (
        ("--max-input-token-len", "--max-prefill-tokens"),
        ("--max-prefill-tokens", "--max-seq-len"),
        ("--max-prefill-batch-size", "--max-batch-size"),
    ):
        if derived[less] > derived[more]:
            raise BadInput(
                less,
                f"{derived[less]} is more than {more} ({derived[more]})",
                "lower the first or raise the second",
            )
    if derived["--split-chunk-tokens"] % 16:
        raise BadInput(
            "--split-chunk-tokens",
            f"{derived['--split-chunk-tokens']} is not a multiple of 16",
            "give a multiple of 16",
        )
    if derived["--enable-buffer-response"]:
        for name in ("--prefill-expected-time-ms", "--decode-expected-time-ms"):
            if derived[name] is None:
                raise BadInput(
                    name, "missing, and --enable-buffer-response needs it", "give milliseconds"
                )
    if derived["--policy-type"] not in (0, 4, 5, 6, 7):
        raise BadInput(
            "--policy-type",
            f"unknown policy {derived['--policy-type']}",
            "use one of 0, 4, 5, 6, 7",
        )
    return derived


def _fixed(model: str, served_name: str, place: Place, world: int) -> dict[Path, dict[str, Any]]:
    return {
        SERVER: {
            "ipAddress": place.host,
            "allowAllZeroIpListening": True,
            "port": place.port,
            "managementPort": place.port,
            "metricsPort": place.port,
            "httpsEnabled": False,
            "interCommTLSEnabled": False,
            "openAiSupport": "vllm",
        },
        BACKEND: {
            "interNodeTLSEnabled": False,
            "multiNodesInferEnabled": False,
            # numbered among the devices that the process sees
            "npuDeviceIds": [list(range(world))],
        },
        MODEL: {
            "modelName": served_name,
            "modelWeightPath": model,
            "worldSize": world,
            "backendType": "atb",
        },
    }


def _either(flag: str, other: str) -> BadInput:
    return BadInput(flag, f"it cannot be used with {other}", "give one of the two")


def _plugins(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plugins; one entry names them all, so setting it for each in turn would leave only
    the last.

    Raises:
        BadInput: They do not work together, or with data parallelism.
    """
    chosen = {name: flag for name, flag in PLUGINS.items() if flags[flag]}
    for plugin, other in itertools.combinations(chosen, 2):
        if "prefix_cache" not in (plugin, other) or {plugin, other} & GUESSING:
            raise _either(chosen[plugin], chosen[other])
    for name, flag in chosen.items():
        if name != "mtp" and (flags["--data-parallel-size"] or 1) > 1:
            raise _either(flag, "data parallelism")
    if not chosen:
        return {}
    settings: dict[str, Any] = {}
    if "mtp" in chosen:
        settings = {"num_speculative_tokens": flags["--multi-token-prediction-tokens"]}
    elif "memory_decoding" in chosen:
        dynamic = flags["--memory-decoding-dynamic-algo"]
        settings = {"decoding_length": flags["--memory-decoding-length"], "dynamic_algo": dynamic}
    elif "la" in chosen:
        settings = {name: flags[f"--lookahead-{name.replace('_', '-')}"] for name in LOOKAHEAD}
    return {"plugin_type": ",".join(chosen), **settings}


def _speculation_gamma(flags: Mapping[str, Any]) -> int:
    """Return the tokens that a step may guess; 0: the plugin does not guess."""
    if flags["--enable-memory-decoding"]:
        return int(flags["--memory-decoding-length"])
    if not flags["--enable-lookahead"]:
        return 0
    level, window, guesses = (flags[f"--lookahead-{name.replace('_', '-')}"] for name in LOOKAHEAD)
    return int((level - 1) * (window + guesses))
