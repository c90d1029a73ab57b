"""MindIE flags: the flags of the GPUStack project's back end for MindIE, and the config entry that each one sets.

MindIE has no command-line flags of its own; published benchmarks of it use these.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.engines.kinds.flag_syntax import FlagSyntax
from loadgen.engines.kinds.knobs import KINDS
from loadgen.errors import BadInput

Path = tuple[str | int, ...]

BACKEND: Path = ("BackendConfig",)
DEPLOY: Path = (*BACKEND, "ModelDeployConfig")
MODEL: Path = (*DEPLOY, "ModelConfig", 0)
SCHEDULE: Path = (*BACKEND, "ScheduleConfig")
SERVER: Path = ("ServerConfig",)


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
# Flags that change the model's own files.
OF_MODEL = {
    "--dtype": "config.json",
    "--rope-scaling": "config.json",
    "--rope-theta": "config.json",
    "--override-generation-config": "generation_config.json",
}
FLAG_SYNTAX = FlagSyntax({setting.alias: name for name, setting in SETTINGS.items() if setting.alias})


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Return every flag with its value, given or default.

    Raises:
        BadInput: A flag is unknown, which MindIE's own tools ignore silently, or its value cannot be used.
    """
    values = {name: setting.default for name, setting in SETTINGS.items()}
    head, *flags = FLAG_SYNTAX.parse(words)
    if len(head) > 1:
        raise BadInput("raw", f"{head[1]!r} follows no flag", "give flags, each followed by its value")
    for given, *texts in flags:
        name = given.replace("--no-", "--", 1) if given not in SETTINGS else given
        setting = SETTINGS.get(name)
        if name in OF_MODEL:
            remedy = f"make the change in {OF_MODEL[name]} of a copy of the model's folder, and name that folder"
            raise BadInput(given, "loadgen changes no file of a model", remedy)
        if setting is None or (name != given and setting.kind is not bool):
            raise BadInput(given, "mindie has no such flag", f"use one of {', '.join(SETTINGS)}")
        values[name] = _value(given, setting, texts) if setting.kind is not bool else _switch(given, name, texts)
    return values


def _switch(given: str, name: str, texts: Sequence[str]) -> bool:
    if texts:
        raise BadInput(given, f"it takes no value, but {texts[0]!r} follows", "leave the value out")
    return given == name


def _value(name: str, setting: Setting, texts: Sequence[str]) -> Any:
    if len(texts) != 1:
        raise BadInput(name, f"it has {len(texts)} values", "give one value")
    if setting.kind is str:
        return texts[0]
    try:
        if setting.kind is dict:
            return _mapping(texts[0])
        value = setting.kind(texts[0])
    except ValueError:
        remedy = "give a JSON object" if setting.kind is dict else "give a number"
        raise BadInput(name, f"{texts[0]!r} is not {KINDS[setting.kind]}", remedy) from None
    if not setting.minimum <= value <= setting.maximum:
        raise BadInput(name, f"{value} is out of range", f"give {setting.minimum:g} to {setting.maximum:g}")
    return value


def _mapping(text: str) -> dict[str, Any]:
    """Parse a JSON object; raise ValueError for anything else."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(text)
    return found
