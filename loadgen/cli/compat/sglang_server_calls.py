"""SGLang's flags of the profiler, and of the server's prefix cache."""

from collections.abc import Callable, Sequence
from os.path import abspath
from typing import Any

from loadgen.cli.compat.tool_flags import NONE, ONE, SOME, Given, ToolFlag, body_field, switch
from loadgen.config.load import COLD
from loadgen.config.option import ABOVE_0, FINITE, Range
from loadgen.util.argument_parser import integer, number

STAGE_STEPS = 5  # the default


def _profile(name: str, field: str, values: str = ONE, type_: Callable[[str], Any] = str) -> ToolFlag:
    return body_field(name, "profile_body", field, values, type_)


def _profile_by_stage(value: Any, given: Given) -> dict[str, Any]:
    return {"profile_body": {"num_steps": STAGE_STEPS} | (given.get("profile_body") or {}) | {"profile_by_stage": True}}


def _output_dir(value: str, given: Given) -> dict[str, Any]:
    return {"profile_body": (given.get("profile_body") or {}) | {"output_dir": abspath(value)}}


def _profile_url(value: Sequence[str], given: Given) -> dict[str, Any]:
    return {"profile_url": (*given.get("profile_url", ()), *value)}


def _flush_timeout(value: float, given: Given) -> dict[str, Any]:
    Range("seconds above 0", ABOVE_0, FINITE).check("--flush-cache-timeout", value)
    return {}


FLAGS = (
    switch("--flush-cache", {"cache": COLD}),
    ToolFlag("--flush-cache-timeout", _flush_timeout, type_=number),
    ToolFlag("--profile-by-stage", _profile_by_stage, values=NONE),
    _profile("--profile-activities", "activities", SOME),
    _profile("--profile-start-step", "start_step", type_=integer),
    _profile("--profile-steps", "num_steps", type_=integer),
    _profile("--profile-num-steps", "num_steps", type_=integer),
    _profile("--profile-stages", "profile_stages", SOME),
    _profile("--profile-prefix", "profile_prefix"),
    ToolFlag("--profile-output-dir", _output_dir),
    *(ToolFlag(f"--profile-{workers}-url", _profile_url, values=SOME) for workers in ("prefill", "decode")),
)
