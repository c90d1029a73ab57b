"""The workloads of a study as settings of runs."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from loadgen.config import gpustack_profile, presets, serialize
from loadgen.config.option import CONNECTIONS, DATA, LOAD, SAMPLING, options
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, Place, setting
from loadgen.lab.study.spec.strict_model import AtFault, suggestion
from loadgen.lab.study.spec.study import Study
from loadgen.workload import endpoints, vllm_load
from loadgen.workload.datasets import rules
from loadgen.workload.datasets.lengths import Lengths

PROFILE_KEYS = gpustack_profile.KEYS.keys() - {
    field.name for field in dataclasses.fields(RunSettings)
}
# Without its address.
TARGET_KEYS = {"backend", "endpoint", "tokenizer", "extra_body", "continuous_usage"}
REPORTED = {"percentile_metrics", "metric_percentiles"}
ALLOWED = (
    {
        option.name
        for option in options(RunSettings).values()
        if option.group in (SAMPLING, LOAD, DATA, CONNECTIONS)
    }
    | TARGET_KEYS
    | REPORTED
)
COMPAT = "compat"  # key of a workload: the tool whose defaults it has
EVERY = "every_workload"
CHAT = "openai-chat"  # the API of every workload that names none


def loads(study: Study) -> dict[str, RunSettings]:
    """Return the settings of a run of each workload, without its server.

    Raises:
        AtFault: A workload has an invalid setting, or one that the study decides.
    """
    shared = _flags((EVERY,), study.every_workload)
    if "workload" in shared:
        raise AtFault((EVERY, "workload"), "is another workload for each", "name it in workloads")
    return {
        name: _settings(("workloads", name), workload, shared)
        for name, workload in study.workloads.items()
    }


def _settings(at: Place, workload: Any, shared: Mapping[str, Any]) -> RunSettings:
    own = workload if isinstance(workload, Mapping) else {}
    places: dict[str | int, Place] = {setting(key): (EVERY, key) for key in shared}
    places |= {setting(str(key).replace("-", "_")): (*at, key) for key in own}
    places |= {presets.FLAG: at} if "workload" not in own else {}
    try:
        settings = endpoints.checked(RunSettings(**_fields(at, workload, shared)))
        if settings.dataset_rule is not None:
            rules.find(settings.dataset_name, settings.dataset_rule)
        if settings.dataset_name == "random":
            Lengths.parse(setting.random_input_len, settings.random_input_len)
            Lengths.parse(setting.random_output_len, settings.random_output_len)
        return settings
    except AtFault:
        raise
    except BadInput as error:
        first, *rest = error.path or ("",)
        place = places.get(first, (*at, first))
        problem, remedy = error.texts
        shown = f"{problem} (workload {at[-1]})" if place[0] == EVERY else problem
        raise AtFault((*place, *rest), shown, remedy) from error


def _fields(at: Place, workload: Any, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a workload: its preset, then the flags of every workload, then its
    own.
    """
    if isinstance(workload, str):
        return _with_defaults(presets.merge(workload, shared))
    if not isinstance(workload, Mapping) or not workload:
        raise AtFault(
            at,
            "is not a workload",
            f"name a file or one of {', '.join(presets.names())}, or give settings",
        )
    preset: dict[str, Any] = {}
    if PROFILE_KEYS & workload.keys():
        profile = {key: value for key, value in workload.items() if key in gpustack_profile.KEYS}
        preset = presets.gpustack(gpustack_profile.fields(profile))
        workload = {key: workload[key] for key in workload.keys() - profile.keys()}
    flags = {**shared, **_flags(at, workload)}
    if "workload" in flags:
        flags = presets.merge(flags["workload"], flags)
    return _with_defaults(preset | flags)


def _flags(at: Place, part: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a mapping of the study sets: fields of `RunSettings`, and the tool of `compat`.

    Raises:
        AtFault: A key or the tool is unknown, a value has the wrong type, or the study decides it.
    """
    tool = {COMPAT: part[COMPAT]} if COMPAT in part else {}
    if tool and tool[COMPAT] not in (*vllm_load.RELEASES, None):
        among = list(vllm_load.RELEASES)
        remedy = suggestion(str(tool[COMPAT]), among) or f"use one of {', '.join(among)}"
        raise AtFault((*at, COMPAT), f"unknown tool {tool[COMPAT]!r}", remedy)
    try:
        fields = serialize.fields({key: value for key, value in part.items() if key != COMPAT})
    except BadInput as error:
        raise AtFault((*at, *error.path), *error.texts) from error
    for name in fields:
        if name not in ALLOWED:
            raise AtFault((*at, name), "is decided by the study", "leave it out")
    return fields | tool


def _with_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a workload with the defaults of its tool, if it names one."""
    tool = fields.pop(COMPAT, None)
    if tool is None:
        return fields
    if not fields.get("endpoint"):
        fields = {"backend": CHAT} | fields
    defaults = {"adapt": False} | vllm_load.RELEASES[tool](fields)
    return vllm_load.as_sent(defaults | fields)
