"""The workloads of a study as settings of runs."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from loadgen.config import gpustack_profile, presets, serialize
from loadgen.config.option import CONNECTIONS, DATA, LOAD, SAMPLING
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.tuning.spec.strict_model import At, AtFault
from loadgen.tuning.spec.study import Study
from loadgen.workload import endpoints

PROFILE_KEYS = gpustack_profile.KEYS.keys() - {field.name for field in dataclasses.fields(RunSettings)}
TARGET_KEYS = {"backend", "endpoint", "tokenizer", "extra_body", "continuous_usage"}  # without its address
ALLOWED = {
    field.name
    for field in dataclasses.fields(RunSettings)
    if field.metadata["group"] in (SAMPLING, LOAD, DATA, CONNECTIONS)
} | TARGET_KEYS


def loads(study: Study) -> dict[str, RunSettings]:
    """Return the settings of a run of each workload, without its server.

    Raises:
        AtFault: A workload has an invalid setting, or one that the study decides.
    """
    return {name: _settings(("workloads", name), said) for name, said in study.workloads.items()}


def _settings(at: At, said: Any) -> RunSettings:
    try:
        return endpoints.checked(RunSettings(**_given(at, said)))
    except AtFault:
        raise
    except BadInput as error:
        key = error.field.removeprefix("--").replace("-", "_")
        if isinstance(said, Mapping) and key in said:
            raise AtFault((*at, key), error.problem, error.remedy) from error
        where = "" if error.field in ("", presets.FIELD) else f"{error.field}: "
        raise AtFault(at, f"{where}{error.problem}", error.remedy) from error


def _given(at: At, said: Any) -> dict[str, Any]:
    if isinstance(said, str):
        return presets.resolve(said)
    if not isinstance(said, Mapping) or not said:
        raise AtFault(at, "is not a workload", f"name a file or one of {', '.join(presets.PRESETS)}, or give settings")
    if PROFILE_KEYS & said.keys():
        profile = {key: value for key, value in said.items() if key in gpustack_profile.KEYS}
        preset, said = (
            presets.GPUSTACK | gpustack_profile.fields(profile),
            {k: said[k] for k in said.keys() - profile.keys()},
        )
    else:
        preset = {}
    given = serialize.fields(said)
    for name in given:
        if name not in ALLOWED:
            raise AtFault((*at, name), "is decided by the study", "leave it out")
    return preset | (presets.resolve(given["workload"]) if "workload" in given else {}) | given
